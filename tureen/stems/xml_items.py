"""XML documents and endless XML streams as typed rows, parsed as their bytes arrive.

Each element at the item path of a stream is a row; its columns are named by paths below the item (`tureen.item_path`).
Elements that no column names are ignored, and so are namespaces. A missing element is NULL, and so is an empty one of a
column that is not a STRING.

Documents may come from anywhere: a document type declaration is an error, so that there are no entities to expand and
no files or addresses to read; the parser limits the depth to 256 elements, and a text to 10 million bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, NoReturn

import pyarrow as pa

from tureen.errors import InvalidRows, InvalidSchema, MissingExtra
from tureen.item_path import DEFAULT_ITEM, LAST, ColumnPath, parse_column_path
from tureen.schema import Column, Kind, Schema
from tureen.stems.text_values import typed_array

try:
    from lxml import etree
except ModuleNotFoundError:  # pragma: no cover - a client without the extra
    _HAS_LXML = False
else:
    _HAS_LXML = True

MAX_ITEM_BYTES = 16 << 20
"""The maximum number of bytes from the end of one item to the end of the next."""

READ_BYTES = 1 << 16
"""The number of bytes that are parsed at a time."""


@dataclass(slots=True)
class _Branch:
    """An element below an item: the column that is its text, those of its attributes, and the elements below it."""

    bit: int = 0
    column: int | None = None
    attributes: dict[str, int] = field(default_factory=dict)
    below: dict[str, _Branch] = field(default_factory=dict)
    selected: dict[int, _Branch] = field(default_factory=dict)
    """The branches of `name[1]`, …, by number."""
    is_repeatable: bool = True
    """Whether only numbered elements of this name are columns."""


class ItemReader:
    """Reads the items of one document, which is fed in pieces of any size, all by the thread that created the reader.

    The parser shares the names of elements between the documents of a thread; another thread would corrupt them.
    """

    def __init__(self, schema: Schema, item: str | None, name: str) -> None:
        """Read rows of a schema; `name` is the name of the document in error messages."""
        if not _HAS_LXML:
            raise MissingExtra("reading XML needs the package lxml", hint="pip install 'tureen[xml]'")
        self._schema, self._name, self._thread = schema, name, threading.get_ident()
        self._path = (item or DEFAULT_ITEM).split("/")
        self._root = _branches(schema)
        self._rows: list[list[str | None]] = []
        self._lines: list[int] = []
        self._bytes_since_item = 0
        self.bytes_held = 0
        """The number of bytes that were fed since rows were last taken."""
        self._is_checked = False
        # The parent of the last item: most items have the same one.
        self._parent: Any | None = None
        self._parser = etree.XMLPullParser(
            events=("end",),
            tag=f"{{*}}{self._path[-1]}",
            resolve_entities=False,
            load_dtd=False,
            no_network=True,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
        )

    @property
    def count(self) -> int:
        """The number of items that are complete and not yet taken."""
        return len(self._rows)

    def feed(self, data: bytes) -> None:
        """Parse the next bytes; raises InvalidRows, after which the reader cannot be used."""
        assert self._thread == threading.get_ident(), "a reader is used by one thread"
        for start in range(0, len(data), READ_BYTES):
            piece = data[start : start + READ_BYTES]
            try:
                self._parser.feed(piece)
            except etree.XMLSyntaxError as error:
                raise self._syntax_error(error.position, error.msg) from None
            # An entity that is not defined is only logged, and the parser would begin another document.
            for entry in self._parser.feed_error_log.filter_from_fatals():
                raise self._syntax_error((entry.line, entry.column), entry.message)
            before = len(self._rows)
            self._read_items()
            self.bytes_held += len(piece)
            self._bytes_since_item = len(piece) + (self._bytes_since_item if len(self._rows) == before else 0)
            if self._bytes_since_item > MAX_ITEM_BYTES:
                raise InvalidRows(
                    f"'{self._name}': no item ends within {MAX_ITEM_BYTES:,} bytes",
                    hint=f"the items of the stream are {'/'.join(self._path)}",
                )

    def close(self) -> None:
        """Raise InvalidRows unless the document is complete."""
        assert self._thread == threading.get_ident(), "a reader is used by one thread"
        try:
            root = self._parser.close()
        except etree.XMLSyntaxError as error:
            raise self._syntax_error(error.position, error.msg) from None
        self._read_items()
        if not self._is_checked:
            self._check_document(root)

    def take(self, limit: int | None = None) -> pa.Table:
        """The rows of the items that are complete, at most `limit`; they are not returned again."""
        rows, lines = self._rows[:limit], self._lines[:limit]
        del self._rows[:limit], self._lines[:limit]
        self.bytes_held = 0
        texts: Sequence[Sequence[str | None]] = list(zip(*rows, strict=True)) or [()] * len(self._schema.columns)
        arrays = [
            self._typed(column, column_texts, lines)
            for column, column_texts in zip(self._schema.columns, texts, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self._schema.arrow)

    def _typed(self, column: Column, texts: Sequence[str | None], lines: Sequence[int]) -> pa.Array:
        def refuse(row: int, text: str) -> NoReturn:
            self._fail(lines[row], f"column '{column.name}' is {column.type.sql}, not {text[:60]!r}")

        if column.type.kind is not Kind.STRING:
            texts = [text if text is None or text.strip() else None for text in texts]
        return typed_array(column, texts, refuse)

    def _read_items(self) -> None:
        columns, rows, lines = len(self._schema.columns), self._rows, self._lines
        for _, element in self._parser.read_events():
            if not self._is_checked:
                self._check_document(element.getroottree().getroot())
            if not self._is_item(element):
                continue
            values: list[str | None] = [None] * columns
            self._read(element, self._root, values)
            rows.append(values)
            lines.append(element.sourceline or 0)
            _forget(element)

    def _check_document(self, root: Any) -> None:
        """Raise for a document type declaration, and for another root than that of the item path."""
        self._is_checked = True
        if root.getroottree().docinfo.doctype:
            self._fail(1, "document type declarations are not supported", "remove <!DOCTYPE …>")
        if _local(str(root.tag)) != self._path[0]:
            self._fail(
                root.sourceline or 1,
                f"the root is <{_local(str(root.tag))}>, not <{self._path[0]}>",
                f"the items of the stream are {'/'.join(self._path)}",
            )

    def _is_item(self, element: Any) -> bool:
        parent = element.getparent()
        if parent is not None and parent is self._parent:
            return True
        names = [_local(str(ancestor.tag)) for ancestor in element.iterancestors()]
        is_item = names[::-1] == self._path[:-1]
        self._parent = parent if is_item else self._parent
        return is_item

    def _read(self, element: Any, branch: _Branch, values: list[str | None]) -> None:
        """Set the values of the columns at and below an element."""
        if branch.attributes:
            for attribute, column in branch.attributes.items():
                values[column] = element.get(attribute)
        if branch.column is not None:
            if len(element):
                self._fail(
                    element.sourceline or 0,
                    f"<{_local(str(element.tag))}> has elements in it, and column "
                    f"'{self._schema.columns[branch.column].name}' is a value",
                )
            values[branch.column] = element.text or ""
        elif branch.below:
            self._read_below(element, branch.below, values)

    def _read_below(self, element: Any, below: dict[str, _Branch], values: list[str | None]) -> None:
        seen, numbers = 0, dict[str, int]()
        last: dict[str, Any] = {}
        for child in element:
            name = child.tag
            branch = below.get(name)
            if branch is None and (name[0] != "{" or (branch := below.get(name := _local(name))) is None):
                continue
            if branch.selected:
                numbers[name] = numbers.get(name, 0) + 1
                if (selected := branch.selected.get(numbers[name])) is not None:
                    self._read(child, selected, values)
                last[name] = child
            if branch.is_repeatable:
                continue
            if seen & branch.bit:
                self._fail(
                    child.sourceline or 0,
                    f"<{name}> is repeated in an item",
                    f"name the column by the element to take, as in {name}[1] or {name}[last()]",
                )
            seen |= branch.bit
            self._read(child, branch, values)
        for name, child in last.items():
            if (selected := below[name].selected.get(LAST)) is not None:
                self._read(child, selected, values)

    def _syntax_error(self, position: tuple[int, int], message: str | None) -> InvalidRows:
        line, column = position
        reason = (message or "not well-formed").partition(", line ")[0]
        return InvalidRows(f"'{self._name}' line {line} column {column}: not valid XML", detail=reason)

    def _fail(self, line: int, reason: str, hint: str | None = None) -> NoReturn:
        raise InvalidRows(f"'{self._name}' line {line}: {reason}", hint=hint)


def read_xml(schema: Schema, item: str | None, data: bytes, name: str) -> pa.Table:
    """The rows of a complete document."""
    reader = ItemReader(schema, item, name)
    reader.feed(data)
    reader.close()
    return reader.take()


def read_xml_batches(reader: ItemReader, source: IO[bytes], rows: int) -> Iterator[pa.Table]:
    """The rows of a document in batches of `rows`, each as soon as its bytes have been read."""
    # `read1` returns what has arrived; `read` would wait for the whole piece.
    read = getattr(source, "read1", source.read)
    while data := read(READ_BYTES):
        reader.feed(data)
        while reader.count >= rows:
            yield reader.take(rows)
    reader.close()
    while reader.count:
        yield reader.take(rows)


def _branches(schema: Schema) -> _Branch:
    """The tree of all columns' paths."""
    root = _Branch()
    for number, column in enumerate(schema.columns):
        path = parse_column_path(column.name)
        if path is None:
            raise InvalidSchema(
                f"column '{column.name}' is not a path in XML", hint="such as `coord/cel/ra`, `name[1]` or `@id`"
            )
        branch = _branch_of(root, path)
        if path.attribute is not None:
            branch.attributes[path.attribute] = number
        else:
            branch.column = number
    return root


def _branch_of(root: _Branch, path: ColumnPath) -> _Branch:
    branch = root
    for name, number in path.steps:
        branch = branch.below.setdefault(name, _Branch(1 << len(branch.below)))
        if number is None:
            branch.is_repeatable = False
        else:
            branch = branch.selected.setdefault(number, _Branch())
    return branch


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _forget(element: Any) -> None:
    """Free an item and what came before it, so that an endless stream needs no more memory than its items."""
    element.clear()
    parent = element.getparent()
    while parent is not None:
        while element.getprevious() is not None:
            del parent[0]
        element, parent = parent, parent.getparent()
