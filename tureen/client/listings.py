"""Lists of a server, page by page; and what their entries stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, overload
from urllib.parse import quote

from tureen.client.json_values import moment
from tureen.client.transport import Request, Transport
from tureen.errors import TureenError
from tureen.window import to_micros

PAGE = 1_000
"""How many entries of a list are asked for at a time."""


def segment(name: str) -> str:
    """A name as one segment of a path.

    >>> segment("a/b c")
    'a%2Fb%20c'
    """
    if name in ("", ".", ".."):
        raise TureenError(f"'{name}' is no name", hint="give the name, or the handle")
    return quote(name, safe="")


def listed(
    transport: Transport, path: str, key: str, after: str | None, limit: int | None, owner: str | None = None
) -> list[dict[str, Any]]:
    """Entries of a list from a place on, so many at most."""
    size = PAGE if limit is None else max(1, min(limit, PAGE))
    found = pages(transport, path, key, size=size, after=after, owner=owner)
    return list(found if limit is None else islice(found, max(0, limit)))


def pages(
    transport: Transport, path: str, key: str, *, size: int = PAGE, after: str | None = None, **more: Any
) -> Iterator[dict[str, Any]]:
    """The entries of a list, fetched as far as they are looked at; `more` says of what the list is."""
    always = {"limit": size, **{name: value for name, value in more.items() if value is not None and name != "start"}}
    params = {**always, **({} if after is None else {"after": after})}
    if more.get("start"):
        params["start"] = more["start"]
    while True:
        told = transport.send(Request("GET", path, params)).json()
        yield from told[key]
        if told["next"] is None:
            return
        params = {**always, "after": told["next"]}


@dataclass(frozen=True, slots=True)
class ListedQuery:
    """A standing query as a server's catalog has it."""

    id: str
    name: str | None
    sql: str
    state: str
    registered_at: int
    error: str | None
    label: str | int | None = None

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> ListedQuery:
        """The query that a server told of."""
        at = to_micros(moment(told["registered_at"]))
        return cls(told["id"], told["name"], told["sql"], told["state"], at, told.get("error"), told.get("label"))


class MemberNumbers(Sequence[int]):
    """The numbers of a template's queries that stand, fetched as far as they are looked at."""

    def __init__(self, transport: Transport, template: str) -> None:
        """Look at the template of that handle."""
        self._transport = transport
        self._path = f"/v1/templates/{segment(template)}"

    def __len__(self) -> int:
        """How many stand."""
        return int(self._transport.send(Request("GET", self._path)).json()["queries"])

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...
    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        """The n-th of them, or some."""
        if isinstance(place, slice):
            places = range(*place.indices(len(self)))
            if places.step != 1:
                return [self[one] for one in places]
            return [_number(one) for one in islice(self._from(places.start), len(places))]
        return _number(self.told(place))

    def told(self, place: int) -> dict[str, Any]:
        """What the server says of the n-th of them."""
        wanted = place + len(self) if place < 0 else place
        found = next(self._from(wanted, 1), None) if wanted >= 0 else None
        if found is None:
            raise IndexError(f"the template has no query at {place}")
        return found

    def __iter__(self) -> Iterator[int]:
        """All of them."""
        return map(_number, self._from(0))

    def _from(self, start: int, size: int = PAGE) -> Iterator[dict[str, Any]]:
        """The queries from a place on."""
        return pages(self._transport, f"{self._path}/queries", "queries", size=size, start=start)


def _number(told: Mapping[str, Any]) -> int:
    """The number of a query of a template."""
    return int(told["id"].rpartition(".")[2])
