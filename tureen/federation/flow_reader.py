"""Reading a flow: the tuples that a peer asked for, from a stream that lives here or from a replica."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.errors import UnknownStream
from tureen.federation.flow_punctuations import FlowPunctuations, with_punctuations
from tureen.federation.flow_source import FlowSource
from tureen.federation.frame import FRAME_ROWS, FlowFrame, flow_schema
from tureen.matching import Selector
from tureen.pot.home_progress import HomeProgress
from tureen.pot.registered import RegisteredInput
from tureen.predicate import Interval, Within
from tureen.results.changes.changes import NewRows, new_rows
from tureen.results.invoke import Invoker
from tureen.results.snapshot.stream_state import StreamState
from tureen.schema import ARRIVAL, HOME_ID
from tureen.sharing.partial_rows import FIRST_ID
from tureen.window import WHOLE

READ_TUPLES = 1 << 17
"""The number of tuples after which a flow is read in another step."""


FRAME_TARGET = 1 << 24
"""The bytes of the rows of a frame, on average: both sides hold one frame in memory."""


class FlowReader:
    """Reads a flow step by step. It has no durable state: its receiver sends the progress with each request."""

    def __init__(self, invoker: Invoker, source: FlowSource, after: int, punctuations: int | None = None) -> None:
        """Begin with the tuple id `after` of the home, and perhaps with punctuations from an id of the home on."""
        self._invoker, self._source = invoker, source
        self._schema = flow_schema(source.stream.visible, source.columns, source.partials)
        self._seen: tuple[str | None, HomeProgress | None] = (None, None)
        self._next_id = after
        """The next id of the home."""
        self._mark: int | None = after if source.progress is None else None
        """The next id here. Of a replica, whose tuples have ids of their own, the first read finds where to begin."""
        self._selector = Selector(source.clause, source.stream.schema)
        self._punctuations = None
        if punctuations is not None:
            self._punctuations = FlowPunctuations(invoker.view.catalog, source, is_from_start=not punctuations)

    def _state(self) -> tuple[str | None, HomeProgress | None]:
        return self._source.away(), None if self._source.progress is None else self._source.progress()

    def has_news(self) -> bool:
        """Whether there may be something to read since the last call, which costs less than reading."""
        return self._source.progress is None or self._state() != self._seen

    def read(self) -> list[FlowFrame]:
        """The frames since the last call, up to a number of tuples; without new tuples, one that has no rows."""
        # Before the rows: what was lacking may be stored while they are read, and is not among them.
        away, progress = self._seen = self._state()
        return self._invoker.with_stream(self._source.stream.id, lambda state: self._read(state, progress, away))

    def _read(self, state: StreamState, progress: HomeProgress | None, away: str | None) -> list[FlowFrame]:
        first = self._beginning(state) if self._mark is None else self._mark
        end = min(state.stream.next_id, first + READ_TUPLES)
        is_end = end >= state.stream.next_id
        if self._source.partials and not is_end:
            end = self._last_boundary(state, first, end)
        schema = state.stream.schema
        hidden = [name for name in (ARRIVAL, HOME_ID) if name in schema.stored.names]
        # A tuple without columns has at least its time.
        partials = [column.name for column in self._source.partials]
        names = [*self._source.columns, *partials, *hidden] or [schema.time_column]
        new = self._new_rows(state, names, self._selector, first, end)
        placed = [] if self._punctuations is None else self._punctuations.read(state, first, end, new.ids)
        # Rows that were stored after the progress was read are there, and perhaps more after them.
        end_id = end if progress is None else max(progress.next_id if is_end else 0, self._next_id)
        last_time = state.stream.last_time if is_end else None
        frames = with_punctuations(self._frames(new, end_id, last_time, away, is_end=is_end), placed)
        if self._source.increments is not None:
            firsts = [self._next_id, *(frame.next_id for frame in frames)]
            frames = [self._source.increments.of(frame, at) for frame, at in zip(frames, firsts, strict=False)]
        self._mark, self._next_id = end, frames[-1].next_id
        return frames

    def _beginning(self, state: StreamState) -> int:
        """The id of the first tuple of a replica that has at least the id at the home to begin with."""
        if not self._next_id:
            return 0
        selector = Selector((Within(HOME_ID, (Interval(self._next_id, None),)),), state.stream.schema)
        names = [FIRST_ID] if self._source.partials else [HOME_ID]
        new = self._new_rows(state, names, selector, 0, state.stream.next_id)
        if not len(new):
            return state.stream.next_id
        if self._source.partials and new.rows.column(FIRST_ID)[0].as_py() < self._next_id:
            raise UnknownStream(
                f"the partial aggregates of stream '{state.stream.name}' cannot be continued from here",
                detail="those that follow stand for tuples that were received",
                hint="ask its home, or a server that receives tuples",
            )
        return int(new.ids[0])

    def _last_boundary(self, state: StreamState, first: int, end: int) -> int:
        """Where the last frame begins that partial aggregates were received in; it may not be read as a whole."""
        everything = Selector((), state.stream.schema)
        new = self._new_rows(state, [FIRST_ID], everything, first, end)
        return int(new.ids[_boundaries(new.rows.column(FIRST_ID))[-1]])

    def _new_rows(self, state: StreamState, names: Sequence[str], selector: Selector, first: int, end: int) -> NewRows:
        leaf = RegisteredInput(stream_id=self._source.stream.id)
        return new_rows(state, names, WHOLE, leaf, selector, first, end)

    def _frames(
        self, new: NewRows, end_id: int, last_time: int | None, away: str | None, *, is_end: bool
    ) -> list[FlowFrame]:
        if not len(new):
            return [FlowFrame(end_id, last_time, None, is_end, away)]
        rows = new.rows
        if HOME_ID not in rows.column_names:
            rows = rows.append_column(HOME_ID, pa.array(new.ids))
        rows = rows.select(self._schema.names).cast(self._schema).combine_chunks()
        ids = np.asarray(rows.column(HOME_ID))
        frames = []
        size = max(1, min(FRAME_ROWS, FRAME_TARGET * len(rows) // max(1, rows.nbytes)))
        for start, stop in self._parts(rows, size):
            part = rows.slice(start, stop - start)
            is_last = stop == len(rows)
            next_id = int(ids[stop - 1]) + 1
            if is_last:
                next_id = max(end_id, next_id)
            batch = part.to_batches()[0] if len(part) else None
            frames.append(FlowFrame(next_id, last_time if is_last else None, batch, is_end and is_last, away))
        return frames

    def _parts(self, rows: pa.Table, size: int) -> list[tuple[int, int]]:
        """The rows of each frame; partial aggregates that were received together are sent together."""
        starts = np.arange(len(rows)) if not self._source.partials else _boundaries(rows.column(FIRST_ID))
        parts, start = [], 0
        while start < len(rows):
            later = starts[starts > start]
            fitting = later[later <= start + size]
            stop = len(rows) if start + size >= len(rows) or not len(later) else int(fitting.max(initial=later[0]))
            parts.append((start, stop))
            start = stop
        return parts


def _boundaries(firsts: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The first row of each frame in which rows of partial aggregates were received."""
    values = firsts.to_numpy()
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])
