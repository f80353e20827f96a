"""The joined tuples of a few new tuples, found in few calls.

After each push of a few rows, a join spends more time in calls than with rows. This is the usual case: an inner join of
two streams by equal keys, with a few new tuples in the last segment of one stream or of both. These find their partners
in the key index of the other stream, and in small segments by comparing all keys, which takes less time than building
an index after each push. Partners are found in the windows of the query or not: rows are compared with these later.

Without this fast path, the join is evaluated with the new tuples in its windows, which takes an invocation after a push
of one row half as long again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tureen.joining.join_input import Flags, Numbers
from tureen.joining.key_columns import key_columns, key_equalities, other_field
from tureen.keys import KeyColumns
from tureen.matching import Selector
from tureen.matching.evaluate import narrow
from tureen.pot.kept_joins import Ids
from tureen.results.joins.key_indexes import KeyIndexes
from tureen.results.rows.placed_tuples import PlacedTuples
from tureen.results.snapshot.segment import Segment
from tureen.results.snapshot.stream_state import StreamState
from tureen.stems.index import Block
from tureen.stems.key_index import EXACT, HASHED, ProbeKeys, codes_of, valid_flags
from tureen.stream_join import StreamJoin

FEW = 64
"""The maximum number of new tuples."""

MOST_PAIRS = 4_096
"""The maximum number of pairs of a new tuple and a partner."""

SMALL_SEGMENT = 1 << 14
"""A segment with at most this many pairs of a new tuple and a tuple of it is compared without an index."""

DENSE_ROWS = 1 << 12
"""If there are at most this many rows from the first to the last, a clause is evaluated for all of them: a slice takes
less time than a selection of rows."""


class KeyPlan(NamedTuple):
    """By which columns the tuples of a stream find partners in the other one."""

    names: tuple[str, ...]
    """The columns of the stream."""
    columns: KeyColumns
    """Those of the other one, in the same order."""


class FewTuples(NamedTuple):
    """New tuples of a stream that satisfy the clause: one block, and their numbers in it, ascending."""

    segment: Segment
    block: Block
    rows: Numbers


class KeyJoin(NamedTuple):
    """A join of two streams by equal keys: of each, how its tuples find partners, and the clause of a query."""

    plans: tuple[KeyPlan, KeyPlan]
    selectors: tuple[Selector, Selector]


def key_join(join: StreamJoin, selectors: Sequence[Selector]) -> KeyJoin | None:
    """Prepare a join for few new tuples; None unless it is one of two streams that consists of equalities of keys."""
    if len(join.streams) != 2:
        return None
    plans = [_key_plan(join, new) for new in (0, 1)]
    of_first, of_second = plans
    if of_first is None or of_second is None:
        return None
    return KeyJoin((of_first, of_second), (selectors[0], selectors[1]))


def _key_plan(join: StreamJoin, new: int) -> KeyPlan | None:
    equalities = key_equalities(join.factors, 1 - new)
    if not equalities or len(equalities) < len(join.factors) or any(each.domain in HASHED for each in equalities):
        return None
    names = tuple(other_field(factor, 1 - new).column for factor in equalities)
    return KeyPlan(names, key_columns(equalities, 1 - new))


def few_joined(
    join: KeyJoin, states: Sequence[StreamState], since: Ids, indexes: KeyIndexes
) -> list[Sequence[PlacedTuples]] | None:
    """The tuples of each stream in the joined rows that contain a tuple from some id of its stream on.

    All tuples satisfy the clauses. There is an entry for each stream with new tuples that have partners. None if there
    are many of them, or the new tuples are not in the last segment.
    """
    parts: list[Sequence[PlacedTuples]] = []
    for new, state in enumerate(states):
        if state.stream.next_id == since[new]:
            continue
        tuples = _new_tuples(state, join.selectors[new], since[new])
        if tuples is None:
            return None
        if not len(tuples.rows):
            continue
        other = states[1 - new]
        # Pairs of two new tuples are those of the first stream.
        end_id = None if new == 0 or other.stream.next_id == since[0] else since[0]
        pairs = _pairs(join.plans[new], tuples, other, join.selectors[1 - new], end_id, indexes)
        if pairs is None:
            return None
        of_new, of_other = pairs
        if len(of_new):
            placed = PlacedTuples(state.stream.schema, [tuples.segment], of_new)
            parts.append((placed, of_other) if new == 0 else (of_other, placed))
    return parts


def _new_tuples(state: StreamState, selector: Selector, first_id: int) -> FewTuples | None:
    """The tuples of a stream from an id on, if they are few in one block of the last segment."""
    if not state.segments:
        # All have been freed.
        return None
    segment, end = state.segments[-1], state.stream.next_id
    if segment.first_id > first_id or end - first_id > FEW:
        return None
    run = segment.run()
    if len(run.blocks) > 1:
        return None
    block, rows = run.blocks[0], segment.positions_between(first_id, end)
    if selector.clause and len(rows):
        rows = rows[_satisfy_in_block(selector, block, rows)]
    return FewTuples(segment, block, rows)


def _pairs(
    plan: KeyPlan, new: FewTuples, other: StreamState, selector: Selector, end_id: int | None, indexes: KeyIndexes
) -> tuple[Numbers, PlacedTuples] | None:
    """The pairs of new tuples and of tuples of the other stream; None if there are many.

    With `end_id`, only those of tuples before that id.
    """
    keys, rows = _keys(plan, new)
    probes: ProbeKeys | None = None
    of_new, of_other, segments = [], [], []
    before = 0
    for segment in other.segments:
        if end_id is not None and segment.first_id >= end_id:
            break
        blocks = segment.run().blocks
        if segment.rows * len(rows) <= SMALL_SEGMENT and len(blocks) == 1:
            numbers, positions = _equal_keys(blocks[0], plan.columns, keys)
        else:
            probes = probes or ProbeKeys.of(np.array(keys, np.int64), np.ones(len(rows), np.bool_))
            numbers, positions = indexes.of_segment(segment, plan.columns).find(probes)
        if len(numbers) > MOST_PAIRS:
            return None
        if len(numbers) and end_id is not None:
            is_before = segment.ids_at(positions) < end_id
            numbers, positions = numbers[is_before], positions[is_before]
        if len(numbers) and selector.clause:
            satisfies = _satisfy(selector, segment, positions)
            numbers, positions = numbers[satisfies], positions[satisfies]
        if len(numbers):
            of_new.append(rows[numbers])
            of_other.append(positions + before)
            segments.append(segment)
            before += segment.rows
    return _concatenated(of_new), PlacedTuples(other.stream.schema, segments, _concatenated(of_other))


def _keys(plan: KeyPlan, new: FewTuples) -> tuple[list[Numbers], Numbers]:
    """The keys of new tuples without a NULL, for each column, and the numbers of these tuples in their block."""
    block, rows = new.block, new.rows
    for name in plan.names:
        column = block.column(name)
        if column.null_count:
            rows = rows[valid_flags(column)[rows]]
    keys = []
    for name, (_, domain) in zip(plan.names, plan.columns, strict=True):
        plain = block.plain(name) if domain == EXACT else None
        if plain is not None:
            keys.append(plain.take(rows))
        elif len(rows):
            # The block may have many more rows.
            begin, end = int(rows[0]), int(rows[-1]) + 1
            keys.append(codes_of(block.column(name).slice(begin, end - begin), domain)[rows - begin])
        else:
            keys.append(_NONE)
    return keys, rows


def _equal_keys(block: Block, columns: KeyColumns, keys: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
    """The pairs of the number of a key and a row of a block that has it, in the order of keys."""
    equal: Flags | None = None
    for (name, domain), of_column in zip(columns, keys, strict=True):
        same = _codes(block, name, domain) == of_column[:, None]
        if block.plain(name) is None and (column := block.column(name)).null_count:
            same &= valid_flags(column)
        equal = same if equal is None else equal & same
    assert equal is not None
    numbers, rows = equal.nonzero()
    return numbers, rows


def _codes(block: Block, name: str, domain: str) -> Numbers:
    """The keys of a column; undefined for NULL."""
    if domain != EXACT:
        return codes_of(block.column(name), domain)
    plain = block.plain(name)
    return block.keys(name) if plain is None else plain


def _satisfy(selector: Selector, segment: Segment, positions: Numbers) -> Flags:
    """Which tuples of a segment satisfy a clause."""
    run = segment.run()
    if len(run.blocks) == 1:
        return _satisfy_in_block(selector, run.blocks[0], positions)
    satisfies = np.zeros(len(positions), np.bool_)
    for block, start, end in zip(run.blocks, run.starts, run.starts[1:], strict=False):
        in_block = np.flatnonzero((positions >= start) & (positions < end))
        if len(in_block):
            satisfies[in_block] = _satisfy_in_block(selector, block, positions[in_block] - start)
    return satisfies


def _satisfy_in_block(selector: Selector, block: Block, rows: Numbers) -> Flags:
    """Which rows of a block satisfy a clause, which raises for none; rows may occur often."""
    begin, end = int(rows.min()), int(rows.max()) + 1
    if end - begin > DENSE_ROWS:
        return np.isin(rows, narrow(selector.clause, block, np.unique(rows)))
    flags = np.zeros(end - begin, np.bool_)
    between = Block(block.columns.slice(begin, end - begin))
    flags[narrow(selector.clause, between, np.arange(end - begin))] = True
    satisfies: Flags = flags[rows - begin]
    return satisfies


def _concatenated(parts: Sequence[Numbers]) -> Numbers:
    return parts[0] if len(parts) == 1 else np.concatenate([_NONE, *parts])


_NONE: Numbers = np.empty(0, np.int64)
