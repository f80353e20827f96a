"""The source of a flow: the stream or replica that it is read from."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tureen.federation.increments import Increments
from tureen.pot.home_progress import HomeProgress
from tureen.pot.streams import Stream
from tureen.predicate import Clause
from tureen.schema import Column


class FlowSource(NamedTuple):
    """A stream that lives here, or a replica and how far that is."""

    stream: Stream
    columns: tuple[str, ...]
    """The columns that are read."""
    clause: Clause
    """The factors that remain to be evaluated."""
    progress: Callable[[], HomeProgress] | None = None
    away: Callable[[], str | None] = lambda: None
    partials: tuple[Column, ...] = ()
    """The columns of partial aggregates, of a replica that has these instead of tuples."""
    increments: Increments | None = None
    """What computes partial aggregates from the tuples, if these are asked for."""
