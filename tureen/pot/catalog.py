"""The catalog: a SQLite database that names the files and the standing queries that exist.

It is in WAL mode with `synchronous=FULL`. Writers begin with `BEGIN IMMEDIATE`, because a deferred transaction that
reads first fails immediately under contention. Readers copy what they need and close, because the WAL grows while a
reader is open.
"""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType

from sqlalchemy import bindparam, insert, select, update

from tureen.errors import DamagedFile, PotError, PotVersion, StorageFailed
from tureen.faults import crash_point, hold_point
from tureen.pot.bell import open_bell
from tureen.pot.catalog_creation import create_database, create_missing, missing_names
from tureen.pot.catalog_schema import all_tables
from tureen.pot.catalog_tables import counter, dead_attempts, meta
from tureen.pot.commit_token import CommitToken
from tureen.pot.connecting import Connections, has_wal, is_immutable
from tureen.pot.digest import Digest
from tureen.pot.statements import Prepared
from tureen.pot.transaction import Transaction
from tureen.pot.turn import Turn

FORMAT_VERSION = 8
"""The version of the pot's layout; earlier ones are converted (`tureen/migration/`), others refused."""

CATALOG_FILE = "catalog.sqlite"
_BELL, _TURN = "catalog.bell", "catalog.turn"

_SEQ = Prepared(select(counter.c.seq))
_NEXT_SEQ = Prepared(update(counter).values(seq=counter.c.seq + 1).returning(counter.c.seq))
_DEAD = Prepared(select(dead_attempts.c.attempt).where(dead_attempts.c.attempt == bindparam("attempt")))
_FORMAT = Prepared(select(meta.c.value).where(meta.c.key == "format"))


def micros_now() -> int:
    """The wall clock in microseconds since the epoch."""
    return time.time_ns() // 1000


