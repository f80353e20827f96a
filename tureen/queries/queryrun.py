"""A query run: some clauses of one stream, compiled into arrays.

Everything is there once: the cut points of each column in ascending order, each distinct factor as ranges
between cut points, each clause as the numbers of its factors. Factors that are no ranges are *derived*:
evaluated once per block, whatever the number of clauses that contain them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.predicate import Clause, Factor, IsNull, Predicate, Within, load_clause
from tureen.queries.cuts import Cut, Edge, Encoding, interval_of

VERSION = 1
"""The version of the file's format."""

MOST_PARTNERS = 256
"""A derived factor of more clauses than these is evaluated for all tuples: most of them ask for most."""

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Arrays:
    """The arrays of a query run, all read-only.

    Column `c` has the cut points `cut_start[c]` to `cut_start[c + 1]`: bottom, then its keys ascending, then
    top and end. A key is `high` where it fits in 64 bits, `high` and `low` (lower word) for a wide DECIMAL,
    or the bytes of `text` from `text_start[cut]` to the next. Factor `f` looks at column `factor_column[f]`
    and is the union of the ranges `factor_start[f]` to `factor_start[f + 1]`, each from cut point `range_low`
    to cut point `range_high`. Clause `q` has the factors `clause_factor[clause_start[q] : clause_start[q + 1]]`,
    where numbers past the last factor are those of the derived ones.
    """

    ids: npt.NDArray[np.int64]
    cut_start: Ints
    high: npt.NDArray[np.int64]
    low: npt.NDArray[np.uint64]
    text_start: npt.NDArray[np.int64]
    text: npt.NDArray[np.uint8]
    factor_column: Ints
    factor_start: Ints
    range_low: Ints
    range_high: Ints
    clause_start: Ints
    clause_factor: Ints

    types: ClassVar[dict[str, Any]] = {
        "ids": np.int64,
        "high": np.int64,
        "low": np.uint64,
        "text_start": np.int64,
        "text": np.uint8,
    }

    @classmethod
    def of(cls, parts: Mapping[str, Any]) -> Arrays:
        """Take each array in its type, and let nobody write to it.

        Compiled code is made per kind of array; were some of them writable it would be made twice.
        """
        arrays = {}
        for one in fields(cls):
            array = np.ascontiguousarray(parts[one.name], cls.types.get(one.name, np.int32)).view()
            array.flags.writeable = False
            arrays[one.name] = array
        return cls(**arrays)


