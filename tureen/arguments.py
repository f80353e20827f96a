"""What callers give, checked before anything is done with it."""

from __future__ import annotations

import json
import re
from typing import Any

from tureen.errors import InvalidSchema, TureenError

LONGEST_NAME = 255
LONGEST_TEXT = 1 << 20

_HANDLE = re.compile(r"[0-9a-f]{32}", re.IGNORECASE)


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
    """Refuse names that nobody could use again."""
    name = check_text(value, f"a {what}'s name")
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise TureenError(
            f"'{ascii(name)[1:40]}' is no name for a {what}",
            hint=f"a name has 1 to {LONGEST_NAME} printable characters",
        )
    if _HANDLE.fullmatch(name):
        raise TureenError(f"'{name}' looks like a handle", hint="take a name that people can read")
    return name


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
