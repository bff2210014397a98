"""The rows of a query: of an SQLite or DuckDB file, or of a PostgreSQL server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from hardthresh.core.errors import InvalidInputError, MissingDependencyError
from hardthresh.core.repeats import first_repeat

from .data import listed

_FILES = {"sqlite": (0, b"SQLite format 3\0"), "duckdb": (8, b"DUCK")}
"""Where files of each kind have a mark, and the mark."""
_SCHEMES = {"postgresql": "postgresql", "postgres": "postgresql"}
_NEEDS = {"duckdb": ("duckdb", "pyarrow"), "postgresql": ("adbc_driver_postgresql", "pyarrow")}
_TITLES = {"sqlite": "SQLite", "duckdb": "DuckDB", "postgresql": "PostgreSQL"}
_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1",
    "duckdb": "SELECT table_name FROM information_schema.tables ORDER BY 1",
    "postgresql": "SELECT table_name FROM information_schema.tables "
    "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
}


@dataclass(frozen=True, slots=True, repr=False)
class Server:
    """The address of a database server, which is shown without its password."""

    uri: str

    def __str__(self) -> str:
        return without_password(self.uri)

    __repr__ = __str__

    @property
    def secrets(self) -> list[str]:
        """The passwords in the address, as they stand there and decoded."""
        found = [match[1] for match in _PARAMETER.finditer(self.uri)]
        user, at, _ = _authority(self.uri)[1].rpartition("@")
        found += [user.partition(":")[2]] if at else []
        return sorted({form for text in found if text for form in (text, unquote(text))}, key=len, reverse=True)


_PARAMETER = re.compile(r"(?<=[?&])\w*password=([^&]*)")


def _authority(uri: str) -> tuple[str, str, str]:
    """Return the scheme of an address with its "://", what stands up to its parameters, and these."""
    scheme, mark, rest = uri.partition("://")
    place, question, parameters = rest.partition("?")
    return scheme + mark, place, question + parameters


def without_password(text: str) -> str:
    """Return an address with *** instead of passwords, and any other text as it is.

    Examples
    --------
    >>> without_password("postgresql://ann:s3cret@host/shop?sslpassword=x")
    'postgresql://ann:***@host/shop?sslpassword=***'
    >>> without_password("data.csv")
    'data.csv'
    """
    if "://" not in text:
        return text
    scheme, place, parameters = _authority(text)
    user, at, host = place.rpartition("@")
    name, colon, _ = user.partition(":")
    shown = f"{name}{':***' if colon else ''}{at}{host}"
    return scheme + shown + _PARAMETER.sub(lambda found: found[0].removesuffix(found[1]) + "***", parameters)


def source_of(text: str) -> Path | Server:
    """Return what an argument names: the address of a server, or a file.

    ``sqlite:///shop.db`` and ``duckdb:///shop.db`` are the file shop.db of this folder.
    """
    scheme, mark, rest = text.partition("://")
    if not mark:
        return Path(text)
    return Path(rest.removeprefix("/")) if scheme in _FILES else Server(text)


def kind_of_database(source: Path | Server) -> str | None:
    """Return which kind of database a source is, files by what they begin with; None of other files.

    Raises
    ------
    InvalidInputError
        For servers of other kinds.
    """
    if isinstance(source, Server):
        scheme = source.uri.partition("://")[0]
        if scheme not in _SCHEMES:
            raise InvalidInputError(
                f"{source} cannot be read; addresses begin with {' or '.join([*_SCHEMES, *_FILES])}"
            )
        return _SCHEMES[scheme]
    with source.open("rb") as file:
        start = file.read(32)
    return next((kind for kind, (place, mark) in _FILES.items() if start[place:].startswith(mark)), None)


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a database, which is sent as it is: nothing is put into its text.

    Attributes
    ----------
    source : Path or Server
        The database.
    kind : str
        "sqlite", "duckdb" or "postgresql".
    sql : str
        The query.
    """

    source: Path | Server
    kind: str
    sql: str

    def __str__(self) -> str:
        return str(self.source)

    def frame(self) -> Any:
        """Return the rows as a polars data frame.

        Raises
        ------
        MissingDependencyError
            Without the driver.
        InvalidInputError
            If there is no such server, table or column, or two columns of the rows have the same name.
        """
        with self._connected() as connection:
            try:
                return _READERS[self.kind](connection, self.sql)
            except self._errors() as error:
                raise InvalidInputError(f"{self} refuses the query: {self._said(error)}{self._tables()}") from error

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Connect, to read alone."""
        for module in ("polars", *_NEEDS.get(self.kind, ())):
            try:
                import_module(module)
            except ImportError as error:
                raise MissingDependencyError(
                    f"reading {_TITLES[self.kind]} databases needs {module}: install hardthresh[cli,sql]"
                ) from error
        try:
            connection = _CONNECT[self.kind](self.source)
        except self._errors() as error:
            raise InvalidInputError(f"{self} cannot be opened: {self._said(error)}") from error
        with closing(connection):
            yield connection

    def _errors(self) -> tuple[type[Exception], ...]:
        if self.kind == "postgresql":
            error: type[Exception] = import_module("adbc_driver_manager").Error
        else:
            error = import_module("sqlite3" if self.kind == "sqlite" else "duckdb").Error
        return (error,)

    def _said(self, error: Exception) -> str:
        """Return the first line of what a driver said, without passwords."""
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        if isinstance(self.source, Server):
            said = said.replace(self.source.uri, str(self.source))
            for secret in self.source.secrets:
                said = said.replace(secret, "***")
        return said.rstrip(".")

    def _tables(self) -> str:
        """Return the end of a message that lists the tables; nothing if they cannot be read, either."""
        errors: tuple[type[Exception], ...] = (InvalidInputError, *self._errors())
        try:
            with self._connected() as connection, closing(connection.cursor()) as cursor:
                cursor.execute(_TABLES[self.kind])
                names = [str(row[0]) for row in cursor.fetchall()]
        except errors:
            return ""
        return f"; it has the tables {listed(names)}" if names else "; it has no tables"

    def refuse_without_sql(self) -> None:
        """Raise an error that says which tables there are."""
        raise InvalidInputError(
            f"{self} is a database{self._tables().replace('; it has', ' with')}; say which rows with "
            '--sql "SELECT * FROM ..."'
        )


def query_of(source: Path | Server, sql: str | None) -> Query | None:
    """Return the query of a source; None for a file that is no database.

    Raises
    ------
    InvalidInputError
        For a database without a query, and a query of another file.
    """
    kind = kind_of_database(source)
    if kind is None:
        if sql is not None:
            raise InvalidInputError(f"--sql is for databases, and {source} is neither an SQLite nor a DuckDB file")
        return None
    query = Query(source, kind, sql or "")
    if sql is None:
        query.refuse_without_sql()
    return query


def _open_sqlite(source: Path) -> Any:
    return import_module("sqlite3").connect(f"file:{quote(str(source.absolute()))}?mode=ro", uri=True)


def _open_duckdb(source: Path) -> Any:
    return import_module("duckdb").connect(str(source), read_only=True)


def _open_postgresql(source: Server) -> Any:
    return import_module("adbc_driver_postgresql.dbapi").connect(source.uri)


def _checked_names(names: Sequence[str], sql: str) -> Sequence[str]:
    """Return the names of columns after checking that there are some, and no two alike."""
    if not names:
        raise InvalidInputError(f"--sql {sql!r} is no query of rows; begin it with SELECT")
    twice = first_repeat(names)
    if twice is not None:
        raise InvalidInputError(f"the query returns two columns {twice!r}; rename one of them with AS")
    return names


def _sqlite_rows(connection: Any, sql: str) -> Any:
    """Return the rows of SQLite, whose columns may hold values of any type: what is not all numbers becomes text."""
    polars: Any = import_module("polars")
    with closing(connection.execute(sql)) as cursor:
        names = _checked_names([column[0] for column in cursor.description or ()], sql)
        rows = cursor.fetchall()
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return polars.DataFrame([_series(name, list(values)) for name, values in zip(names, columns, strict=True)])


def _series(name: str, values: list[Any]) -> Any:
    polars: Any = import_module("polars")
    types = {type(value) for value in values} - {type(None)}
    if types <= {int, float}:
        dtype = polars.Int64 if types == {int} else polars.Float64
        return polars.Series(name, values, dtype=dtype, strict=False)
    return polars.Series(name, [None if value is None else str(value) for value in values], dtype=polars.String)


def _duckdb_rows(connection: Any, sql: str) -> Any:
    relation = connection.sql(sql)
    names = [] if relation is None else relation.columns
    _checked_names(names, sql)
    return _from_arrow(relation.to_arrow_table())


def _postgresql_rows(connection: Any, sql: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        cursor.execute(sql)
        _checked_names([column[0] for column in cursor.description or ()], sql)
        return _from_arrow(cursor.fetch_arrow_table())


def _from_arrow(table: Any) -> Any:
    """Return an Arrow table as a data frame: exact numbers as floats, and types of a server's own as text."""
    polars: Any = import_module("polars")
    for place, field in enumerate(table.schema):
        if hasattr(field.type, "storage_type"):
            stored = table.column(place).cast(field.type.storage_type)
            table = table.set_column(place, field.name, stored)
    frame = polars.from_arrow(table)
    exact = [name for name, dtype in frame.schema.items() if str(dtype).startswith(("Decimal", "Int128"))]
    return frame.with_columns(polars.col(exact).cast(polars.Float64)) if exact else frame


_CONNECT: dict[str, Callable[[Any], Any]] = {
    "sqlite": _open_sqlite,
    "duckdb": _open_duckdb,
    "postgresql": _open_postgresql,
}
_READERS: dict[str, Callable[[Any, str], Any]] = {
    "sqlite": _sqlite_rows,
    "duckdb": _duckdb_rows,
    "postgresql": _postgresql_rows,
}
