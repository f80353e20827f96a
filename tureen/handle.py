"""Handles: what identifies a registered query or template.

A query's handle is 32 hexadecimal digits. A template's is the same; a query of a template has its template's handle and
its number, as in `4f…2a.17`.
"""

from __future__ import annotations

import re
import uuid
from typing import NamedTuple

PATTERN = "[0-9a-f]{32}"
"""The regular expression of a handle without a number."""

NUMBER_PATTERN = "[0-9]{1,18}"

_HANDLE = re.compile(PATTERN)
_ANY_CASE = re.compile(PATTERN, re.IGNORECASE)
_ANY_HANDLE = re.compile(rf"{PATTERN}(\.{NUMBER_PATTERN})?")
_NUMBER = re.compile(NUMBER_PATTERN)


class Member(NamedTuple):
    """A query of a template: the handle or name of the template, and the query's number."""

    template: str
    number: int


def new_handle() -> str:
    """A handle that no other query or template has."""
    return uuid.uuid4().hex


def is_handle(text: str) -> bool:
    """Whether a text is the handle of a query or template, without a number.

    >>> is_handle("4f" * 16), is_handle("4f" * 16 + ".17"), is_handle("alerts")
    (True, False, False)
    """
    return _HANDLE.fullmatch(text) is not None


def resembles_handle(text: str) -> bool:
    """Whether a name could be mistaken for a handle, in either case of letters."""
    return _ANY_CASE.fullmatch(text) is not None


def is_query_handle(text: str) -> bool:
    """Whether a text is the handle of a query, of a template or not."""
    return _ANY_HANDLE.fullmatch(text) is not None


def member_handle(template: str, number: int) -> str:
    """The handle, or name, of a query of a template.

    >>> member_handle("alerts", 17)
    'alerts.17'
    """
    return f"{template}.{number}"


def parse_member(handle_or_name: str) -> Member | None:
    """The template and number in the handle or name of a template's query; None where it cannot be one.

    >>> parse_member("alerts.17"), parse_member("alerts")
    (Member(template='alerts', number=17), None)
    """
    template, _, digits = handle_or_name.rpartition(".")
    return Member(template, int(digits)) if template and _NUMBER.fullmatch(digits) else None


def template_of(handle: str) -> str:
    """The handle of the template that a query belongs to, or the handle itself where it belongs to none."""
    return handle.partition(".")[0]
