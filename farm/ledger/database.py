"""One database, opened in the process that uses it; short reads and immediate write transactions."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, insert, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError

from farm.errors import ConfigurationError, LedgerUnavailable, NoSpace
from farm.ledger import schema

#: How long a writer waits for another one.
BUSY_TIMEOUT_S = 30.0
_DURABLE = "FULL"  # waits for the disk at each commit
_QUICK = "NORMAL"  # survives the end of any process, not a loss of power


class Database:
    """A SQLite file or a PostgreSQL server behind two doors, `read` and `write`.

    The engine is made at first use and anew after a fork, so that no connection is shared.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._engine: Engine | None = None
        self._pid: int | None = None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection for SELECTs; each statement stands alone. Raises LedgerUnavailable."""
        with _explained(), self._open().connect() as connection:
            yield connection

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Connection]:
        """A transaction that holds the write lock from its start. Raises LedgerUnavailable, NoSpace.

        A `durable` one is on disk when the block ends. Leases need not be: losing power ends them too.
        """
        mode = _DURABLE if durable else _QUICK
        with _explained(), self._open().execution_options(farm_write=mode).begin() as connection:
            yield connection

    def close(self) -> None:
        """Give all connections back; the next use opens new ones."""
        if self._engine is not None and self._pid == os.getpid():
            self._engine.dispose()
        self._engine = None

    def _open(self) -> Engine:
        if self._engine is not None and self._pid == os.getpid():
            return self._engine
        if self._engine is not None:
            self._engine.dispose(close=False)
        self._engine = _prepare(self._url)
        self._pid = os.getpid()
        return self._engine


def _prepare(url: str) -> Engine:
    try:
        parsed = make_url(url)
        engine = (
            create_engine(parsed, connect_args={"timeout": BUSY_TIMEOUT_S})
            if parsed.get_backend_name() == "sqlite"
            else create_engine(parsed, pool_pre_ping=True)
        )
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise ConfigurationError(f"ledger.url: {error}") from error
    if engine.dialect.name != "sqlite":
        _create(engine)
        return engine
    event.listen(engine, "connect", _sqlite_connect)
    event.listen(engine, "begin", _sqlite_begin)
    path = Path(parsed.database or "")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two processes may not turn a new file into WAL mode at once: SQLite does not wait there.
    with path.with_name(path.name + ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _create(engine)
    return engine


def _create(engine: Engine) -> None:
    with engine.execution_options(farm_write=_DURABLE).begin() as connection:
        schema.metadata.create_all(connection)
        found = connection.scalar(select(schema.meta.c.value).where(schema.meta.c.name == "version"))
        if found is None:
            connection.execute(insert(schema.meta).values(name="version", value=str(schema.VERSION)))
        elif found != str(schema.VERSION):
            raise ConfigurationError(
                f"the ledger has version {found}, this farm writes version {schema.VERSION}; "
                "move the state folder away or use the farm that wrote it"
            )


def _sqlite_connect(connection: Any, _record: Any) -> None:
    # The driver must not open transactions by itself; `_sqlite_begin` does.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _sqlite_begin(connection: Connection) -> None:
    mode = connection.get_execution_options().get("farm_write")
    if mode is not None:
        connection.exec_driver_sql(f"PRAGMA synchronous={mode}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if "disk is full" in str(error.orig):
            raise NoSpace from error
        if isinstance(error, IntegrityError):
            raise
        raise LedgerUnavailable(f"the ledger cannot be used: {error.orig}; check the state folder") from error
    except OSError as error:
        raise LedgerUnavailable(f"the ledger cannot be opened: {error}; check the state folder") from error
