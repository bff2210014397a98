"""Rows of queries: SQLite always, DuckDB and PostgreSQL where their drivers, and a server, are installed."""

import json
import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars
import pytest

from hardthresh.cli.data import Request
from hardthresh.cli.databases import Server, kind_of_database, source_of, without_password
from hardthresh.cli.reading import read
from hardthresh.core import InvalidInputError
from hardthresh.core.errors import MissingDependencyError
from levels import at_most, only_at
from patience import PATIENCE

RNG = np.random.default_rng(0)
N = 60
ROWS = [
    (i, *(float(x) for x in RNG.standard_normal(4).round(3)), int(RNG.integers(0, 9)), "ab"[i % 2]) for i in range(N)
]
ROWS = [(*row[:5], row[5], row[6], round(3 * row[2] - 2 * row[4] + 0.01 * row[5], 3)) for row in ROWS]
NAMES = ("id", "a", "b", "c", "d", "visits", "site", "y")
CREATE = (
    "CREATE TABLE patients (id INTEGER, a DOUBLE PRECISION, b DOUBLE PRECISION, c DOUBLE PRECISION, "
    "d DOUBLE PRECISION, visits INTEGER, site VARCHAR(9), y DOUBLE PRECISION)"
)
SELECT = "SELECT * FROM patients ORDER BY id"


def literal(value):
    return f"'{value}'" if isinstance(value, str) else repr(value)


INSERT = "INSERT INTO patients VALUES " + ", ".join(f"({', '.join(map(literal, row))})" for row in ROWS)


@pytest.fixture
def sqlite(folder):
    path = folder / "shop.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(CREATE)
        connection.execute(INSERT)
    connection.close()
    return path


@pytest.fixture
def duckdb(folder):
    module = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = folder / "shop.duckdb"
    with module.connect(str(path)) as connection:
        connection.execute(CREATE)
        connection.execute(INSERT)
    return path


def program(name):
    """A program of PostgreSQL, which Debian keeps out of the PATH."""
    found = [*Path("/usr/lib/postgresql").glob(f"*/bin/{name}")]
    return str(max(found)) if found else shutil.which(name)


@pytest.fixture(scope="module")
def postgresql():
    """A server of its own on a socket in a folder of its own, and the address of its database with a password."""
    pytest.importorskip("adbc_driver_postgresql", reason="the ADBC driver of PostgreSQL is not installed")
    if sys.platform == "win32" or not (program("initdb") and program("postgres")):
        pytest.skip("there is no initdb or postgres")
    user = None
    if os.getuid() == 0:  # whom postgres refuses
        names = [name for name in ("postgres", "nobody") if name in {entry.pw_name for entry in pwd.getpwall()}]
        if not names:
            pytest.skip("postgres does not run as root, and there is no other user")
        user = names[0]
    home = Path(tempfile.mkdtemp(prefix="hardthresh-pg-"))
    password = home / "password"
    password.write_text("s3cret/word")
    if user is not None:
        for path in (home, password):
            os.chown(path, pwd.getpwnam(user).pw_uid, -1)
    at = {"cwd": home, "user": user, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    subprocess.run(
        [program("initdb"), "-D", home / "data", "-U", "ann", "-A", "scram-sha-256", "--pwfile", password],
        check=True,
        **at,
    )
    options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={home}", "-c", "fsync=off"]
    server = subprocess.Popen([program("postgres"), "-D", home / "data", *options], **at)
    address = f"postgresql://ann:s3cret%2Fword@/postgres?host={home}"
    try:
        from adbc_driver_postgresql.dbapi import connect

        end = time.monotonic() + PATIENCE
        while True:
            try:
                connection = connect(address)
                break
            except Exception:
                if server.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.1)
        with connection, connection.cursor() as cursor:
            cursor.execute(CREATE)
            cursor.execute(INSERT)
            cursor.execute("CREATE TABLE prices (id INTEGER, price NUMERIC(9, 2), y DOUBLE PRECISION)")
            cursor.execute("INSERT INTO prices SELECT id, id + 0.25, y FROM patients")
            connection.commit()
        yield address
    finally:
        server.terminate()
        server.wait(PATIENCE)
        server.stderr.close()
        shutil.rmtree(home)


EVERY = pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql"])


