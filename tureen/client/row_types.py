"""The column types of query results: events carry JSON, which has no timestamps, dates or decimals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tureen.client.json_values import RowReader, arrow_table, row_reader
from tureen.client.listings import segment
from tureen.client.transport import ARROW, Request, Transport
from tureen.handle import template_of


class RowTypes:
    """Converts JSON rows to the column types of their query, which are fetched once per query or template."""

    def __init__(self, transport: Transport) -> None:
        """Fetch types over that transport."""
        self._transport = transport
        self._readers: dict[str, RowReader] = {}

    def read(self, query: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Convert a JSON row of a query."""
        # All queries of a template have the same columns.
        owner = template_of(query)
        if owner not in self._readers:
            path = f"/v1/queries/{segment(query)}/result"
            request = Request("GET", path, {"limit": 0}, headers={"Accept": ARROW})
            self._readers[owner] = row_reader(arrow_table(self._transport.send(request).content).schema)
        return self._readers[owner](row)
