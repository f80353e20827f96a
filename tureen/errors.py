"""All errors, as one tree.

An error has a message and, where they apply, a detail, a hint and a location in the SQL text.

```
TureenError
├── SqlError             the SQL text is not valid; has a line and a column
│   ├── UnknownColumn    the stream has no column of that name
│   ├── TypeMismatch     operands whose types cannot be compared or combined
│   └── Unsupported      valid SQL that is not supported
├── UnknownStream        there is no stream of that name
├── UnknownTable         there is no table of that name
├── UnknownQuery         there is no query or template of that handle or name
├── UnknownFunction      there is no function of that name
├── UnknownPeer          there is no peer of that name
├── PeerFailed           a peer sent something that it must not send
├── DuplicateName        the name is in use
├── DependentStreams     a stream or table that other streams are derived from cannot be dropped
├── FunctionInUse        a function that queries call cannot be dropped or replaced
├── InvalidFunction      the definition of a function is not valid, or its module is missing
├── InvalidSchema        the properties of a stream or table are not valid
├── InvalidRows          rows that do not match the schema
│   └── InvalidPunctuation  a punctuation that does not match the schema
├── KeyConflict          an idempotency key was reused with different rows
├── QueryFailed          the query raised an error on a tuple and was stopped
│   └── LimitExceeded    an expression of the query exceeds the memory or time limit
├── WaitTimeout          a position was not reached within the timeout
├── PotError             the pot cannot be used
│   ├── PotLocked        another process writes to it
│   ├── PotVersion       it has another version of the format
│   ├── DamagedFile      a file does not contain what was written to it
│   └── StorageFailed    the disk is full, or a write did not become durable
├── EngineFailed         Spark could not be started, or the pipeline stopped
├── MissingExtra         an optional dependency is not installed
└── ServiceError         a request to a server failed
    ├── Unreachable      the server did not respond
    ├── Unauthorized     the token is missing, wrong, expired or revoked
    ├── Forbidden        the token does not permit this
    ├── UnknownToken     there is no token of that id
    ├── TooLarge         more bytes or rows than the server accepts or returns at a time
    └── TooMany          a limit of the server is reached; try again later
```
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

POT_FOLDERS = ("streams", "queries", "joins", "tables", "templates", "closed", "inbox")
"""The directories of a pot that hold files named by the catalog."""


@dataclass(frozen=True, slots=True)
class Location:
    """A location in a SQL text: line and column, both counted from 1."""

    line: int
    column: int


class TureenError(Exception):
    """A message, with an optional detail, hint and location."""

    code = "error"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        location: Location | None = None,
    ) -> None:
        """Store the parts separately, so that each interface can format them."""
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.location = location

    def __str__(self) -> str:
        """All parts as one text."""
        suffix = f" (line {self.location.line}, column {self.location.column})" if self.location else ""
        parts = [f"{self.message}{suffix}"]
        if self.detail:
            parts.append(self.detail)
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle all parts, for the way from a Spark worker to the driver."""
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
    """The SQL text is not valid."""

    code = "sql"


class UnknownColumn(SqlError):
    """The stream has no column of that name."""

    code = "unknown_column"


class TypeMismatch(SqlError):
    """Operands whose types cannot be compared or combined."""

    code = "type_mismatch"


class Unsupported(SqlError):
    """The SQL is valid, but not supported."""

    code = "unsupported"


class UnknownStream(TureenError):
    """There is no stream of that name."""

    code = "unknown_stream"


class UnknownTable(TureenError):
    """There is no table of that name."""

    code = "unknown_table"


class UnknownQuery(TureenError):
    """There is no standing query or template of that handle or name."""

    code = "unknown_query"


class UnknownFunction(TureenError):
    """There is no function of that name."""

    code = "unknown_function"


class UnknownPeer(TureenError):
    """There is no peer of that name."""

    code = "unknown_peer"


class PeerFailed(TureenError):
    """A peer sent something that it must not send."""

    code = "peer_failed"


class DuplicateName(TureenError):
    """The name is in use."""

    code = "duplicate_name"


