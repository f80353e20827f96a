"""Rows sent to a server: converted here to the schema of their stream or table, and sent as Arrow."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx
import pyarrow as pa

from tureen.arguments import check_name, check_schema, check_text
from tureen.client.json_values import arrow_bytes, arrow_table, json_text
from tureen.client.listings import segment
from tureen.client.transport import ARROW, Request, Transport
from tureen.errors import Forbidden, InvalidRows
from tureen.position import Pushed
from tureen.punctuation import MARK, Punctuation
from tureen.schema import Schema, name_key
from tureen.stems.document_files import read_document
from tureen.stems.intake import from_frame, to_batch
from tureen.stems.row_items import PlacedPunctuation, split_items, with_metadata
from tureen.stems.table_content import content_of

CSV = "text/csv"
JSON = "application/json"
XML = "application/xml"
PIECE_BYTES = 1 << 16
"""The number of bytes of a stream of XML that are sent at a time."""
_ARROW_BODY = {"Content-Type": ARROW}
_JSON_BODY = {"Content-Type": JSON}


@dataclass(frozen=True)
class CsvText:
    """A part of a CSV file as text, for tokens that may not read the schema: the server assigns the types."""

    name: str
    header: bytes
    records: bytes
    lines_before: int

    @property
    def data(self) -> bytes:
        """The header and the records."""
        return self.header + self.records

    @property
    def padded(self) -> bytes:
        """The same with empty lines before the records, so that errors have the line numbers of the whole file."""
        return self.header + b"\n" * (self.lines_before - self.header.count(b"\n")) + self.records


class RowUploads:
    """Pushes to the streams of one server, whose schemas are cached."""

    def __init__(self, transport: Transport) -> None:
        """Push over that transport."""
        self._transport = transport
        self._schemas: dict[str, Schema] = {}
        self._lock = threading.Lock()

    def push(self, stream: str, rows: Any, key: str | None, punctuations: Iterable[Any] = ()) -> Pushed:
        """Send rows and punctuations, with retries, and return their position."""
        name = check_text(stream, "a stream's name")
        key = uuid.uuid4().hex if key is None else check_text(key, "an idempotency key")
        if isinstance(rows, CsvText):
            return self._send_csv(name, rows, key)
        cached = self._cached(name)
        if not hasattr(rows, "__len__"):
            # The rows may be converted twice, so an iterator is read into a list.
            rows = list(rows) if hasattr(rows, "__iter__") else rows
        rows, placed = split_items(rows)
        after = [Punctuation.of(punctuation) for punctuation in punctuations]
        try:
            return self._send(name, _with_places(to_batch(cached or self._fetch(name), rows), placed, after), key)
        except Forbidden:
            # A token with the scope `write` alone may not read the schema: the server checks the rows.
            if cached is not None:
                raise
            return self._send(name, _untyped(rows, placed, after), key)
        except InvalidRows:
            # The stream may have been dropped and created again since its schema was cached.
            if cached is None or self._fetch(name) == cached:
                raise
        return self._send(name, _with_places(to_batch(self._fetch(name), rows), placed, after), key)

    def push_xml(self, stream: str, source: Any, key: str | None, batch: int) -> Pushed:
        """Send a document, with retries, or the bytes of a file object as they are read."""
        name = check_text(stream, "a stream's name")
        key = uuid.uuid4().hex if key is None else check_text(key, "an idempotency key")
        if isinstance(source, bytes | bytearray | memoryview):
            return self._send(name, bytes(source), key, XML)
        if isinstance(source, str | os.PathLike):
            try:
                return self._send(name, read_document(source), key, XML)
            except InvalidRows as error:
                error.message = error.message.replace("'the body'", f"'{Path(source).name}'")
                raise
        if not hasattr(source, "read"):
            raise InvalidRows(f"XML must be bytes, a path or a file object, got {type(source).__name__}")
        # Without a length the server takes it as a stream: in batches, and without an end to its size.
        request = Request(
            "POST",
            f"/v1/streams/{segment(name)}/rows",
            {"batch": batch},
            content=_pieces(source),
            headers={"Content-Type": XML, "Idempotency-Key": key},
        )
        return _receipt(self._transport.send(request))

    def punctuate(self, stream: str, where: Any, key: str | None) -> Pushed:
        """Send a punctuation, with retries, and return its position."""
        path = f"/v1/streams/{segment(check_text(stream, 'a stream’s name'))}/punctuations"
        key = uuid.uuid4().hex if key is None else check_text(key, "an idempotency key")
        content = json_text({"where": Punctuation.of(where).as_json()}).encode()
        request = Request(
            "POST", path, content=content, headers={**_JSON_BODY, "Idempotency-Key": key}, repeatable=True
        )
        return Pushed(self._transport.send(request).json()["position"])

    def _send_csv(self, stream: str, text: CsvText, key: str) -> Pushed:
        try:
            try:
                return self._send(stream, text.data, key, CSV)
            except InvalidRows:
                return self._send(stream, text.padded, key, CSV)
        except InvalidRows as error:
            error.message = error.message.replace("'the body'", f"'{text.name}'")
            raise

    def forget(self, stream: str) -> None:
        """Drop the cached schema of a stream."""
        with self._lock:
            self._schemas.pop(name_key(stream), None)

    def _cached(self, stream: str) -> Schema | None:
        with self._lock:
            return self._schemas.get(name_key(stream))

    def _fetch(self, stream: str) -> Schema:
        entry = self._transport.send(Request("GET", f"/v1/streams/{segment(stream)}")).json()
        schema = Schema.parse(entry["schema"], entry["time"])
        with self._lock:
            self._schemas[name_key(stream)] = schema
        return schema

    def _send(self, stream: str, rows: pa.RecordBatch | pa.Table | bytes, key: str, media_type: str = JSON) -> Pushed:
        """Send rows as Arrow, or bytes as they are."""
        headers = {"Content-Type": media_type if isinstance(rows, bytes) else ARROW, "Idempotency-Key": key}
        path = f"/v1/streams/{segment(stream)}/rows"
        content = rows if isinstance(rows, bytes) else arrow_bytes(rows)
        # The key makes it safe to send it again.
        request = Request("POST", path, content=content, headers=headers, repeatable=True)
        return _receipt(self._transport.send(request))


class TableUploads:
    """The contents of one server's tables."""

    def __init__(self, transport: Transport) -> None:
        """Send contents over that transport."""
        self._transport = transport

    def create(self, name: str, schema: str | Schema | None, rows: Any, *, if_not_exists: bool = False) -> None:
        """Create a table with its first rows."""
        check_name(name, "table")
        declared = None if schema is None else Schema(check_schema(schema).columns)
        actual, batch = content_of(declared, rows)
        params = {"name": name, "schema": actual.sql, **({"if_not_exists": "true"} if if_not_exists else {})}
        self._transport.send(Request("POST", "/v1/tables", params, content=arrow_bytes(batch), headers=_ARROW_BODY))

    def replace(self, name: str, rows: Any) -> None:
        """Replace all rows of a table."""
        path = f"/v1/tables/{segment(check_text(name, 'a table’s name'))}"
        schema = Schema.parse(self._transport.send(Request("GET", path)).json()["schema"])
        if rows is None:
            raise InvalidRows("rows must not be None", hint="pass [] for no rows")
        _, batch = content_of(schema, rows)
        self._transport.send(Request("PUT", f"{path}/rows", content=arrow_bytes(batch), headers=_ARROW_BODY))

    def read(self, name: str) -> pa.Table:
        """All rows of a table."""
        request = Request("GET", f"/v1/tables/{segment(name)}/rows", headers={"Accept": ARROW})
        return arrow_table(self._transport.send(request).content)


