"""What others send: it is refused with a reason, and has no effect on the file."""

import asyncio
from urllib.parse import urlencode

import pytest
from serve_helpers import ADDRESS, ANSWER, TOKEN, content, hidden
from starlette.testclient import TestClient

from hardthresh.study.serve.security import HEADERS, SecurityMiddleware

DEEP = "[" * 100_000
SQL = "x'); DROP TABLE events; --"
TELL = '{"who": "Ann", "question": 0, "values": %s}'
BODIES = {
    "nothing": "",
    "no JSON": "{",
    "a list": "[]",
    "deep": '{"who": ' + DEEP,
    "deep values": TELL % DEEP,
    "NaN": TELL % '{"age": NaN}',
    "infinity": TELL % '{"age": -Infinity}',
    "too large": TELL % '{"age": 1e400}',
    "large": TELL % '{"creatinine": 1e300}',
    "thousands of digits": TELL % f'{{"age": {"9" * 5000}}}',
    "a boolean": TELL % '{"age": true}',
    "a list for a value": TELL % '{"age": [61]}',
    "an object for a value": TELL % '{"age": {"$ne": 1}}',
    "a list for values": TELL % "[61]",
    "another unit": TELL % '{"age": "61 days"}',
    "an unknown attribute": TELL % '{"__class__": 1}',
    "a path": TELL % '{"../../etc/passwd": 1}',
    "SQL in a value": TELL % f'{{"age": "{SQL}"}}',
    "SQL in a name": TELL % f'{{"{SQL}": 1}}',
    "twice": TELL % '{"age": 61, "age": 62}',
    "half a letter": TELL.replace("Ann", "\\ud800") % '{"age": 61}',
    "a null byte": TELL.replace("Ann", "A\\u0000") % '{"age": 61}',
    "no person": TELL.replace('"Ann"', "null") % '{"age": 61}',
    "an empty person": TELL.replace('"Ann"', '" "') % '{"age": 61}',
    "a long person": TELL.replace("Ann", "A" * 101) % '{"age": 61}',
    "another person": TELL.replace("Ann", "Eve") % '{"age": 61}',
    "a text for a number": TELL.replace("0,", '"0",') % '{"age": 61}',
    "true for a number": TELL.replace("0,", "true,") % '{"age": 61}',
    "a negative number": TELL.replace("0,", "-1,") % '{"age": 61}',
    "a number that SQLite lacks": TELL.replace("0,", f"{2**64},") % '{"age": 61}',
    "an unknown question": TELL.replace("0,", "77,") % '{"age": 61}',
    "an unknown field": TELL.replace('"who"', '"price": 0, "who"') % '{"age": 61}',
    "latin": "{'who': 'é'}".encode("latin-1"),
}


@pytest.fixture
def asked(served, post):
    """The content of the file after one question."""
    assert post("ask", {"who": "Ann"})[0] == 200
    return content(served.path)


@pytest.fixture
def api(served):
    return served.client()


AUTHORIZED = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}


def test_nothing_that_cannot_be_used_has_an_effect(served, asked, api):
    for what, body in BODIES.items():
        answer = api.post("/api/tell", content=body, headers=AUTHORIZED)
        assert answer.status_code in (409, 422), what
        assert answer.json()["message"], what
    assert content(served.path) == asked


def test_texts_are_stored_as_they_are_and_never_become_SQL_or_HTML(served, person):
    person.submit("/ask")
    evil = f"<script>alert(1)</script>{SQL}"
    values = {f"value:{name}": str(value) for name, value in ANSWER.items()} | {"value:smoker": "yes"}
    answer = person.submit("/question/0", {**values, "subject": evil}, page="/question/0")
    assert "is complete" in answer.text
    for page in ("/answers", "/question/0"):
        text = person.get(page).text
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)" in text
    assert "in &lt;b&gt;whole&lt;/b&gt; years" in person.get("/question/0").text
    assert content(served.path)[-1][1] == "told"


