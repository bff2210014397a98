"""Where a study is served, and where it is not."""

import socket
import ssl
import subprocess
import sys
from urllib.parse import urlsplit

import httpx2
import pytest
from serve_helpers import TOKEN

from hardthresh.core.errors import InvalidInputError
from hardthresh.study.serve import run
from hardthresh.study.serve.access import Access, check_token, new_token
from hardthresh.study.serve.refusals import Refused
from hardthresh.study.serve.security import hostname
from hardthresh.study.serve.server import Endpoint
from levels import only_at


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "ward.example"])
def test_a_network_needs_tls_unless_it_is_allowed_without(path, host):
    with pytest.raises(InvalidInputError, match=r"can be reached from the network.*certificate"):
        run(path, host=host)
    Endpoint(host, allow_plain=True).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.7", "::1", "localhost", "LOCALHOST"])
def test_this_machine_needs_no_tls(host):
    Endpoint(host).check()


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"certificate": __file__}, "both a certificate and its key"),
        ({"certificate": __file__, "key": "nowhere.pem"}, "there is no file nowhere.pem"),
        ({"port": 65536}, "a port is a number from 0 to 65535; got 65536"),
        ({"token": "secret"}, "needs at least 16 characters, and this one has 6"),
        ({"token": "correct horse battery"}, "may only have the characters .* and this one has ' '"),
        ({"token": "an-umlaut-ä-is-no-part-of-a-header"}, "this one has 'ä'"),
        ({"token": "abc" * 10}, "needs at least 6 different characters, and this one has 3"),
    ],
)
def test_a_wrong_setting_is_named(path, place, message):
    with pytest.raises(InvalidInputError, match=message):
        run(path, **place)


def test_a_port_that_is_taken_and_a_file_that_is_not_there_are_named(path, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InvalidInputError, match="choose another port"):
        run(path, port=taken.getsockname()[1])
    with pytest.raises(InvalidInputError, match="there is no study"):
        run(tmp_path / "nothing.db", port=0)


def test_a_certificate_and_a_key_that_do_not_go_together_are_refused(certificate, tmp_path):
    Endpoint(**certificate).check()
    other = str(tmp_path / "other.pem")
    secret = str(tmp_path / "secret.pem")
    subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-out", other], check=True, capture_output=True)
    encrypt = ["openssl", "pkey", "-in", certificate["key"], "-aes256", "-passout", "pass:abcd", "-out", secret]
    subprocess.run(encrypt, check=True)
    swapped = {"certificate": certificate["key"], "key": certificate["certificate"]}
    for wrong, message in (
        (certificate | {"key": other}, r"the key .*other\.pem belongs to another certificate"),
        (certificate | {"key": secret}, r"secret\.pem is no key without a passphrase"),
        (swapped, r"key\.pem is no certificate"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            Endpoint(**wrong).check()


def test_the_names_of_a_server_are_its_own():
    assert Endpoint().hosts() == {"127.0.0.1", "localhost", "::1"}
    assert Endpoint("Ward.Example.", allow_plain=True).hosts() == {"ward.example"}
    assert "study.example" in Endpoint("0.0.0.0", names=["study.example"], allow_plain=True).hosts()
    assert Endpoint("0.0.0.0", names=["study.example"]).url(80) == "http://study.example:80/"
    assert Endpoint("::1").url(80) == "http://[::1]:80/"
    assert [hostname(host) for host in ("[::1]:8123", "LOCALHOST:1", "a@b", "[", "")] == [
        "::1",
        "localhost",
        "b",
        "",
        "",
    ]


def test_tokens_are_long_random_and_fit_into_a_url():
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    for token in tokens:
        check_token(token)
        assert len(token) == 43  # 256 bits in letters of 6


def test_many_addresses_and_sessions_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("hardthresh.study.serve.access.ADDRESSES", 5)
    monkeypatch.setattr("hardthresh.study.serve.access.SESSIONS", 5)
    access = Access(TOKEN, lambda: 0.0)
    for address in range(20):
        with pytest.raises(Refused):
            access.check("wrong", str(address))
    names = [access.sign_in(str(number)) for number in range(20)]
    assert len(access._wrong) == 5
    assert [access.session(name) is not None for name in names] == [False] * 15 + [True] * 5


SERVE = "import sys; from hardthresh.study.serve import run; run(sys.argv[1], port=0, **eval(sys.argv[2]))"


@pytest.fixture
def process(path):
    """Serves the study in a process of its own; returns the address that it printed."""
    started = []

    def serve(**settings):
        command = [sys.executable, "-c", SERVE, str(path), repr(settings)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return urlsplit(started[-1].stdout.readline().strip())

    yield serve
    for server in started:
        server.terminate()
        assert server.communicate()[1] == ""  # no token in any log


@pytest.mark.slow
def test_a_real_server_prints_its_address_and_limits_headers(process):
    address = process()
    assert len(address.query) == len("token=") + 43
    page = f"http://{address.netloc}/sign-in"
    with httpx2.Client(trust_env=False) as client:
        answer = client.get(page)
        assert answer.status_code == 200
        assert "server" not in answer.headers
        assert "secure" not in answer.headers["set-cookie"].lower()
        assert client.get(page, headers={"X": "x" * 100_000}).status_code == 431


@only_at("pairs")
def test_tls_makes_cookies_secure(process, certificate):
    address = process(**certificate)
    assert address.scheme == "https"
    context = ssl.create_default_context(cafile=certificate["certificate"])
    with httpx2.Client(verify=context, trust_env=False) as client:
        answer = client.get(f"https://{address.netloc}/?{address.query}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert "secure" in answer.headers["set-cookie"].lower()