@pytest.fixture
def database(kind, request):
    return request.getfixturevalue(kind)


@at_most(2)
@EVERY
def test_every_database_gives_the_table_of_a_csv_file(database, folder):
    polars.DataFrame(ROWS, schema=NAMES, orient="row").write_csv(folder / "table.csv")
    request = {"target": "y", "id": "id", "categorical": ["site"], "learn": False}
    from_file = read(folder / "table.csv", Request(**request))
    rows = read(source_of(str(database)), Request(**request, sql=SELECT))
    assert rows.names == from_file.names == ("a", "b", "c", "d", "visits", "site")
    assert rows.X.select("a", "b", "c", "d", "visits").equals(from_file.X.select("a", "b", "c", "d", "visits"))
    assert rows.X["site"].to_list() == from_file.X["site"].to_list()
    np.testing.assert_array_equal(rows.target, from_file.target)
    assert [*rows.ids] == [*from_file.ids]


@pytest.mark.slow
@at_most(2)
@EVERY
def test_fit_predict_and_prove_take_the_rows_of_a_query(database, done, folder):
    done("fit", database, "--sql", SELECT, "--target", "y", "--drop", "id,site", "--k", "2", "--out", "model.json")
    text = (folder / "model.json").read_text()
    assert "s3cret" not in text
    polars.DataFrame(ROWS, schema=NAMES, orient="row").write_csv(folder / "table.csv")
    done("fit", "table.csv", "--target", "y", "--drop", "id,site", "--k", "2", "--out", "other.json")
    query = "SELECT id, d, b FROM patients WHERE id < 3 ORDER BY id"
    found = done("predict", "model.json", database, "--sql", query, "--id", "id")
    assert found == "".join(done("predict", "other.json", "table.csv", "--id", "id").splitlines(keepends=True)[:4])
    assert "Proved" in done("prove", "model.json", database)  # the rows of the query of `fit`
    assert "feature" in done("stability", database, "--sql", SELECT, "--target", "y", "--drop", "id,site", "--k", "1")


@pytest.mark.slow
@EVERY
def test_errors_say_what_to_do(database, refused):
    assert refused("fit", database, "--target", "y").endswith(
        'is a database with the tables patients, prices; say which rows with --sql "SELECT * FROM ..."'
        if str(database).startswith("postgres")
        else 'is a database with the tables patients; say which rows with --sql "SELECT * FROM ..."'
    )
    said = refused("fit", database, "--sql", "SELECT * FROM nowhere", "--target", "y")
    assert "refuses the query" in said
    assert "nowhere" in said
    assert "; it has the tables patients" in said
    said = refused("fit", database, "--sql", "SELECT id, y FROM patients WHERE id < 0", "--target", "y")
    assert said.endswith("has no rows")
    said = refused("fit", database, "--sql", "SELECT a, b, b, y FROM patients", "--target", "y")
    assert "returns two columns 'b'" in said
    said = refused("fit", database, "--sql", SELECT, "--target", "z")
    assert "has no column 'z' for the target; there are: id, a, b" in said
    said = refused("fit", database, "--sql", SELECT, "--target", "y")
    assert "has 1 column without numbers: site (row 1: 'a')" in said


@pytest.mark.slow
@EVERY
def test_nothing_is_written(database, run):
    for sql in ("DELETE FROM patients", "DROP TABLE patients"):
        assert run("fit", database, "--sql", sql, "--target", "y").exit_code == 2
    run("fit", database, "--sql", "DELETE FROM patients RETURNING *", "--target", "y", "--drop", "site", "--k", "1")
    rows = read(source_of(str(database)), Request(target="y", sql=SELECT, drop=["site"]))
    assert rows.X.shape == (N, 6)


def test_numbers_that_a_server_keeps_exactly_are_numbers(postgresql):
    rows = read(source_of(postgresql), Request(target="y", sql="SELECT * FROM prices ORDER BY id"))
    np.testing.assert_array_equal(rows.X, np.column_stack([np.arange(N), np.arange(N) + 0.25]))


