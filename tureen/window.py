"""Windows: which part of a stream a standing query reads, as a function of NOW.

A window is a pair of bounds, as in PSoup's BEGIN-END clause (§1.1). Both constant: snapshot.
BEGIN constant: landmark. Both relative: sliding. None: all that is retained.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_micros(moment: datetime) -> int:
    """An instant as microseconds since the epoch; a time without a zone means UTC.

    >>> to_micros(datetime(1970, 1, 1, 0, 0, 1))
    1000000
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    """The instant at a number of microseconds after the epoch."""
    return EPOCH + timedelta(microseconds=micros)


@dataclass(frozen=True, slots=True)
class Now:
    """NOW, moved by calendar months and then by microseconds."""

    micros: int = 0
    months: int = 0

    def at(self, now: int) -> int:
        """The instant of this bound at `now`."""
        if self.months:
            now = _add_months(now, self.months)
        return now + self.micros


@dataclass(frozen=True, slots=True)
class At:
    """A constant instant."""

    micros: int

    def at(self, now: int) -> int:  # noqa: ARG002 - as for the other bound
        """The instant itself, whatever `now` is."""
        return self.micros


@dataclass(frozen=True, slots=True)
class RowsBack:
    """A number of tuples before NOW, counted back from the latest by (time, tuple id)."""

    rows: int


Bound = Now | At | RowsBack


@dataclass(frozen=True, slots=True)
class Span:
    """A window at one NOW.

    It contains the tuples with `begin <= time <= end` (None: open). Where rows are counted, tuples up to `until` are
    numbered back from the latest, 1, 2, …, and the window contains those with `skip < number <= take`.
    """

    begin: int | None = None
    end: int | None = None
    take: int | None = None
    skip: int = 0
    until: int | None = None

    @property
    def counts_rows(self) -> bool:
        """Whether the span is a number of tuples."""
        return self.until is not None


_OPEN = Span()
"""The window without bounds, at any NOW."""


@dataclass(frozen=True, slots=True)
class Window:
    """BEGIN and END; a missing one is open."""

    begin: Bound | None = None
    end: Bound | None = None

    def span(self, now: int) -> Span:
        """This window at `now`.

        >>> Window(Now(-10), Now()).span(100)
        Span(begin=90, end=100, take=None, skip=0, until=None)
        """
        if self.begin is None and self.end is None:
            return _OPEN
        take = self.begin.rows if isinstance(self.begin, RowsBack) else None
        skip = self.end.rows if isinstance(self.end, RowsBack) else 0
        counts = isinstance(self.begin, RowsBack) or isinstance(self.end, RowsBack)
        return Span(
            begin=self.begin.at(now) if isinstance(self.begin, Now | At) else None,
            end=self.end.at(now) if isinstance(self.end, Now | At) else None,
            take=take,
            skip=skip,
            until=now if counts else None,
        )


WHOLE = Window()
"""All that is retained."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A window that moves in steps: step n covers `origin + n * slide <= coordinate < origin + n * slide + width`.

    The coordinate of a tuple is its time in microseconds or, with `rows`, its number in the stream by (time, tuple
    id), from 0. An answer has the steps that are whole: in the query's window and before NOW; with `partial`, all.
    """

    width: int
    slide: int
    origin: int = 0
    rows: bool = False
    partial: bool = False


def _add_months(micros: int, months: int) -> int:
    """Move an instant by calendar months, to the month's last day where the day does not exist."""
    try:
        moment = from_micros(micros)
    except OverflowError:
        return micros
    index = moment.year * 12 + moment.month - 1 + months
    year, month = divmod(index, 12)
    if not MINYEAR <= year <= MAXYEAR:
        # No tuple has such a time: the bound is effectively open.
        return to_micros(datetime.max.replace(tzinfo=UTC) if months > 0 else datetime.min.replace(tzinfo=UTC))
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return to_micros(moment.replace(year=year, month=month + 1, day=day))