@dataclass(frozen=True, eq=False)
class QueryRun:
    """Compiled clauses: the names and encodings of the columns they use, the arrays, the derived factors."""

    names: tuple[str, ...]
    encodings: tuple[Encoding, ...]
    arrays: Arrays
    derived_texts: Sequence[str]

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """The clauses' ids, ascending."""
        return self.arrays.ids

    def __len__(self) -> int:
        """The number of clauses."""
        return len(self.arrays.ids)

    @property
    def factors(self) -> int:
        """The number of distinct factors that are ranges."""
        return len(self.arrays.factor_column)

    @cached_property
    def derived(self) -> tuple[Predicate, ...]:
        """The distinct factors that are no ranges."""
        return tuple(load_clause(text)[0] for text in self.derived_texts)

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """For each derived factor, the positions of the clauses that contain it."""
        users: list[list[int]] = [[] for _ in self.derived]
        places = np.flatnonzero(self.arrays.clause_factor >= self.factors)
        clauses = np.searchsorted(self.arrays.clause_start, places, side="right") - 1
        for place, clause in zip(places.tolist(), clauses.tolist(), strict=True):
            users[int(self.arrays.clause_factor[place]) - self.factors].append(clause)
        return tuple(tuple(found) for found in users)

    @cached_property
    def partners(self) -> tuple[tuple[tuple[int, ...], ...] | None, ...]:
        """For each derived factor, the range factors that stand beside it, clause by clause, each set once.

        None where it stands alone in some clause, or beside too many: then all tuples are asked about it.
        """
        found: list[tuple[tuple[int, ...], ...] | None] = []
        start, factors = self.arrays.clause_start, self.arrays.clause_factor
        for users in self.users:
            sets = {
                tuple(one for one in factors[start[user] : start[user + 1]].tolist() if one < self.factors)
                for user in users[: MOST_PARTNERS + 1]
            }
            found.append(None if () in sets or len(users) > MOST_PARTNERS else tuple(sorted(sets)))
        return tuple(found)

    def clause(self, position: int) -> Clause:
        """A clause that holds for the same tuples as the one compiled at that position."""
        start, end = self.arrays.clause_start[position : position + 2].tolist()
        numbers = self.arrays.clause_factor[start:end].tolist()
        return tuple(self._factor(number) for number in numbers)

    def _factor(self, number: int) -> Factor:
        if number >= self.factors:
            return self.derived[number - self.factors]
        column = int(self.arrays.factor_column[number])
        name, encoding = self.names[column], self.encodings[column]
        start, end = self.arrays.factor_start[number : number + 2].tolist()
        ends = [
            (self._cut(column, int(self.arrays.range_low[i])), self._cut(column, int(self.arrays.range_high[i])))
            for i in range(start, end)
        ]
        if ends == [(Edge.TOP, Edge.END)]:
            return IsNull(name)
        # Beyond the largest key, or below the least, there is no interval to write.
        some = [(low, high) for low, high in ends if low is not Edge.TOP and high is not Edge.BOTTOM]
        return Within(name, tuple(interval_of(encoding, low, high) for low, high in some))

    def _cut(self, column: int, cut: int) -> Cut:
        start, end = self.arrays.cut_start[column : column + 2].tolist()
        edges = {start: Edge.BOTTOM, end - 2: Edge.TOP, end - 1: Edge.END}
        if cut in edges:
            return edges[cut]
        match self.encodings[column]:
            case Encoding.TEXT:
                first, last = self.arrays.text_start[cut : cut + 2].tolist()
                return self.arrays.text[first:last].tobytes()
            case Encoding.WIDE:
                return (int(self.arrays.high[cut]) << 64) | int(self.arrays.low[cut])
            case _:
                return int(self.arrays.high[cut])

    def to_buffer(self) -> pa.Buffer:
        """The run as the bytes of one Arrow IPC file: a single row, whose every field is a list."""
        about = {
            "version": VERSION,
            "names": list(self.names),
            "encodings": [int(encoding) for encoding in self.encodings],
        }
        columns = {one.name: _one_list(pa.array(getattr(self.arrays, one.name))) for one in fields(Arrays)}
        columns["derived"] = _one_list(pa.array(list(self.derived_texts), pa.string()))
        batch = pa.record_batch(columns).replace_schema_metadata({"query run": json.dumps(about)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.getvalue()

    @classmethod
    def from_buffer(cls, buffer: pa.Buffer) -> QueryRun:
        """The run that `to_buffer` wrote; its arrays lie in the buffer."""
        batch = pa.ipc.open_file(pa.BufferReader(buffer)).get_batch(0)
        about = json.loads(batch.schema.metadata[b"query run"])
        if about["version"] != VERSION:
            raise ValueError(f"a query run of version {about['version']}; this is version {VERSION}")
        parts = {one.name: _numbers(batch.column(one.name).values, one.name) for one in fields(Arrays)}
        texts = batch.column("derived").values.to_pylist()
        encodings = tuple(Encoding(number) for number in about["encodings"])
        return cls(tuple(about["names"]), encodings, Arrays.of(parts), texts)

    def save(self, path: str | Path) -> None:
        """Write the run as one file; making it durable is for the caller."""
        Path(path).write_bytes(self.to_buffer())

    @classmethod
    def load(cls, path: str | Path) -> QueryRun:
        """Open a file that `save` wrote, memory-mapped."""
        with pa.memory_map(str(path)) as source:
            return cls.from_buffer(source.read_buffer())


def _numbers(values: pa.Array, name: str) -> npt.NDArray[Any]:
    """The numbers of an array where they lie. `to_numpy` would import pandas where it is installed."""
    kind = Arrays.types.get(name, np.int32)
    buffer = values.buffers()[1]
    return np.frombuffer(buffer, kind, len(values)) if len(values) else np.empty(0, kind)


def _one_list(values: pa.Array) -> pa.LargeListArray:
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)