class DependentStreams(TureenError):
    """A stream or table that other streams are derived from cannot be dropped."""

    code = "dependent_streams"


class FunctionInUse(TureenError):
    """A function that queries call cannot be dropped or replaced."""

    code = "function_in_use"


class InvalidFunction(TureenError):
    """The definition of a function is not valid, or its module is missing."""

    code = "invalid_function"


class InvalidSchema(TureenError):
    """The properties of a stream or table are not valid."""

    code = "invalid_schema"


class InvalidRows(TureenError):
    """Rows that do not match the schema; none of them was stored."""

    code = "invalid_rows"


class InvalidPunctuation(InvalidRows):
    """A punctuation that does not match the schema, or that no tuple can match."""

    code = "invalid_punctuation"


class KeyConflict(TureenError):
    """An idempotency key was reused with different rows."""

    code = "key_conflict"


class QueryFailed(TureenError):
    """The query raised an error on a tuple (overflow, invalid cast, …) and was stopped."""

    code = "query_failed"


class LimitExceeded(QueryFailed):
    """An expression of the query exceeds the memory or time limit."""

    code = "limit_exceeded"


class WaitTimeout(TureenError):
    """A position was not reached within the timeout."""

    code = "wait_timeout"


class PotError(TureenError):
    """The pot cannot be used."""

    code = "pot"


class PotLocked(PotError):
    """Another process writes to this pot."""

    code = "pot_locked"


class PotVersion(PotError):
    """The pot has another version of the format."""

    code = "pot_version"


class DamagedFile(PotError):
    """A file of the pot does not contain what was written to it, and the damaged part is needed."""

    code = "damaged_file"

    file = ""
    """The file's path from the pot's directory."""

    @classmethod
    def of(cls, path: Path, detail: str) -> DamagedFile:
        """The error for a file of a pot.

        >>> DamagedFile.of(Path("/srv/pot/streams/1/a-0.run"), "its footer is missing").message
        "file 'streams/1/a-0.run' is damaged"
        """
        folder = max((index for index, name in enumerate(path.parts) if name in POT_FOLDERS), default=-1)
        file = "/".join(path.parts[folder:])
        error = cls(
            f"file '{file}' is damaged",
            detail=detail,
            hint="'tureen verify --pot DIR' lists the damage; with --repair, it repairs what can be repaired",
        )
        error.file = file
        return error


class StorageFailed(PotError):
    """A write did not become durable, and was not acknowledged."""

    code = "storage_failed"


class EngineFailed(TureenError):
    """Spark could not be started, or the pipeline stopped."""

    code = "engine_failed"


class MissingExtra(TureenError):
    """An optional dependency is not installed."""

    code = "missing_extra"


class ServiceError(TureenError):
    """A request to a server failed, for a reason that does not exist for embedded pots."""

    code = "service"


class Unreachable(ServiceError):
    """The server did not respond."""

    code = "unreachable"


class Unauthorized(ServiceError):
    """The token is missing, wrong, expired or revoked."""

    code = "unauthorized"


class Forbidden(ServiceError):
    """The token does not permit this."""

    code = "forbidden"


class UnknownToken(ServiceError):
    """There is no token of that id."""

    code = "unknown_token"


class TooLarge(ServiceError):
    """More bytes or rows than the server accepts or returns at a time."""

    code = "too_large"


class TooMany(ServiceError):
    """A limit on queries, concurrent invocations or followers is reached."""

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
    """The hint for a misspelt name; None if no known name is similar.

    >>> nearest("prize", ["sym", "price", "qty"])
    "did you mean 'price'?"
    """
    by_key = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower(), list(by_key), n=1, cutoff=0.5)
    return f"did you mean '{by_key[matches[0]]}'?" if matches else None


def shown(value: object) -> str:
    """A value in an error message: short, in ASCII, whatever it is.

    >>> shown(0.5), shown(10**5000), shown([1] * 1000)
    ('0.5', 'an int', '[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ...')
    """
    try:
        text = ascii(value)
    except ValueError:
        # Python does not print integers of more than 4,300 digits.
        return f"an {type(value).__name__}"
    return text if len(text) <= 40 else f"{text[:37]}..."
