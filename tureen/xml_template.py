"""Templates: how the rows of an answer become XML.

A template is a tree of elements, texts and values of columns, with one place for the rows. It is stored as JSON in the
metadata of an answer's Arrow schema, so that it travels with the rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tureen.item_path import DEFAULT_ITEM, is_xml_name, parse_column_path

METADATA_KEY = b"tureen.xml"
"""The key of the metadata of an Arrow schema that has the template of its rows."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant text."""

    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a column as text; nothing if it is NULL."""

    column: str


@dataclass(frozen=True, slots=True)
class Subtree:
    """An element with values of columns in it; without any, there is no element unless `always`.

    Of a column with a list of values, there is an element for each. `label` is the name of a column that is not the
    name of an element. With `together`, all columns are lists of the same length, and there is an element for each
    index; it has pairs of a column and one that says which of its values are not NULL.
    """

    name: str
    column: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[Subtree, ...] = ()
    always: bool = False
    label: str | None = None
    together: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Constructor:
    """An element around other parts."""

    name: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Parts after one another; with a space between values, as in XQuery's sequences."""

    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two parts, by a BOOLEAN column; NULL is false."""

    column: str
    then: Part
    otherwise: Part


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows, each rendered by the same part."""

    each: Part


Part = Literal | Value | Subtree | Constructor | Listing | Choice | Rows

_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Literal, Value, Subtree, Constructor, Listing, Choice, Rows)
}


def default_template(columns: Sequence[str]) -> Part:
    """The template of an answer that has none: each row is an element, with columns named by their paths."""
    root, item = DEFAULT_ITEM.split("/")
    return Constructor(root, (Rows(tree_of(item, [(name, name) for name in columns], always=True)),))


def tree_of(
    name: str,
    columns: Sequence[tuple[str, str]],
    *,
    always: bool = False,
    together: tuple[tuple[str, str], ...] = (),
) -> Subtree:
    """An element with columns below it, given as pairs of a path and a column.

    >>> tree_of("i", [("a/b", "x"), ("a/c", "y")]).children[0].children[1].column
    'y'
    """
    leaves: dict[str, list[tuple[str, str]]] = {}
    attributes: list[tuple[str, str]] = []
    own: str | None = None
    labelled: list[Subtree] = []
    for path, column in columns:
        if not path:
            own = column
        elif path.startswith("@") and is_xml_name(path[1:]):
            attributes.append((path[1:], column))
        elif parse_column_path(path) is None:
            labelled.append(Subtree("column", column, label=path))
        else:
            first, _, rest = path.partition("/")
            leaves.setdefault(first, []).append((rest, column))
    children = tuple(tree_of(first.partition("[")[0], below) for first, below in leaves.items())
    return Subtree(name, own, tuple(attributes), (*children, *labelled), always, together=together)


def encode_template(template: Part) -> bytes:
    """A template as JSON."""
    return json.dumps(_encoded(template), ensure_ascii=False).encode()


def decode_template(data: bytes) -> Part:
    """The template of a JSON text that `encode_template` returned."""
    part: Part = _decoded(json.loads(data))
    return part


def _encoded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if type(value).__name__ in _KINDS:
        return {"kind": type(value).__name__, **{name: _encoded(getattr(value, name)) for name in value.__slots__}}
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(item) for item in value)
    if isinstance(value, dict):
        return _KINDS[value["kind"]](**{name: _decoded(item) for name, item in value.items() if name != "kind"})
    return value


def rows_part(template: Part) -> Part | None:
    """The part that renders one row; None if the template has no rows."""
    match template:
        case Rows(each):
            return each
        case Constructor(_, parts) | Listing(parts):
            return next((part for part in map(rows_part, parts) if part is not None), None)
    return None


def render_row(part: Part, row: Row) -> str:
    """One row as XML."""
    return "".join(_rendered(part, row, ()))


def render_rows(template: Part, rows: Iterable[Row]) -> Iterator[str]:
    """An answer as XML, in pieces: one for each row, and those around them."""
    return _rendered(template, {}, rows)


