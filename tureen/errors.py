"""Everything that can go wrong, as one tree.

An error says what happened, where it is in the SQL text (if it is there), and a hint.

```
TureenError
├── SqlError             the text cannot be understood; carries line and column
│   ├── UnknownColumn    a name that the stream does not have
│   ├── TypeMismatch     two things that cannot be compared or combined
│   └── Unsupported      SQL that is right but not taken here
├── UnknownStream        no stream of that name
├── UnknownTable         no table of that name
├── UnknownQuery         no query of that handle or name
├── DuplicateName        the name is taken
├── InvalidSchema        a stream cannot be made like that
├── InvalidRows          a push with rows that do not fit the stream
├── KeyConflict          an idempotency key used again with other rows
├── QueryFailed          this query raised on some tuple and was stopped
│   └── LimitExceeded    an expression of it takes more memory or time than it may
├── WaitTimeout          what was waited for did not come in time
├── PotError             the pot itself
│   ├── PotLocked        another process writes to it
│   ├── PotVersion       made by another version of the format
│   ├── DamagedFile      a file whose bytes are not those that were written
│   └── StorageFailed    the disk is full, or a write did not become durable
├── EngineFailed         Spark could not be started, or the pipeline stopped
├── MissingExtra         an optional part of Tureen is needed and not installed
└── ServiceError         a server refused a request for a reason of its own
    ├── Unreachable      there was no answer from the server
    ├── Unauthorized     no token, or one that is not known (any more)
    ├── Forbidden        the token may not do this
    ├── UnknownToken     no token of that id
    ├── TooLarge         more bytes or rows than the server takes or gives at a time
    └── TooMany          more at a time than the server allows; it can be tried again later
```
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

POT_FOLDERS = ("streams", "queries", "tables", "templates", "inbox")
"""The directories of a pot that hold files named by the catalog."""


@dataclass(frozen=True, slots=True)
class Location:
    """A location in a SQL text: line and column, both counted from 1."""

    line: int
    column: int


class TureenError(Exception):
    """What happened, with an optional detail, hint and location."""

    code = "error"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        location: Location | None = None,
    ) -> None:
        """Keep the parts apart, so that every surface can show them in its own way."""
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.location = location

    def __str__(self) -> str:
        """Show all parts in one text."""
        where = f" (line {self.location.line}, column {self.location.column})" if self.location else ""
        parts = [f"{self.message}{where}"]
        if self.detail:
            parts.append(self.detail)
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        """Survive the trip from a Spark worker to the driver."""
        return _rebuild, (type(self), self.message, self.detail, self.hint, self.location)


def _rebuild(
    kind: type[TureenError],
    message: str,
    detail: str | None,
    hint: str | None,
    location: Location | None,
) -> TureenError:
    return kind(message, detail=detail, hint=hint, location=location)


class SqlError(TureenError):
    """The text of a query cannot be understood."""

    code = "sql"


class UnknownColumn(SqlError):
    """A query names a column that its stream does not have."""

    code = "unknown_column"


class TypeMismatch(SqlError):
    """A query compares or combines things whose types do not fit."""

    code = "type_mismatch"


class Unsupported(SqlError):
    """The SQL is right, but is not taken here."""

    code = "unsupported"


class UnknownStream(TureenError):
    """There is no stream of that name."""

    code = "unknown_stream"


class UnknownTable(TureenError):
    """There is no table of that name."""

    code = "unknown_table"


class UnknownQuery(TureenError):
    """There is no standing query of that handle or name."""

    code = "unknown_query"


class DuplicateName(TureenError):
    """The name is taken already."""

    code = "duplicate_name"


class InvalidSchema(TureenError):
    """A stream cannot be made like that."""

    code = "invalid_schema"


class InvalidRows(TureenError):
    """Rows that do not fit the stream; none of the push was taken."""

    code = "invalid_rows"


class KeyConflict(TureenError):
    """An idempotency key came again with other rows."""

    code = "key_conflict"


class QueryFailed(TureenError):
    """The query raised on some tuple (overflow, bad cast, …) and was stopped."""

    code = "query_failed"


class LimitExceeded(QueryFailed):
    """An expression of the query takes more memory or time than it may."""

    code = "limit_exceeded"


class WaitTimeout(TureenError):
    """What was waited for did not come in time."""

    code = "wait_timeout"


class PotError(TureenError):
    """Something about the pot itself."""

    code = "pot"


class PotLocked(PotError):
    """Another process writes to this pot."""

    code = "pot_locked"


class PotVersion(PotError):
    """The pot was made by another version of the format."""

    code = "pot_version"


class DamagedFile(PotError):
    """A file of the pot does not hold what was written to it, and the answer needs the damaged part."""

    code = "damaged_file"

    file = ""
    """The file's path from the pot's directory."""

    @classmethod
    def of(cls, path: Path, detail: str) -> DamagedFile:
        """The error for a file of a pot.

        >>> DamagedFile.of(Path("/srv/pot/streams/1/a-0.run"), "its footer is missing").message
        "file 'streams/1/a-0.run' is damaged"
        """
        folder = max((number for number, name in enumerate(path.parts) if name in POT_FOLDERS), default=-1)
        file = "/".join(path.parts[folder:])
        error = cls(
            f"file '{file}' is damaged",
            detail=detail,
            hint="'tureen verify --pot DIR' lists what is damaged, and repairs what can be with --repair",
        )
        error.file = file
        return error


class StorageFailed(PotError):
    """A write did not become durable; what it carried was not acknowledged."""

    code = "storage_failed"


class EngineFailed(TureenError):
    """Spark could not be started, or the pipeline stopped."""

    code = "engine_failed"


class MissingExtra(TureenError):
    """An optional part of Tureen is needed and is not installed."""

    code = "missing_extra"


class ServiceError(TureenError):
    """A server refused a request for a reason that an embedded pot does not have."""

    code = "service"


class Unreachable(ServiceError):
    """There was no answer from the server."""

    code = "unreachable"


class Unauthorized(ServiceError):
    """The request came without a token, or with one that is wrong, expired or revoked."""

    code = "unauthorized"


class Forbidden(ServiceError):
    """The token is known, but may not do this."""

    code = "forbidden"


class UnknownToken(ServiceError):
    """There is no token of that id."""

    code = "unknown_token"


class TooLarge(ServiceError):
    """More bytes or rows than the server takes or gives at a time."""

    code = "too_large"


class TooMany(ServiceError):
    """More queries, invocations or followers at a time than the server allows."""

    code = "too_many"


@contextmanager
def needs_extra(extra: str, subject: str) -> Iterator[None]:
    """Convert the import error of a package that belongs to an extra to `MissingExtra`.

    >>> with needs_extra("engine", "tureen.open"):
    ...     raise ModuleNotFoundError(name="numba")
    Traceback (most recent call last):
    tureen.errors.MissingExtra: tureen.open needs the engine: pip install "tureen[engine]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "tureen":
            raise
        raise MissingExtra(f'{subject} needs the {extra}: pip install "tureen[{extra}]"') from error


def article(noun: str) -> str:
    """A noun with its article.

    >>> article("INT"), article("STRING")
    ('an INT', 'a STRING')
    """
    return f"{'an' if noun[:1].upper() in tuple('AEIO') else 'a'} {noun}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The hint for a misspelt name, or None where nothing is near.

    >>> nearest("prize", ["sym", "price", "qty"])
    "did you mean 'price'?"
    """
    by_key = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), list(by_key), n=1, cutoff=0.5)
    return f"did you mean '{by_key[found[0]]}'?" if found else None
