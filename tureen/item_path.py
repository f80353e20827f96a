"""Paths in XML documents: of a stream's items below the root, and of its columns below an item.

An item path is a list of names: `photons/photon`. A column is named by the path of its element below the item:
`coord/cel/ra`. Of elements that are repeated, `path[1]`, `path[2]`, … and `path[last()]` select one. A path can end in
an attribute: `coord/@unit`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DEFAULT_ITEM = "rows/row"
"""The path of the items of a stream that declares none."""

LAST = -1
"""The number of the step that selects the last element of a name."""

_NAME = r"[^\W\d][\w.\-]*"
_NAMES = re.compile(_NAME)
_STEP = re.compile(rf"({_NAME})(?:\[(?:([1-9][0-9]{{0,8}})|(last\(\)))\])?")


class PathStep(NamedTuple):
    """The name of an element, and which of several to select; None if it must not be repeated."""

    name: str
    number: int | None = None


class ColumnPath(NamedTuple):
    """The path of a column: of an element, or of an attribute of one."""

    steps: tuple[PathStep, ...]
    attribute: str | None = None


def is_xml_name(text: str) -> bool:
    """Whether a text is a name of an element, without a namespace.

    >>> is_xml_name("det_time"), is_xml_name("count(*)")
    (True, False)
    """
    return _NAMES.fullmatch(text) is not None


def parse_item_path(text: str) -> tuple[str, ...] | None:
    """The names of an item path; None if the text is none.

    >>> parse_item_path("photons/photon"), parse_item_path("photons//photon")
    (('photons', 'photon'), None)
    """
    names = tuple(text.split("/"))
    return names if all(map(is_xml_name, names)) else None


def parse_column_path(text: str) -> ColumnPath | None:
    """The path of a column; None if its name is none.

    >>> parse_column_path("coord/cel[last()]/@unit")
    ColumnPath(steps=(PathStep(name='coord', number=None), PathStep(name='cel', number=-1)), attribute='unit')
    """
    *names, end = text.split("/")
    attribute = end[1:] if end.startswith("@") else None
    matches = [_STEP.fullmatch(name) for name in (names if attribute is not None else [*names, end])]
    if not all(matches) or (attribute is not None and not is_xml_name(attribute)):
        return None
    steps = (match.groups() for match in matches if match is not None)
    return ColumnPath(
        tuple(PathStep(name, int(number) if number else LAST if last else None) for name, number, last in steps),
        attribute,
    )


def is_above(path: ColumnPath, other: ColumnPath) -> bool:
    """Whether a path is the beginning of another, so that the other's element is in its element."""
    return len(path.steps) < len(other.steps) and other.steps[: len(path.steps)] == path.steps
