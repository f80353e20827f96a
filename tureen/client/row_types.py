"""The column types of query results: events carry JSON, which has no timestamps, dates or decimals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tureen.client.json_values import RowReader, arrow_table, row_reader
from tureen.client.listings import segment
from tureen.client.transport import ARROW, Request, Transport
from tureen.handle import template_of
from tureen.results.answer import stored_template
from tureen.xml_template import Part


class RowTypes:
    """Converts JSON rows to the column types of their query, which are fetched once per query or template."""

    def __init__(self, transport: Transport) -> None:
        """Fetch types over that transport."""
        self._transport = transport
        self._readers: dict[str, RowReader] = {}
        self._templates: dict[str, Part | None] = {}

    def read(self, query: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Convert a JSON row of a query."""
        # All queries of a template have the same columns.
        owner = template_of(query)
        if owner not in self._readers:
            path = f"/v1/queries/{segment(query)}/result"
            request = Request("GET", path, {"limit": 0}, headers={"Accept": ARROW})
            schema = arrow_table(self._transport.send(request).content).schema
            self._readers[owner], self._templates[owner] = row_reader(schema), stored_template(schema)
        return self._readers[owner](row)

    def template(self, query: str) -> Part | None:
        """How the rows of a query become XML, if one of them was converted and it is in WXQuery."""
        return self._templates.get(template_of(query))