def test_wrong_tokens_are_refused_and_told_to_wait_and_the_right_one_is_not(served, asked, api):
    wrong = {"no": {}, "empty": {"Authorization": "Bearer "}, "other scheme": {"Authorization": f"Basic {TOKEN}"}}
    for headers in wrong.values():
        assert api.post("/api/ask", json={"who": "Eve"}, headers=headers).status_code == 401
    for guess in ["x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é" * 9, "' OR 1=1 --", "0", "1", "2", "3"]:
        answer = api.post("/api/ask", json={"who": "Eve"}, headers={"Authorization": f"Bearer {guess}".encode()})
        assert (answer.status_code, answer.json()["error"]) == (401, "WrongToken")
    answer = api.post("/api/ask", json={"who": "Eve"}, headers={"Authorization": "Bearer x"})
    assert (answer.status_code, answer.json()["error"]) == (429, "TooManyWrongTokens")
    assert answer.headers["retry-after"] == "60"
    assert api.get("/?token=x").status_code == 429
    assert content(served.path) == asked
    assert api.get("/api/status", headers=AUTHORIZED).status_code == 200
    assert api.get(f"/?token={TOKEN}").url.path == "/sign-in"
    served.clock.now = 60.5
    assert api.get("/?token=x").status_code == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_can_neither_try_tokens_nor_use_one(served, site):
    client = served.client()
    for token in [*map(str, range(20)), TOKEN]:
        answer = client.get(f"/?token={token}", headers={"Sec-Fetch-Site": site}, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        assert "set-cookie" not in answer.headers
    assert client.get("/?token=x").status_code == 401  # none of them was counted


def test_other_hosts_and_origins_are_refused(served, asked, api, person):
    for host in [
        "evil.example",
        "localhost.evil.example",
        "",
        "localhost@evil.example",
        "127.0.0.1:8123",
        "[::1",
        "a" * 9000,
    ]:
        answer = api.post("/api/ask", json={"who": "Eve"}, headers={**AUTHORIZED, "Host": host})
        assert answer.status_code == 421, host
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost:9999"},
        {"Origin": "http://["},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        answer = api.post("/api/ask", json={"who": "Eve"}, headers={**AUTHORIZED, **headers})
        assert (answer.status_code, answer.headers["x-frame-options"]) == (403, "DENY")
        fields = hidden(person.get("/").text)
        assert person.post("/ask", data=fields, headers=headers).status_code == 403
    assert content(served.path) == asked


def test_a_form_needs_the_token_of_its_session(served, asked, person):
    other = served.client()
    other.get(f"/?token={TOKEN}")
    fields = hidden(person.get("/").text)
    for stolen in ({}, {"form_token": ""}, {"form_token": "é"}, {"form_token": fields["form_token"][::-1]}):
        assert person.post("/ask", data={"key": "k", **stolen}).status_code == 403
    assert other.post("/sign-in", data={"who": "Eve", **fields}).status_code == 403
    assert person.post("/ask", json=fields).status_code == 415
    assert person.post("/ask", data={**fields, "more": "x" * 300_000}).status_code == 413
    assert (
        person.post("/ask", content=b"%", headers={"Content-Type": "application/x-www-form-urlencoded"}).status_code
        == 403
    )
    assert content(served.path) == asked


def test_without_signing_in_there_is_nothing_to_see(served, asked, api):
    for path in ["/", "/question/0", "/answers", "/study", "/predict"]:
        assert api.get(path).url.path == "/sign-in"
    for path in ["/ask", "/question/0", "/question/0/skip", "/question/0/withdraw", "/predict"]:
        assert api.post(path, data={"form_token": "x"}).url.path == "/sign-in"
    for path in ["/api/status", "/api/model", "/api/questions", "/openapi.json"]:
        assert api.get(path).status_code == 401
    assert content(served.path) == asked


def test_the_api_does_not_take_cookies(person):
    assert person.get("/api/status").status_code == 401


def test_paths_lead_nowhere_else(served, person):
    for path in [
        "/static/../app.py",
        "/static/%2e%2e%2fapp.py",
        "/static/..%2f..%2f..%2fetc%2fpasswd",
        "/static/app.py",
    ]:
        assert person.get(path).status_code == 404
    for path in ["/question/-1", "/question/1e3", f"/question/{'9' * 5000}", "/question/٣", "/question/77", "/nowhere"]:
        assert person.get(path).status_code == 404, path
    page = person.get("/sign-in?next=//evil.example/")
    assert 'name="next" value="/"' in page.text


def test_a_body_is_limited_and_json(api):
    answer = api.post("/api/ask", content=b" " * 300_000, headers=AUTHORIZED)
    assert (answer.status_code, answer.json()["error"]) == (413, "TooLong")
    answer = api.post("/api/ask", content=iter([b" " * 200_000] * 2), headers=AUTHORIZED)
    assert answer.status_code == 413
    assert (
        api.post("/api/ask", content=b"who=Ann", headers={**AUTHORIZED, "Content-Type": "text/plain"}).status_code
        == 415
    )
    assert (
        api.post("/api/ask", json={"who": "Ann"}, headers={**AUTHORIZED, "Idempotency-Key": "k" * 65}).status_code
        == 422
    )


def test_half_of_a_form_is_not_taken_for_all_of_it(served, asked, person):
    """A connection that ends within a number, as on a telephone that leaves the ward."""
    form = {**hidden(person.get("/question/0").text), "value:age": "61"}
    cookies = "; ".join(f"{name}={value}" for name, value in person.client.cookies.items())
    headers = {"host": "localhost:8123", "cookie": cookies, "content-type": "application/x-www-form-urlencoded"}
    parts = [
        {"type": "http.request", "body": urlencode(form)[:-1].encode(), "more_body": True},
        {"type": "http.disconnect"},
    ]
    scope = {
        **{"type": "http", "method": "POST", "path": "/question/0", "raw_path": b"/question/0", "query_string": b""},
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    sent = []

    async def receive():
        return parts.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(person.client.app(scope, receive, send))
    assert sent[0]["status"] == 400
    assert content(served.path) == asked


def test_every_answer_forbids_what_is_not_needed(served, person, api):
    for answer in (
        person.get("/"),
        api.get("/nowhere"),
        api.get("/static/study.css"),
        api.get("/", headers={"Host": "x"}),
    ):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
    page = person.get("/study").text
    assert " style=" not in page
    assert " on" + "click" not in page


def test_an_unexpected_error_has_the_headers_and_says_nothing_of_itself():
    async def broken(scope, receive, send):
        raise RuntimeError("a secret")

    client = TestClient(SecurityMiddleware(broken, {"localhost"}), base_url=ADDRESS, raise_server_exceptions=False)
    answer = client.get("/")
    assert (answer.status_code, answer.text) == (500, "Internal Server Error")
    assert answer.headers.items() >= {name.lower(): value for name, value in HEADERS.items()}.items()


def test_the_session_is_a_cookie_that_scripts_and_other_sites_do_not_have(served):
    client = served.client()
    answer = client.get(f"/?token={TOKEN}", follow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in answer.headers["location"] + cookie
    admitted = {*client.cookies.values()}
    client.post("/sign-in", data={**hidden(client.get("/sign-in").text), "who": "Ann"})
    assert {*client.cookies.values()}.isdisjoint(admitted)  # a name that others knew before is worth nothing
    served.clock.now += 13 * 3600
    assert client.get("/").url.path == "/sign-in"


def test_cookies_are_kept_to_tls_behind_a_proxy_that_has_it(served):
    for headers, secure in (({}, False), ({"X-Forwarded-Proto": "https"}, True)):
        for path in ("/sign-in", f"/?token={TOKEN}"):
            answer = served.client().get(path, headers=headers, follow_redirects=False)
            assert ("secure" in answer.headers["set-cookie"].lower()) == secure


def test_the_title_is_for_those_who_have_the_token(served, api):
    for path in ("/sign-in", "/nowhere", "/question/0"):
        assert "Days in hospital" not in api.get(path).text
    api.get(f"/?token={TOKEN}")
    assert "Days in hospital" in api.get("/sign-in").text
