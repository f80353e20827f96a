"""The joined tuples of a few new tuples of one stream, found in the key index of the other in few calls.

After each push of a few rows, a join spends more time in calls than with rows. This is the usual case: an inner join of
two streams by equal keys, with new tuples that stand one after the other in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tureen.joining.join_input import Flags, Numbers
from tureen.joining.key_columns import key_columns, key_equalities, other_field
from tureen.keys import KeyColumns
from tureen.pot.kept_joins import Ids
from tureen.results.joins.join_inputs import numbers_of
from tureen.results.joins.kept_rows import KeptRows
from tureen.results.rows.placed_tuples import PlacedTuples
from tureen.results.rows.selection import Selection
from tureen.results.snapshot.segment import Hits, Segment
from tureen.stems.key_index import HASHED, ProbeKeys, codes_of, valid_flags
from tureen.stream_join import StreamJoin

FEW = 64
"""The maximum number of new tuples."""


class KeyPlan(NamedTuple):
    """By which columns the tuples of a stream find partners in the other one."""

    names: tuple[str, ...]
    """The columns of the stream."""
    columns: KeyColumns
    """Those of the other one, in the same order."""


@lru_cache(maxsize=1024)
def key_plan(join: StreamJoin, new: int) -> KeyPlan | None:
    """How the tuples of a stream find partners; None unless a join of two streams consists of equalities of keys."""
    if len(join.streams) != 2:
        return None
    equalities = key_equalities(join.factors, 1 - new)
    if not equalities or len(equalities) < len(join.factors) or any(each.domain in HASHED for each in equalities):
        return None
    names = tuple(other_field(factor, 1 - new).column for factor in equalities)
    return KeyPlan(names, key_columns(equalities, 1 - new))


def few_joined(rows: KeptRows, since: Ids) -> list[PlacedTuples] | None:
    """The tuples of each stream in the joined rows that contain a tuple from some id of its stream on.

    Only tuples that satisfy the clauses within the windows; an empty list if no rows are joined. None if that is not
    the usual case.
    """
    changed = [stream for stream, end in enumerate(rows.ends) if end > since[stream]]
    plan = key_plan(rows.join, changed[0]) if len(changed) == 1 else None
    if plan is None:
        return None
    new, other = rows.selections[changed[0]], rows.selections[1 - changed[0]]
    hits = _new_hits(new, since[changed[0]])
    if hits is None:
        return None
    of_new, of_other = _partners(rows, plan, hits, other) if len(hits.rows) else (_NONE, _NONE)
    if not len(of_new):
        return []
    rows.limits.check_rows(len(of_new))
    placed = [
        PlacedTuples(new.state.stream.schema, [hits.segment], of_new),
        PlacedTuples.among(other.state.stream.schema, other.state.segments, of_other),
    ]
    return placed if changed[0] == 0 else placed[::-1]


def _new_hits(selection: Selection, first_id: int) -> Hits | None:
    """The tuples of a stream from an id on, if they are few in one block of the last segment."""
    segment, (first, last) = selection.state.segments[-1], selection.ranges[-1]
    if segment.first_id > first_id or last - first > segment.rows:
        return None
    run = segment.run()
    if len(run.blocks) > 1 or not run.in_order:
        return None
    first = max(first, first_id - segment.first_id)
    if last - first > FEW:
        return None
    return segment.hits(selection.query_input, selection.selector, first, max(first, last))


def _partners(rows: KeptRows, plan: KeyPlan, hits: Hits, other: Selection) -> tuple[Numbers, Numbers]:
    """The pairs of new tuples, by their positions in their segment, and of tuples by their positions in a stream."""
    block, positions = hits.run.blocks[0], hits.rows.astype(np.int64)
    begin, end = int(positions[0]), int(positions[-1]) + 1
    probing = [block.column(name).slice(begin, end - begin) for name in plan.names]
    codes = [codes_of(column, domain) for column, (_, domain) in zip(probing, plan.columns, strict=True)]
    satisfies = np.zeros(end - begin, np.bool_)
    satisfies[positions - begin] = True
    probes = ProbeKeys.of(np.array(codes), np.logical_and.reduce([satisfies, *map(valid_flags, probing)]))
    before = 0
    of_new, of_other = [], []
    for segment, (first, last) in zip(other.state.segments, other.ranges, strict=True):
        if last > first and len(probes.numbers):
            numbers, at = rows.indexes.of_segment(segment, plan.columns).find(probes)
            if len(at):
                inside = _inside(other, segment, first, last, at)
                of_new.append(numbers[inside] + begin)
                of_other.append(at[inside] + before)
        before += segment.rows
    return _concatenated(of_new), _concatenated(of_other)


def _inside(selection: Selection, segment: Segment, first: int, last: int, positions: Numbers) -> Flags:
    """Which of a segment's tuples satisfy the clause of a selection in an interval."""
    if not selection.selector.clause:
        inside: Flags = (positions >= first) & (positions < last)
        return inside
    return numbers_of(selection.hits(segment, first, last), positions)[1]


def _concatenated(parts: Sequence[Numbers]) -> Numbers:
    return parts[0] if len(parts) == 1 else np.concatenate([_NONE, *parts])


_NONE: Numbers = np.empty(0, np.int64)