def _rendered(part: Part, row: Row, rows: Iterable[Row]) -> Iterator[str]:
    match part:
        case Literal(text):
            yield escape(text)
        case Value(column):
            yield value_text(row[column])
        case Subtree():
            yield _tree(part, row)
        case Choice(column, then, otherwise):
            yield from _rendered(then if row[column] else otherwise, row, rows)
        case Rows(each):
            for other in rows:
                yield render_row(each, other)
        case Listing(parts):
            yield from _listed(parts, row, rows)
        case Constructor(name, parts):
            content = (piece for inner in parts for piece in _rendered(inner, row, rows) if piece)
            first = next(content, None)
            if first is None:
                yield f"<{name}/>"
                return
            yield f"<{name}>{first}"
            yield from content
            yield f"</{name}>"


def _listed(parts: Sequence[Part], row: Row, rows: Iterable[Row]) -> Iterator[str]:
    after_value = False
    for part in parts:
        text = "".join(_rendered(part, row, rows))
        is_value = isinstance(part, Value) and bool(text)
        yield f" {text}" if is_value and after_value else text
        after_value = is_value or (after_value and not text)


def _tree(tree: Subtree, row: Row) -> str:
    if tree.together:
        items = (
            {column: row[column][index] if row[mask][index] else None for column, mask in tree.together}
            for index in range(len(row[tree.together[0][0]]))
        )
        return "".join(_element(tree, item) for item in items)
    if tree.column is not None and isinstance(row[tree.column], list):
        return "".join(_element(tree, {**row, tree.column: value}) for value in row[tree.column])
    return _element(tree, row)


def _element(tree: Subtree, row: Row) -> str:
    content = "" if tree.column is None else value_text(row[tree.column])
    content += "".join(_tree(child, row) for child in tree.children)
    attributes = "" if tree.label is None else f" name={quoteattr(_storable(tree.label))}"
    attributes += "".join(
        f" {name}={quoteattr(_plain_text(row[column]))}" for name, column in tree.attributes if row[column] is not None
    )
    is_null = tree.column is None or row[tree.column] is None
    if not content and not attributes.strip() and is_null and not tree.always:
        return ""
    if tree.label is not None and is_null:
        return ""
    return f"<{tree.name}{attributes}>{content}</{tree.name}>" if content else f"<{tree.name}{attributes}/>"


def value_text(value: Any) -> str:
    """A value in the content of an element."""
    return escape(_plain_text(value), {"\r": "&#13;"})


def _plain_text(value: Any) -> str:
    """A value as XQuery converts it to a string.

    >>> [_plain_text(value) for value in (2.0, 1.5e10, True, Decimal("1.50"), None)]
    ['2', '1.5E10', 'true', '1.5', '']
    """
    for kinds, text_of in _TEXTS:
        if isinstance(value, kinds):
            return text_of(value)
    return str(value)


def _double(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    if 1e-6 <= abs(value) < 1e6:
        return _decimal(Decimal(repr(value)))
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    assert isinstance(exponent, int)
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{exponent + len(digits) - 1}"


def _decimal(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _timestamp(value: datetime) -> str:
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    text = moment.replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if "." in text else text) + "Z"


def _storable(text: str) -> str:
    """A text with the characters that XML cannot have replaced."""
    return "".join(character if _is_storable(ord(character)) else "\ufffd" for character in text)


def _is_storable(code: int) -> bool:
    return (code >= 0x20 and code not in (0xFFFE, 0xFFFF)) or code in (0x9, 0xA, 0xD)


def _list(values: Sequence[Any]) -> str:
    return " ".join(map(_plain_text, values))


_TEXTS: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    (type(None), lambda _: ""),
    (bool, lambda value: str(value).lower()),
    (float, _double),
    (Decimal, _decimal),
    (datetime, _timestamp),
    (date, date.isoformat),
    (str, _storable),
    ((list, tuple), _list),
)
