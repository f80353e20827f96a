"""The gate of a stream: decides, in the order of its log, which rows of a push are accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from tureen.abstract_clock import instants
from tureen.closed.closed_set import BatchCodes, ClosedSet, row_code, type_of
from tureen.closed.closed_set import matching as matching_rows
from tureen.closed.key_codes import codes_of, has_order
from tureen.closed.key_set import NO_MARK, KeySet
from tureen.closed.last_rows import with_last_rows
from tureen.closed.pattern import CodeRange, Pattern, ValueList, code_text, moment
from tureen.closed.rules import Rules
from tureen.closed.section import ClosedRow, PlacedPattern, Section
from tureen.schema import Kind, Schema, Type

MAX_REJECTED = 10_000
"""The number of rejected rows of a push that are stored with their reasons; all of them are counted."""

_SECOND = 1_000_000
_MAX_MARK = (1 << 32) - 1
_ROUNDS = 20
"""The number of rounds after which rows are decided one by one."""
_NO_TIME = np.int64(-(1 << 62))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The accepted rows of a push, and the section with its punctuations and its rejected rows."""

    accepted: pa.RecordBatch
    section: Section


class Gate:
    """The closed set of a stream, its unique keys and the highest time seen."""

    def __init__(self, schema: Schema, rules: Rules) -> None:
        """Nothing was pushed yet."""
        self.schema, self.rules = schema, rules
        self.closed = ClosedSet(schema)
        unique = rules.unique
        self.keys = KeySet(hashed=len(unique) > 1 or not has_order(type_of(schema, unique[0]))) if unique else None
        self.highest: int | None = None

    def pass_through(
        self,
        batch: pa.RecordBatch,
        placed: Sequence[PlacedPattern],
        arrival: int,
        not_valid: Mapping[int, str] = MappingProxyType({}),
    ) -> Verdict:
        """Decide about the rows of a push, and close what its punctuations and accepted rows close.

        `not_valid` has rows that are rejected in any case, with the reason.
        """
        codes = BatchCodes(self.schema, batch)
        if self.rules.last_rows is not None:
            placed = with_last_rows(self.schema, self.rules.last_rows, codes, placed)
        refused, why = self._closed_rows(codes, placed)
        refused[list(not_valid)] = True
        refused, late, duplicate = self._undeclared_rows(codes, refused)
        if not refused.any():
            self._note(codes, None, placed, arrival)
            return Verdict(batch, Section(tuple(placed)))
        rejected = tuple(
            ClosedRow(
                _json_row(batch, row),
                not_valid[row]
                if row in not_valid
                else self._late_text(codes, row)
                if late[row]
                else self._duplicate_text(codes, row)
                if duplicate[row]
                else why.text(row),
            )
            for row in np.flatnonzero(refused)[:MAX_REJECTED].tolist()
        )
        accepted = ~refused
        self._note(codes, accepted, placed, arrival)
        before = np.concatenate([[0], np.cumsum(accepted)])
        moved = tuple(PlacedPattern(int(before[at]), pattern) for at, pattern in placed)
        section = Section(moved, rejected, int(refused.sum()))
        return Verdict(batch.filter(pa.array(accepted)), section)

    def restore(self, batch: pa.RecordBatch | None, section: Section, arrival: int) -> None:
        """Close what a record of the log closes; `batch` has its accepted rows."""
        rows = self.schema.arrow.empty_table().to_batches(max_chunksize=1) if batch is None else [batch]
        codes = BatchCodes(self.schema, rows[0] if rows else pa.RecordBatch.from_pylist([], self.schema.arrow))
        self._note(codes, None, section.patterns, arrival)

    def _closed_rows(self, codes: BatchCodes, placed: Sequence[PlacedPattern]) -> tuple[np.ndarray, _Closing]:
        """The rows that earlier punctuations close, and which ones these are."""
        why = _Closing(self.schema, codes, self.closed, placed)
        return why.refused, why

    def _undeclared_rows(self, codes: BatchCodes, closed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows that are rejected: the closed ones, the late ones and the duplicates.

        A rejected row neither advances the highest time nor closes its key. Which rows are late and duplicates depends
        on which earlier rows were accepted: rounds of all rows together are repeated until nothing changes. Each round
        decides at least one more row finally, and usually all.
        """
        nothing = np.zeros(len(closed), np.bool_)
        if not self.rules or not len(closed):
            return closed, nothing, nothing
        groups, known = self._key_groups(codes)
        times = None if self.rules.lateness is None else self._times(codes)
        accepted = ~closed
        for _ in range(_ROUNDS):
            late = nothing if times is None else self._late_rows(times, accepted)
            duplicate = known | (nothing if groups is None else _repeated(groups, accepted & ~late))
            now_accepted = ~(closed | late | duplicate)
            if np.array_equal(now_accepted, accepted):
                return ~accepted, late & ~closed, duplicate & ~closed & ~late
            accepted = now_accepted
        return self._rows_in_order(closed, groups, known, times)

    def _rows_in_order(
        self, closed: np.ndarray, groups: np.ndarray | None, known: np.ndarray, times: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `_undeclared_rows`, row by row."""
        late, duplicate = np.zeros((2, len(closed)), np.bool_)
        highest, seen = self.highest, set[int]()
        for row in np.flatnonzero(~closed).tolist():
            group = -1 if groups is None else int(groups[row])
            if times is not None and highest is not None and times[row] < highest - (self.rules.lateness or 0):
                late[row] = True
            elif known[row] or group in seen:
                duplicate[row] = True
            else:
                seen |= {group} - {-1}
                if times is not None:
                    highest = int(times[row]) if highest is None else max(highest, int(times[row]))
        return closed | late | duplicate, late, duplicate

    def _key_groups(self, codes: BatchCodes) -> tuple[np.ndarray | None, np.ndarray]:
        """The number of each row's unique key within the batch, -1 without one, and which keys are known."""
        rows = codes.batch.num_rows
        if self.keys is None:
            return None, np.zeros(rows, np.bool_)
        key = codes.of(self.rules.unique)
        order = np.argsort(key.first, kind="stable") if key.second is None else np.lexsort((key.second, key.first))
        first = key.first[order]
        starts = np.ones(rows, np.bool_)
        starts[1:] = first[1:] != first[:-1]
        if key.second is not None:
            second = key.second[order]
            starts[1:] |= second[1:] != second[:-1]
        groups = np.empty(rows, np.int64)
        groups[order] = np.cumsum(starts) - 1
        return np.where(key.valid, groups, -1), self.keys.find(key) != NO_MARK

    def _late_rows(self, times: np.ndarray, accepted: np.ndarray) -> np.ndarray:
        assert self.rules.lateness is not None
        seen = np.maximum.accumulate(np.where(accepted, times, _NO_TIME))
        before = np.concatenate([[_NO_TIME], seen[:-1]])
        if self.highest is not None:
            before = np.maximum(before, self.highest)
        return times < before - self.rules.lateness

    def _note(
        self, codes: BatchCodes, accepted: np.ndarray | None, placed: Sequence[PlacedPattern], arrival: int
    ) -> None:
        mark = min(max(arrival // _SECOND, 0), _MAX_MARK)
        if placed:
            self.closed.add_all([pattern for _, pattern in placed], [mark] * len(placed))
        if self.keys is not None:
            key = codes.of(self.rules.unique)
            valid = key.valid if accepted is None else key.valid & accepted
            self.keys.add(key._replace(valid=valid), np.full(len(valid), mark, np.uint32))
        if self.rules.lateness is not None and codes.batch.num_rows:
            times = self._times(codes)
            times = times if accepted is None else times[accepted]
            if len(times):
                self.saw(int(times.max()))

    def _times(self, codes: BatchCodes) -> np.ndarray:
        """The times of the rows in microseconds."""
        if self.schema.has_abstract_clock:
            return codes_of(Type(Kind.TIMESTAMP), instants(codes.values(str(self.schema.time)))).first
        return codes.of((self.schema.time_column,)).first

    def saw(self, time: int) -> None:
        """Note the time of an accepted tuple."""
        self.highest = time if self.highest is None else max(self.highest, time)

    def _late_text(self, codes: BatchCodes, row: int) -> str:
        time = str(self.schema.time)
        value = code_text(type_of(self.schema, time), row_code(self.schema, codes, time, row))
        allowed = timedelta(microseconds=self.rules.lateness or 0)
        return f"{time} = {value} is more than {allowed} before the highest time seen"

    def _duplicate_text(self, codes: BatchCodes, row: int) -> str:
        values = (ValueList((row_code(self.schema, codes, name, row),)) for name in self.rules.unique)
        pairs = zip(self.rules.unique, values, strict=True)
        texts = (Pattern(((name, value),)).text(self.schema) for name, value in pairs)
        return f"there is a tuple with the unique key {' AND '.join(texts)} already"

    def summary(self) -> dict[str, Any]:
        """What is closed, in numbers; None where nothing is declared."""
        highest = None if self.highest is None else moment(self.highest).isoformat()
        return {
            **self.closed.summary(),
            "unique_keys": None if self.keys is None else len(self.keys),
            "highest_time": highest if self.rules.lateness is not None else None,
        }


class _Closing:
    """Which rows of a push earlier punctuations close: those of earlier pushes, and of the same push."""

    def __init__(self, schema: Schema, codes: BatchCodes, closed: ClosedSet, placed: Sequence[PlacedPattern]) -> None:
        self._schema, self._codes, self._closed = schema, codes, closed
        rows = codes.batch.num_rows
        self._earlier = closed.find(codes) if closed and rows else None
        self.refused = np.zeros(rows, np.bool_) if self._earlier is None else self._earlier.marks != NO_MARK
        # A set merges ranges, and so loses their places: within a push, ranges are compared one by one.
        self._ranges = [placed for placed in placed if _is_range(placed.pattern) and placed.at < rows]
        self._values = ClosedSet(schema)
        kept = [placed for placed in placed if not _is_range(placed.pattern) and placed.at < rows]
        self._values.add_all([pattern for _, pattern in kept], [at for at, _ in kept])
        self._same = self._values.find(codes) if kept else None
        if self._same is not None:
            self.refused |= self._same.marks <= np.arange(rows)
        for at, pattern in self._ranges:
            self.refused[at:] |= matching_rows(schema, pattern, codes)[at:]

    def text(self, row: int) -> str:
        """The reason for the rejection of a row."""
        if self._earlier is not None and self._earlier.marks[row] != NO_MARK:
            when = moment(int(self._earlier.marks[row]) * _SECOND)
            pattern = self._closed.text(self._codes, int(self._earlier.parts[row]), row)
            return f"closed by the punctuation {pattern}, pushed at {when:%Y-%m-%d %H:%M:%S} UTC"
        if self._same is not None and self._same.marks[row] <= row:
            pattern = self._values.text(self._codes, int(self._same.parts[row]), row)
        else:
            batch = self._codes.batch.slice(row, 1)
            codes = BatchCodes(self._schema, batch)
            matched = (pattern for at, pattern in self._ranges if at <= row)
            pattern = next(candidate for candidate in matched if matching_rows(self._schema, candidate, codes)[0]).text(
                self._schema
            )
        return f"closed by the punctuation {pattern}, earlier in the same push"


def _is_range(pattern: Pattern) -> bool:
    return len(pattern.columns) == 1 and isinstance(pattern.columns[0][1], CodeRange)


def _repeated(groups: np.ndarray, accepted: np.ndarray) -> np.ndarray:
    """The rows that have the key of an earlier accepted row."""
    rows = np.arange(len(groups))
    first = np.full(len(groups) + 1, len(groups))
    keyed = accepted & (groups >= 0)
    np.minimum.at(first, groups[keyed], rows[keyed])
    first[-1] = len(groups)
    repeated: np.ndarray = first[groups] < rows
    return repeated


def _json_row(batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    values: dict[str, Any] = batch.slice(row, 1).to_pylist()[0]
    return values
