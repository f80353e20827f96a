"""Paged lists of a server, and the types of their entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, overload
from urllib.parse import quote

from tureen.client.json_values import parse_timestamp
from tureen.client.transport import Request, Transport
from tureen.errors import TureenError
from tureen.handle import parse_member
from tureen.window import to_micros

PAGE = 1_000
"""The number of entries per request."""


def segment(name: str) -> str:
    """Quote a name as one segment of a path.

    >>> segment("a/b c")
    'a%2Fb%20c'
    """
    if name in ("", ".", ".."):
        raise TureenError(f"'{name}' is not a valid name or handle")
    return quote(name, safe="")


def list_entries(
    transport: Transport, path: str, key: str, after: str | None, limit: int | None, owner: str | None = None
) -> list[dict[str, Any]]:
    """The entries of a list after a cursor, at most `limit` of them."""
    size = PAGE if limit is None else max(1, min(limit, PAGE))
    entries = pages(transport, path, key, size=size, after=after, owner=owner)
    return list(entries if limit is None else islice(entries, max(0, limit)))


def pages(
    transport: Transport,
    path: str,
    key: str,
    *,
    size: int = PAGE,
    after: str | None = None,
    start: int = 0,
    owner: str | None = None,
) -> Iterator[dict[str, Any]]:
    """The entries of a list, fetched page by page on demand, after a cursor or from an index on."""
    always = {"limit": size, **({} if owner is None else {"owner": owner})}
    params = {**always, **({} if after is None else {"after": after}), **({"start": start} if start else {})}
    while True:
        page = transport.send(Request("GET", path, params)).json()
        yield from page[key]
        if page["next"] is None:
            return
        params = {**always, "after": page["next"]}


@dataclass(frozen=True, slots=True)
class ListedQuery:
    """The catalog entry of a standing query."""

    id: str
    name: str | None
    sql: str
    state: str
    registered_at: int
    error: str | None
    label: str | int | None = None
    language: str = "sql"

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> ListedQuery:
        """The query of a JSON entry."""
        at = to_micros(parse_timestamp(entry["registered_at"]))
        optional = entry.get("error"), entry.get("label"), entry.get("language", "sql")
        return cls(entry["id"], entry["name"], entry["sql"], entry["state"], at, *optional)


class MemberNumbers(Sequence[int]):
    """The numbers of a template's registered queries, fetched on demand."""

    def __init__(self, transport: Transport, template: str) -> None:
        """List the queries of the template of that handle."""
        self._transport = transport
        self._path = f"/v1/templates/{segment(template)}"

    def __len__(self) -> int:
        """The number of registered queries."""
        return int(self._transport.send(Request("GET", self._path)).json()["queries"])

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        """The number at an index, or those of a slice."""
        if isinstance(index, slice):
            indices = range(*index.indices(len(self)))
            if indices.step != 1:
                return [self[position] for position in indices]
            return [_number(entry) for entry in islice(self._from(indices.start), len(indices))]
        return _number(self.entry(index))

    def entry(self, index: int) -> dict[str, Any]:
        """The catalog entry of the query at an index."""
        start = index + len(self) if index < 0 else index
        entry = next(self._from(start, 1), None) if start >= 0 else None
        if entry is None:
            raise IndexError(f"template index out of range: {index}")
        return entry

    def __iter__(self) -> Iterator[int]:
        """All numbers, in ascending order."""
        return map(_number, self._from(0))

    def _from(self, start: int, size: int = PAGE) -> Iterator[dict[str, Any]]:
        """The entries from an index on."""
        return pages(self._transport, f"{self._path}/queries", "queries", size=size, start=start)


def _number(entry: Mapping[str, Any]) -> int:
    """The number of a template's query: the part of its handle after the dot."""
    member = parse_member(entry["id"])
    assert member is not None, "the queries of a template have numbers"
    return member.number
