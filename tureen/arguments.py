"""What callers give, checked before anything is done with it."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from numbers import Real
from pathlib import Path
from typing import Any
from unicodedata import normalize

from tureen.errors import DuplicateName, InvalidSchema, TureenError
from tureen.handle import resembles_handle
from tureen.schema import Schema, name_key

LONGEST_NAME = 255
LONGEST_TEXT = 1 << 20

_NUMBERED = re.compile(r"\.[0-9]+$")


def check_text(value: object, what: str) -> str:
    """Refuse what is not text, or is text that cannot be kept."""
    if not isinstance(value, str):
        raise TureenError(f"{what} came as {type(value).__name__}", hint="give a text")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise TureenError(f"{what} is not Unicode text", detail=ascii(value)[:80]) from None
    if size > LONGEST_TEXT:
        raise TureenError(f"{what} is {size:,} bytes long", hint=f"at most {LONGEST_TEXT:,}")
    return value


def check_name(value: object, what: str) -> str:
    """A name in Unicode's composed form (NFC); refuse those that nobody could use again."""
    name = normalize("NFC", check_text(value, f"a {what}'s name"))
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable() or "/" in name:
        raise TureenError(
            f"'{ascii(name)[1:-1][:40]}' is no name for a {what}",
            hint=f"a name has 1 to {LONGEST_NAME} printable characters, and no slash, as it stands in addresses",
        )
    if what in ("query", "template") and _NUMBERED.search(name):
        raise TureenError(f"'{name}' ends like a query of a template", hint="leave out the dot and the number")
    if resembles_handle(name):
        raise TureenError(f"'{name}' looks like a handle", hint="take a name that people can read")
    return name


def check_schema(schema: object, time: str | None = None) -> Schema:
    """The schema that a text or a schema means, with that time column."""
    if isinstance(schema, str):
        return Schema.parse(check_text(schema, "a schema"), time)
    if isinstance(schema, Schema):
        return _keepable(Schema(schema.columns, time or schema.time).checked())
    raise InvalidSchema(f"the schema came as {type(schema).__name__}", hint='as in "sym STRING, price DOUBLE"')


def _keepable(schema: Schema) -> Schema:
    """Refuse names of columns that the catalog, which keeps a schema as text, would read differently."""
    try:
        same = Schema.parse(schema.sql, schema.time) == schema
    except InvalidSchema:
        same = False
    if not same:
        odd = next((name for name in schema.names if not name or set(name) & set("`,()")), schema.names[0])
        raise InvalidSchema(f"'{odd}' is no name for a column", hint="leave out backticks, commas and parentheses")
    return schema


def check_moment(now: object) -> datetime | None:
    """Refuse a NOW that is no instant."""
    # NaT of pandas passes for a datetime, but has no year.
    if now is None or (isinstance(now, datetime) and isinstance(now.year, int)):
        return now
    raise TureenError(f"NOW came as {type(now).__name__}", hint="give a datetime; without a zone it means UTC")


def check_timeout(seconds: object) -> float | None:
    """Refuse what is no number of seconds; None is up to whoever waits."""
    if seconds is None:
        return None
    try:
        found = float(seconds) if isinstance(seconds, Real) else math.nan
    except OverflowError:
        found = math.nan
    if math.isnan(found):
        raise TureenError("the timeout is no number of seconds", hint="give one such as 2.5, or None")
    return found


def check_path(path: object) -> Path:
    """Refuse what no file system could take."""
    try:
        found = Path(path) if isinstance(path, str | os.PathLike) else None
        whole = found is not None and b"\0" not in os.fsencode(found)
    except (TypeError, UnicodeEncodeError):
        whole = False
    if found is None or not whole:
        raise TureenError(f"{ascii(path)[:80]} is no path", hint="give the directory of the pot as a text or a Path")
    return found


def check_stream(name: object, time: object, retain: object, clock: object, source: Any) -> str:
    """Refuse a stream that could not be made, whatever its columns are; its name, composed."""
    found = check_name(name, "stream")
    if clock not in ("wall", "stream"):
        raise InvalidSchema(f"unknown clock '{clock}'", hint="'wall', or 'stream' for replays")
    check_source(source)
    for text in (time, retain):
        if text is not None:
            check_text(text, "a time column or a retention")
    return found


@contextmanager
def unless_there(name: str, if_not_exists: bool, listed: Callable[[], Sequence[Mapping[str, Any]]]) -> Iterator[None]:
    """Make something inside; with `if_not_exists`, a name that one of the listed has already is passed over."""
    try:
        yield
    except DuplicateName:
        if not if_not_exists or name_key(name) not in (name_key(one["name"]) for one in listed()):
            raise


def check_source(source: Any) -> None:
    """Refuse a source that Spark could not be asked for."""
    if source is None:
        return
    hint = 'source={"format": "rate", "options": {…}}'
    if not isinstance(source, dict) or not isinstance(source.get("format"), str):
        raise InvalidSchema("a source needs a format", hint=hint)
    if not isinstance(source.get("options", {}), dict):
        raise InvalidSchema("the options of a source are a dict", hint=hint)
    try:
        json.dumps(source)
    except (TypeError, ValueError) as error:
        raise InvalidSchema("the options of a source are texts and numbers", detail=str(error), hint=hint) from None