class TemplateRows:
    """The parameter rows of one server's templates."""

    def __init__(self, transport: Transport) -> None:
        """Send rows over that transport."""
        self._transport = transport

    def add(self, template: str, rows: Any) -> range:
        """Add rows to a template, and return their numbers."""
        # Dicts are sent as JSON: the server knows the parameter types, which Arrow would have to guess.
        as_json = isinstance(rows, list | tuple)
        content = json_text(rows).encode() if as_json else arrow_bytes(parameter_table(rows))
        headers = _JSON_BODY if as_json else _ARROW_BODY
        path = f"/v1/templates/{segment(template)}/rows"
        result = self._transport.send(Request("POST", path, content=content, headers=headers)).json()
        return range(result["first"], result["first"] + result["rows"])

    def remove(self, template: str, numbers: Any, where: Mapping[str, Any] | None) -> int:
        """Remove rows of a template by their numbers or values, and return the number of removed rows."""
        body: dict[str, Any] = {}
        if numbers is not None:
            body["numbers"] = list(map(int, numbers)) if hasattr(numbers, "__iter__") else [numbers]
        if where is not None:
            body["where"] = where
        path = f"/v1/templates/{segment(template)}/rows/remove"
        request = Request("POST", path, content=json_text(body).encode(), headers=_JSON_BODY)
        return int(self._transport.send(request).json()["removed"])


def _receipt(response: httpx.Response) -> Pushed:
    result = response.json()
    return Pushed(result["position"], result["added"], result.get("rejected", 0))


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    read = getattr(source, "read1", source.read)
    while data := read(PIECE_BYTES):
        yield data


def parameter_table(params: Any) -> pa.Table | pa.RecordBatch:
    """The parameters of a template as Arrow; the server checks their columns."""
    if isinstance(params, pa.Table | pa.RecordBatch):
        return params
    if hasattr(params, "to_arrow") or hasattr(params, "iloc"):
        return from_frame(params)
    if isinstance(params, list | tuple) and all(isinstance(row, Mapping) for row in params):
        try:
            return pa.Table.from_pylist(list(params))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InvalidRows("the parameters cannot be converted to Arrow", detail=str(error)) from None
    raise InvalidRows(f"parameters must be a list of dicts, an Arrow table or a DataFrame, got {type(params).__name__}")


def _with_places(
    rows: pa.Table | pa.RecordBatch, placed: Sequence[PlacedPunctuation], after: Sequence[Punctuation]
) -> pa.Table | pa.RecordBatch:
    """Arrow rows with punctuations among them and after them in the metadata of their schema."""
    everything = [*placed, *(PlacedPunctuation(rows.num_rows, punctuation) for punctuation in after)]
    if not everything:
        return rows
    return with_metadata(rows, json_text([[at, punctuation.as_json()] for at, punctuation in everything]))


def _untyped(
    rows: Any, placed: Sequence[PlacedPunctuation], after: Sequence[Punctuation]
) -> pa.Table | pa.RecordBatch | bytes:
    """Rows without the stream's schema: as Arrow if they have types of their own, otherwise as JSON."""
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return _with_places(rows, placed, after)
    if hasattr(rows, "to_arrow") or hasattr(rows, "iloc"):
        return _with_places(from_frame(rows), placed, after)
    if not placed and not after:
        return json_text(rows).encode()
    items: list[Any] = list(rows)
    for at, punctuation in reversed([*placed, *(PlacedPunctuation(len(items), where) for where in after)]):
        items.insert(at, {MARK: punctuation.as_json()})
    return json_text(items).encode()