def test_a_password_is_never_shown(postgresql, run, folder):
    wrong = postgresql.replace("s3cret", "wr0ng")
    result = run("fit", wrong, "--sql", SELECT, "--target", "y")
    assert result.exit_code == 2
    assert "cannot be opened" in result.stderr
    for text in (result.output, result.stderr):
        assert "wr0ng" not in text
    assert "ann:***@" in result.stderr
    done = run("fit", postgresql, "--sql", SELECT, "--target", "y", "--drop", "site", "--k", "1", "--out", "m.json")
    assert done.exit_code == 0
    assert "s3cret" not in done.output
    notes = json.dumps(json.loads((folder / "m.json").read_text()))
    assert "ann:***@" in notes
    assert "s3cret" not in notes


@pytest.mark.parametrize(
    ("address", "shown", "secrets"),
    [
        ("postgresql://ann@host/shop", "postgresql://ann@host/shop", []),
        ("postgresql://ann:x%40y@host:1/shop", "postgresql://ann:***@host:1/shop", ["x%40y", "x@y"]),
        ("postgresql://ann:p@q/r@host/shop", "postgresql://ann:***@host/shop", ["p@q/r"]),
        (
            "postgres://host/shop?user=a&password=xyz&sslmode=require",
            "postgres://host/shop?user=a&password=***&sslmode=require",
            ["xyz"],
        ),
    ],
)
def test_addresses_are_shown_without_passwords(address, shown, secrets):
    server = source_of(address)
    assert isinstance(server, Server)
    assert (str(server), repr(server), server.secrets) == (shown, shown, secrets)
    assert without_password(f"{address}") == shown


def test_addresses_of_files(sqlite, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert kind_of_database(source_of("sqlite:///shop.sqlite")) == "sqlite"
    assert source_of(f"sqlite:///{sqlite}") == sqlite


def test_a_password_is_not_saved_with_a_model(sqlite, done, folder):
    """Wherever an address stands on the command line."""
    args = ["fit", sqlite, "--sql", f"{SELECT} -- postgresql://ann:s3cret@host/db", "--target", "y", "--drop", "site"]
    done(*args, "--k", "1", "--out", "m.json")
    text = (folder / "m.json").read_text()
    assert "SELECT * FROM patients" in text
    assert "s3cret" not in text


def test_an_address_of_another_kind_is_one_line(refused):
    assert refused("fit", "mysql://ann:s3cret@host/db", "--target", "y").startswith("mysql://ann:***@host/db cannot")


def test_a_query_of_a_file_that_is_no_database(refused, folder):
    (folder / "table.csv").write_text("a,y\n1,2\n2,3\n")
    assert refused("fit", "table.csv", "--sql", SELECT, "--target", "y") == (
        "--sql is for databases, and table.csv is neither an SQLite nor a DuckDB file"
    )


def test_columns_of_sqlite_that_hold_values_of_several_types(folder):
    with sqlite3.connect(folder / "any.db") as connection:
        connection.execute("CREATE TABLE t (whole, mixed, gap, text, y)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?, ?)", [(1, 1, 0.5, "1.5", 0), (2, 2.5, None, "x", 1), (3, 3, 1.5, "2", 0)]
        )
    connection.close()
    sql = "SELECT whole, mixed, gap, y FROM t"
    rows = read(folder / "any.db", Request(target="y", sql=sql, may_be_missing=True))
    np.testing.assert_array_equal(rows.X, [[1, 1, 0.5], [2, 2.5, np.nan], [3, 3, 1.5]])
    with pytest.raises(InvalidInputError, match=r"text \(row 2: 'x'\)"):
        read(folder / "any.db", Request(target="y", sql="SELECT text, y FROM t"))
    with pytest.raises(InvalidInputError, match="is no query of rows"):
        read(folder / "any.db", Request(target="y", sql="-- nothing"))


@only_at("pairs")
def test_a_driver_that_is_not_installed_is_named(folder, monkeypatch):
    (folder / "shop.duckdb").write_bytes(b"\0" * 8 + b"DUCK" + b"\0" * 32)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingDependencyError, match=r"DuckDB databases needs duckdb: install hardthresh\[cli,sql\]"):
        read(folder / "shop.duckdb", Request(target="y", sql=SELECT))
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(MissingDependencyError, match="PostgreSQL databases needs adbc_driver_postgresql"):
        read(source_of("postgresql://host/db"), Request(target="y", sql=SELECT))
