"""Rows on their way to a server: checked here against the stream's schema, sent as Arrow."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tureen.arguments import check_name, check_schema, check_text
from tureen.client.json_values import arrow_bytes, arrow_table, json_text
from tureen.client.listings import segment
from tureen.client.transport import ARROW, Request, Transport
from tureen.errors import Forbidden, InvalidRows
from tureen.position import Pushed
from tureen.schema import Schema, name_key
from tureen.stems.intake import from_frame, to_batch

CSV = "text/csv"
_ROWS = {"Content-Type": ARROW}
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class CsvText:
    """A part of a CSV file as text, for a server that looks its types up; errors name the line of the whole file."""

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
        """The same at its place in the file: empty lines are no rows, but they count as lines."""
        return self.header + b"\n" * (self.lines_before - self.header.count(b"\n")) + self.records


class Pushes:
    """Pushes to the streams of one server."""

    def __init__(self, transport: Transport) -> None:
        """Push to that server."""
        self._transport = transport
        self._schemas: dict[str, Schema] = {}
        self._lock = threading.Lock()

    def push(self, stream: str, rows: Any, key: str | None) -> Pushed:
        """Send rows, once or as often as it takes; return their position."""
        name = check_text(stream, "a stream's name")
        own = uuid.uuid4().hex if key is None else check_text(key, "an idempotency key")
        if isinstance(rows, CsvText):
            return self._send_csv(name, rows, own)
        known = self._known(name)
        if not hasattr(rows, "__len__"):
            # They may have to be read twice.
            rows = list(rows) if hasattr(rows, "__iter__") else rows
        try:
            return self._send(name, to_batch(known or self._fetch(name), rows), own)
        except Forbidden:
            # A token that may push and see nothing: the server alone checks the rows.
            if known is not None:
                raise
            return self._send(name, _as_it_is(rows), own)
        except InvalidRows:
            # The stream may be another one of that name since its columns were looked up.
            if known is None or self._fetch(name) == known:
                raise
        return self._send(name, to_batch(self._fetch(name), rows), own)

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
        """Look the stream's columns up again at the next push."""
        with self._lock:
            self._schemas.pop(name_key(stream), None)

    def _known(self, stream: str) -> Schema | None:
        with self._lock:
            return self._schemas.get(name_key(stream))

    def _fetch(self, stream: str) -> Schema:
        told = self._transport.send(Request("GET", f"/v1/streams/{segment(stream)}")).json()
        found = Schema.parse(told["schema"], told["time"])
        with self._lock:
            self._schemas[name_key(stream)] = found
        return found

    def _send(
        self, stream: str, batch: pa.RecordBatch | pa.Table | bytes, key: str, text: str = "application/json"
    ) -> Pushed:
        headers = {"Content-Type": text if isinstance(batch, bytes) else ARROW, "Idempotency-Key": key}
        path = f"/v1/streams/{segment(stream)}/rows"
        content = batch if isinstance(batch, bytes) else arrow_bytes(batch)
        # The key makes it safe to send it again.
        request = Request("POST", path, content=content, headers=headers, repeatable=True)
        told = self._transport.send(request).json()
        return Pushed(told["position"], told["added"])


class Tables:
    """The tables of one server."""

    def __init__(self, transport: Transport) -> None:
        """Work on the tables of that server."""
        self._transport = transport

    def create(self, name: str, schema: str | Schema | None, rows: Any, *, if_not_exists: bool = False) -> None:
        """Make a table with its first rows."""
        check_name(name, "table")
        wanted = None if schema is None else Schema(check_schema(schema).columns)
        declared, batch = _content(wanted, rows)
        params = {"name": name, "schema": declared.sql, **({"if_not_exists": "true"} if if_not_exists else {})}
        self._transport.send(
            Request("POST", "/v1/tables", params, content=arrow_bytes(batch), headers=_ROWS),
        )

    def replace(self, name: str, rows: Any) -> None:
        """Put new rows in the place of all that a table holds."""
        path = f"/v1/tables/{segment(check_text(name, 'a table’s name'))}"
        schema = Schema.parse(self._transport.send(Request("GET", path)).json()["schema"])
        if rows is None:
            raise InvalidRows("rows came as None", hint="give [] for none")
        _, batch = _content(schema, rows)
        self._transport.send(Request("PUT", f"{path}/rows", content=arrow_bytes(batch), headers=_ROWS))

    def read(self, name: str) -> pa.Table:
        """All rows of a table."""
        request = Request("GET", f"/v1/tables/{segment(name)}/rows", headers={"Accept": ARROW})
        return arrow_table(self._transport.send(request).content)


class Rules:
    """The rows of parameters of one server's templates."""

    def __init__(self, transport: Transport) -> None:
        """Work on the templates of that server."""
        self._transport = transport

    def add(self, template: str, rows: Any) -> range:
        """Add rows to a template, and return their numbers."""
        # A list of dicts goes as it is: the server knows the types that it is to have.
        as_json = isinstance(rows, list | tuple)
        content = json_text(rows).encode() if as_json else arrow_bytes(parameter_table(rows))
        headers = _JSON if as_json else _ROWS
        path = f"/v1/templates/{segment(template)}/rows"
        told = self._transport.send(Request("POST", path, content=content, headers=headers)).json()
        return range(told["first"], told["first"] + told["rows"])

    def remove(self, template: str, numbers: Any, where: Mapping[str, Any] | None) -> int:
        """Remove rows of a template by their numbers or values, and return how many they were."""
        wanted: dict[str, Any] = {}
        if numbers is not None:
            wanted["numbers"] = list(map(int, numbers)) if hasattr(numbers, "__iter__") else [numbers]
        if where is not None:
            wanted["where"] = where
        path = f"/v1/templates/{segment(template)}/rows/remove"
        request = Request(
            "POST", path, content=json_text(wanted).encode(), headers={"Content-Type": "application/json"}
        )
        return int(self._transport.send(request).json()["removed"])


def parameter_table(params: Any) -> pa.Table | pa.RecordBatch:
    """The parameters of a template as Arrow; what they must hold is the server's to say."""
    if isinstance(params, pa.Table | pa.RecordBatch):
        return params
    if hasattr(params, "to_arrow") or hasattr(params, "iloc"):
        return from_frame(params)
    if isinstance(params, list | tuple) and all(isinstance(one, Mapping) for one in params):
        try:
            return pa.Table.from_pylist(list(params))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InvalidRows("the parameters do not make a table", detail=str(error)) from None
    raise InvalidRows(f"the parameters came as {type(params).__name__}", hint="give a list of dicts or an Arrow table")


def _as_it_is(rows: Any) -> pa.Table | pa.RecordBatch | bytes:
    """Rows as Arrow where they have types, otherwise as JSON."""
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return rows
    return from_frame(rows) if hasattr(rows, "to_arrow") or hasattr(rows, "iloc") else json_text(rows).encode()


def _content(schema: Schema | None, rows: Any) -> tuple[Schema, pa.RecordBatch]:
    # It knows the pot's files, and with them a database that a client does not need otherwise.
    from tureen.stems.table_content import content_of  # noqa: PLC0415

    return content_of(schema, rows)
