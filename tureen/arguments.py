"""Validation of arguments, done before anything changes."""

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

from tureen.errors import DuplicateName, InvalidSchema, TureenError, shown
from tureen.handle import resembles_handle
from tureen.item_path import is_above, parse_column_path, parse_item_path
from tureen.schema import Schema, name_key

LONGEST_NAME = 255
LONGEST_TEXT = 1 << 20

_NUMBERED = re.compile(r"\.[0-9]+$")


def check_text(value: object, subject: str) -> str:
    """Raise unless a value is a string that can be stored; `subject` names it in the message."""
    if not isinstance(value, str):
        raise TureenError(f"{subject} must be a string, got {type(value).__name__}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise TureenError(f"{subject} must be valid Unicode", detail=ascii(value)[:80]) from None
    if size > LONGEST_TEXT:
        raise TureenError(f"{subject} must be at most {LONGEST_TEXT:,} bytes long, got {size:,}")
    return value


def check_name(value: object, kind: str) -> str:
    """A name in Unicode's composed form (NFC); raise for one that is not valid for a `kind` of object."""
    name = normalize("NFC", check_text(value, f"a {kind}'s name"))
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable() or "/" in name:
        raise TureenError(
            f"'{ascii(name)[1:-1][:40]}' is not a valid name of a {kind}",
            hint=f"a name has 1 to {LONGEST_NAME} printable characters and no slash, because it is part of URLs",
        )
    if kind in ("query", "template") and _NUMBERED.search(name):
        raise TureenError(
            f"a {kind}'s name must not end in a dot and a number, got '{name}'",
            hint="such names refer to the queries of templates",
        )
    if kind == "principal" and name.startswith("$"):
        raise TureenError(f"a principal's name must not begin with a dollar sign, got '{name}'")
    if resembles_handle(name):
        raise TureenError(f"a {kind}'s name must not look like a handle, got '{name}'")
    return name


def check_schema(schema: object, time: str | None = None) -> Schema:
    """The schema of a text or a `Schema`, with that time column."""
    if isinstance(schema, str):
        return Schema.parse(check_text(schema, "a schema"), time)
    if isinstance(schema, Schema):
        return _check_column_names(Schema(schema.columns, time or schema.time).checked())
    raise InvalidSchema(
        f"a schema must be a string or a Schema, got {type(schema).__name__}", hint='as in "sym STRING, price DOUBLE"'
    )


def _check_column_names(schema: Schema) -> Schema:
    """Raise for column names that would not survive the catalog, which stores a schema as text."""
    try:
        same = Schema.parse(schema.sql, schema.time) == schema
    except InvalidSchema:
        same = False
    if not same:
        name = next((name for name in schema.names if not name or set(name) & set("`,()")), schema.names[0])
        raise InvalidSchema(
            f"'{name}' is not a valid name of a column", hint="leave out backticks, commas and parentheses"
        )
    return schema


def check_item(item: object, schema: Schema | None) -> str:
    """The path of a stream's items; raises unless it and the columns are paths in XML."""
    text = check_text(item, "an item path")
    if parse_item_path(text) is None:
        raise InvalidSchema(f"'{text}' is not the path of an item", hint='names of elements, as in "photons/photon"')
    paths = {} if schema is None else {column.name: parse_column_path(column.name) for column in schema.columns}
    for name, path in paths.items():
        if path is None:
            raise InvalidSchema(
                f"column '{name}' is not the path of an element below an item",
                hint="such as `en`, `coord/cel/ra`, `name[1]` or `coord/@unit`",
            )
        for other, longer in paths.items():
            if longer is not None and path.attribute is None and is_above(path, longer):
                raise InvalidSchema(f"column '{name}' is a value, and column '{other}' is in its element")
    return text


def check_clock(schema: Schema | None, clock: str | None) -> str | None:
    """The clock of a new stream; raises for an abstract clock with the wall's time."""
    if schema is None or not schema.has_abstract_clock:
        return clock
    if clock == "wall":
        raise InvalidSchema(
            f"the time column '{schema.time}' is a number, which cannot follow the wall clock",
            hint="use clock='stream', or leave it out",
        )
    return "stream"


def check_format(value: object) -> bool:
    """Whether pushed rows are XML; raises for a format that is not known."""
    if value is not None and value != "xml":
        raise TureenError(f"format must be 'xml' or None, got {shown(value)}")
    return value is not None


LANGUAGES = ("sql", "wxquery")
"""The languages of queries."""


def check_language(value: object) -> str:
    """A language of queries; raises for one that is not known."""
    if value not in LANGUAGES:
        raise TureenError(f"language must be one of {', '.join(LANGUAGES)}, got {shown(value)}")
    return str(value)


def check_moment(now: object) -> datetime | None:
    """Raise unless `now` is a datetime or None."""
    # The NaT of pandas is an instance of datetime, but its year is not an integer.
    if now is None or (isinstance(now, datetime) and isinstance(now.year, int)):
        return now
    raise TureenError(f"now must be a datetime, got {type(now).__name__}", hint="without a zone it means UTC")


def check_timeout(seconds: object) -> float | None:
    """Raise unless a timeout is a number of seconds or None, which means the caller's default."""
    if seconds is None:
        return None
    try:
        timeout = float(seconds) if isinstance(seconds, Real) else math.nan
    except OverflowError:
        timeout = math.nan
    if math.isnan(timeout):
        value = "NaN" if isinstance(seconds, float) else type(seconds).__name__
        raise TureenError(f"timeout must be a number of seconds or None, got {value}")
    return timeout


def check_count(value: object, subject: str, most: int) -> int:
    """Raise unless a value is an integer from 1 to a maximum; `subject` names it in the message."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise TureenError(f"{subject} must be an integer from 1 to {most:,}, got {shown(value)}")
    return value


def check_positive(value: object, argument: str) -> int:
    """A positive integer.

    >>> check_positive(5, "limit")
    5
    """
    if type(value) is not int or not 1 <= value < 1 << 62:
        raise TureenError(f"{argument} must be a positive integer, got {shown(value)}")
    return value


def check_path(path: object) -> Path:
    """Raise for a path that no file system accepts."""
    try:
        checked = Path(path) if isinstance(path, str | os.PathLike) else None
        is_valid = checked is not None and b"\0" not in os.fsencode(checked)
    except (TypeError, UnicodeEncodeError):
        is_valid = False
    if checked is None or not is_valid:
        raise TureenError(f"the path of a pot must be a string or a Path, got {shown(path)}")
    return checked


def check_stream(
    name: object, schema: object, time: object, retain: object, clock: object, source: Any, query: object
) -> str:
    """Check the properties of a new stream other than its columns; return its name in composed form."""
    checked = check_name(name, "stream")
    if (schema is None) == (query is None):
        raise InvalidSchema("a stream needs columns, or a query that it is derived from, and not both")
    if query is not None:
        check_text(query, "a query's SQL")
        if source is not None:
            raise InvalidSchema("a stream that is derived from a query has no source")
    if clock not in ("wall", "stream", None):
        raise InvalidSchema(f"unknown clock '{clock}'", hint="use 'wall', or 'stream' for replays")
    check_source(source)
    for text in (time, retain):
        if text is not None:
            check_text(text, "a time column or a retention")
    return checked


@contextmanager
def skip_existing(
    name: str, if_not_exists: bool, list_objects: Callable[[], Sequence[Mapping[str, Any]]]
) -> Iterator[None]:
    """Create an object in the block; with `if_not_exists`, do nothing if one of the listed objects has its name."""
    try:
        yield
    except DuplicateName:
        if not if_not_exists or name_key(name) not in (name_key(existing["name"]) for existing in list_objects()):
            raise


def has_headers(source: Any) -> bool:
    """Whether a source gives the headers of its rows, as that of Kafka does with the option includeHeaders."""
    options = {} if source is None else source.get("options", {})
    return any(str(key).lower() == "includeheaders" and str(value).lower() == "true" for key, value in options.items())


def check_source(source: Any) -> None:
    """Raise unless a source has a format and options that can be stored as JSON."""
    if source is None:
        return
    hint = 'source={"format": "rate", "options": {…}}'
    if not isinstance(source, dict) or not isinstance(source.get("format"), str):
        raise InvalidSchema("a source must be a dict with a format", hint=hint)
    if not isinstance(source.get("options", {}), dict):
        raise InvalidSchema("the options of a source must be a dict", hint=hint)
    try:
        json.dumps(source)
    except (TypeError, ValueError) as error:
        raise InvalidSchema(
            "the options of a source must be strings or numbers", detail=str(error), hint=hint
        ) from None