class Catalog:
    """Transactions on the pot's database, and a cheap check whether it changed."""

    def __init__(self, root: Path, *, create: bool = False) -> None:
        """Open the catalog of a pot; with `create`, create it if it does not exist."""
        self.root = root
        path = root / CATALOG_FILE
        if not path.exists():
            if not create:
                raise no_pot(root)
            # SQLite gives the files beside it the same mode.
            create_database(path)
        self._immutable = is_immutable(path)
        self._connections = Connections(path)
        self._wrote = False
        self._digest = Digest(path)
        if path.exists():
            self._digest.check()
        self._turn = Turn(root / _TURN)
        self._bell = open_bell(root / _BELL)
        self._token = CommitToken(path, self._bell)
        self._prepare(create=create)

    def _prepare(self, *, create: bool) -> None:
        """Check the version, and create the tables that were added to the catalog after this pot was created.

        A new table does not affect existing data, so it does not change the format version.
        """
        try:
            with self.read() as tx:
                missing = missing_names(tx)
                is_new = create and (meta.name in missing or tx.execute(_FORMAT).scalar() is None)
                version = str(FORMAT_VERSION) if is_new else tx.execute(_FORMAT).scalar()
        except sqlite3.DatabaseError as error:
            read_only = "it was not closed properly and its directory is read-only: open it once with write permission"
            hint = None if os.access(self.root, os.W_OK) else read_only
            raise PotError(f"the catalog of '{self.root}' cannot be read", detail=str(error), hint=hint) from error
        if version != str(FORMAT_VERSION):
            raise PotVersion(
                f"the pot in '{self.root}' has format version {version}; this Tureen reads version {FORMAT_VERSION}",
                hint="open it once for writing to convert it" if _is_older(version) else "install a newer Tureen",
            )
        # A process that only reads needs no indexes and triggers.
        needed = missing if create else [name for name in missing if name in all_tables.tables]
        if is_new or (needed and not self._immutable):
            self._complete(create=create)

    def _complete(self, *, create: bool) -> None:
        """Create what is missing; of a new catalog also its first rows."""
        with self.write() as tx:
            create_missing(tx)
            if create and tx.execute(_FORMAT).first() is None:
                tx.execute(insert(meta).values(key="format", value=str(FORMAT_VERSION)))
                tx.execute(insert(meta).values(key="pot", value=uuid.uuid4().hex))
                tx.execute(insert(counter).values(id=1, seq=0, next_number=1))

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """A short read transaction."""
        self._reopen_if_writable()
        with self._connections.transaction("BEGIN") as connection:
            yield Transaction(connection)

    @contextmanager
    def _writing_turn(self) -> Iterator[None]:
        """Hold the turn to write; raises StorageFailed if its file cannot be created."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._turn.taken())
            except OSError as error:
                raise StorageFailed("the catalog could not be written", detail=error.strerror) from error
            yield

    def _reopen_if_writable(self) -> None:
        """Reconnect to a database that was opened as immutable, once another process writes to it."""
        if self._immutable and not is_immutable(self.root / CATALOG_FILE):
            self._immutable = False
            self._connections.close()

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A write transaction, committed if the block ends without an error."""
        try:
            with self._writing_turn(), self._connections.transaction("BEGIN IMMEDIATE") as connection:
                self._digest.remove()
                self._wrote = True
                yield Transaction(connection)
                with nullcontext() if self._bell is None else self._bell.ringing():
                    connection.commit()
                    crash_point("commit.before_word")
                    hold_point("commit.before_word")
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as error:
            raise StorageFailed("the catalog could not be written", detail=str(error)) from error

    def seq(self) -> int:
        """The seq of the last commit."""
        with self.read() as tx:
            return current_seq(tx)

    def token(self) -> int:
        """A number that changes exactly when a commit becomes visible; reading it takes less than a microsecond.

        Equal numbers mean that no process committed anything between the two calls.
        """
        return self._token.read()

    def write_digest(self) -> None:
        """Write the database's checksum if this process wrote to it; the next process that opens it verifies it.

        If another process is reading or writing, nothing is done.
        """
        if not self._wrote:
            return
        path = self.root / CATALOG_FILE
        with self._turn.taken(), closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            try:
                busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                # The lock keeps writers out while it is computed; later writers remove it under the same lock.
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return
            if not busy and not has_wal(path):
                self._digest.write()

    def close(self) -> None:
        """Close all connections."""
        self._token.close()
        self._connections.close()
        self._turn.close()

    def __enter__(self) -> Catalog:
        """Use the catalog in a block that closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the catalog."""
        self.close()


def _is_older(version: str | None) -> bool:
    return version is not None and version.isdigit() and int(version) < FORMAT_VERSION


def exists(root: Path) -> bool:
    """Whether there is a pot in that directory."""
    return (root / CATALOG_FILE).exists()


def accept_catalog(root: Path) -> None:
    """Accept a database whose checksum does not match, if SQLite can read all of it."""
    try:
        connection = sqlite3.connect(root / CATALOG_FILE, timeout=30)
        try:
            problems = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        problems = [str(error)]
    if problems != ["ok"]:
        damage = DamagedFile.of(root / CATALOG_FILE, "; ".join(problems))
        damage.hint = "restore a backup"
        raise damage
    Digest(root / CATALOG_FILE).remove()


def no_pot(root: Path) -> PotError:
    """The error for a directory without a pot."""
    problem = "there is no pot in" if root.is_dir() else "there is no directory"
    return PotError(f"{problem} '{root}'", hint="create a stream in it first")


def current_seq(tx: Transaction) -> int:
    """The seq of the last commit that this transaction sees."""
    return int(tx.execute(_SEQ).scalar_one())


def take_seq(tx: Transaction) -> int:
    """The seq of this commit, from the pot's one counter."""
    return int(tx.execute(_NEXT_SEQ).scalar_one())


def check_attempt(tx: Transaction, attempt: str) -> None:
    """Refuse the commit of an attempt that the sweeper has declared dead."""
    if tx.execute(_DEAD, {"attempt": attempt}).first():
        raise PotError(f"attempt {attempt} was abandoned and its files were removed")
