"""The types of the rows that a query gives: events carry JSON, which has no times, dates or decimals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tureen.client.json_values import Reader, arrow_table, row_reader
from tureen.client.listings import segment
from tureen.client.transport import ARROW, Request, Transport


class RowTypes:
    """What makes rows of JSON into rows of their queries' types; asked for once per query or template."""

    def __init__(self, transport: Transport) -> None:
        """Ask that server."""
        self._transport = transport
        self._readers: dict[str, Reader] = {}

    def read(self, query: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row of that query in its types."""
        # All queries of a template give the same columns.
        shape = query.partition(".")[0]
        if shape not in self._readers:
            path = f"/v1/queries/{segment(query)}/result"
            asked = Request("GET", path, {"limit": 0}, headers={"Accept": ARROW})
            self._readers[shape] = row_reader(arrow_table(self._transport.send(asked).content).schema)
        return self._readers[shape](row)
