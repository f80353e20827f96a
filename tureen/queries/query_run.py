"""A query run: clauses of one stream, compiled into arrays.

Nothing is stored twice: a run has the cut points of each column in ascending order, each distinct factor as ranges
between cut points, and each clause as the numbers of its factors. Factors that are not ranges are *derived*: they are
evaluated once per block for all clauses that contain them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tureen.pot.parts import Parts, PartsWriter
from tureen.predicate import Clause, Factor, IsNull, Predicate, Within, load_clause
from tureen.queries.access_predicates import MOST_PARTNERS, AccessIndex
from tureen.queries.array_bounds import check_bounds
from tureen.queries.arrays import Arrays, Typed, typed
from tureen.queries.cuts import Cut, Edge, Encoding, interval_of
from tureen.queries.lineage import LineageBitmaps

VERSION = 2
"""The version of the file's format."""

_ACCESS = "access "


@dataclass(frozen=True, eq=False)
class QueryRun:
    """Compiled clauses: the names and encodings of the columns they use, the arrays, the derived factors.

    The access index follows from the arrays; `known_access` is the one read from a file.
    """

    names: tuple[str, ...]
    encodings: tuple[Encoding, ...]
    arrays: Arrays
    derived_texts: Sequence[str]
    known_access: AccessIndex | None = None

    @cached_property
    def access(self) -> AccessIndex:
        """Which clauses are reached by which key, and which are visited for every block."""
        return self.known_access or AccessIndex.of(self.arrays, self.encodings)

    @cached_property
    def all_visited(self) -> QueryRun:
        """The same clauses, all visited: for blocks for which looking up keys would cost more."""
        if not len(self.access.column):
            return self
        return replace(self, known_access=AccessIndex.of(self.arrays, self.encodings, least_keys=len(self) + 1))

    @cached_property
    def lineage(self) -> LineageBitmaps | None:
        """The visited clauses as bitmaps, for blocks of few rows; None if they would take too much memory."""
        return LineageBitmaps.of(self.arrays, self.access, len(self.derived_texts))

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """The clauses' ids, ascending."""
        return self.arrays.ids

    def __len__(self) -> int:
        """The number of clauses."""
        return len(self.arrays.ids)

    @property
    def factors(self) -> int:
        """The number of distinct range factors."""
        return len(self.arrays.factor_column)

    @cached_property
    def derived(self) -> tuple[Predicate, ...]:
        """The distinct derived factors."""
        return tuple(load_clause(text)[0] for text in self.derived_texts)

    @cached_property
    def users(self) -> tuple[tuple[int, ...], ...]:
        """For each derived factor, the positions of the clauses that contain it."""
        users: list[list[int]] = [[] for _ in self.derived]
        derived_uses = np.flatnonzero(self.arrays.clause_factor >= self.factors)
        clauses = np.searchsorted(self.arrays.clause_start, derived_uses, side="right") - 1
        for use, clause in zip(derived_uses.tolist(), clauses.tolist(), strict=True):
            users[int(self.arrays.clause_factor[use]) - self.factors].append(clause)
        return tuple(tuple(positions) for positions in users)

    @cached_property
    def partners(self) -> tuple[tuple[tuple[int, ...], ...] | None, ...]:
        """For each derived factor, the distinct sets of range factors in the clauses that contain it.

        None if a clause has no range factor, or if there are too many clauses: then it is evaluated on all tuples.
        """
        partners: list[tuple[tuple[int, ...], ...] | None] = []
        start, factors = self.arrays.clause_start, self.arrays.clause_factor
        for users in self.users:
            sets = {
                tuple(factor for factor in factors[start[user] : start[user + 1]].tolist() if factor < self.factors)
                for user in users[: MOST_PARTNERS + 1]
            }
            partners.append(None if () in sets or len(users) > MOST_PARTNERS else tuple(sorted(sets)))
        return tuple(partners)

    def clause(self, position: int) -> Clause:
        """A clause equivalent to the one compiled at a position."""
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
        # Above the greatest key, or below the least, an interval is empty.
        nonempty = [(low, high) for low, high in ends if low is not Edge.TOP and high is not Edge.BOTTOM]
        return Within(name, tuple(interval_of(encoding, low, high) for low, high in nonempty))

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
        """The run as one Arrow IPC file: a single row of lists."""
        about = {
            "version": VERSION,
            "names": list(self.names),
            "encodings": [int(encoding) for encoding in self.encodings],
        }
        columns = _list_columns(self.arrays, "") | _list_columns(self.access, _ACCESS)
        columns["derived"] = _list_column(pa.array(list(self.derived_texts), pa.string()))
        batch = pa.record_batch(columns).replace_schema_metadata({"query run": json.dumps(about)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.getvalue()

    @classmethod
    def from_buffer(cls, buffer: pa.Buffer) -> QueryRun:
        """Read the run that `to_buffer` wrote; its arrays are views of the buffer."""
        batch = pa.ipc.open_file(pa.BufferReader(buffer)).get_batch(0)
        about = json.loads(batch.schema.metadata[b"query run"])
        if about["version"] != VERSION:
            raise ValueError(f"the version of a query run must be {VERSION}, got {about['version']}")
        arrays = typed(Arrays, _parts(batch, Arrays, ""))
        access = typed(AccessIndex, _parts(batch, AccessIndex, _ACCESS))
        texts = batch.column("derived").values.to_pylist()
        encodings = tuple(Encoding(number) for number in about["encodings"])
        return cls(tuple(about["names"]), encodings, arrays, texts, access)

    def write(self, file: BinaryIO, name: str) -> None:
        """Write the run as one file of that name; the caller makes it durable."""
        parts = PartsWriter(file, name)
        parts.add(self.to_buffer())
        parts.finish()

    @classmethod
    def load(cls, path: Path) -> QueryRun:
        """Map and verify a file that `write` wrote; raises DamagedFile."""
        parts = Parts(path)
        run = cls.from_buffer(parts.read(0))
        try:
            check_bounds(run.arrays, run.access, len(run.names), len(run.derived_texts))
        except ValueError as error:
            raise parts.damaged(str(error)) from error
        return run


def _list_columns(arrays: Typed, prefix: str) -> dict[str, pa.LargeListArray]:
    return {prefix + name: _list_column(pa.array(array)) for name, array in vars(arrays).items()}


def _list_column(values: pa.Array) -> pa.LargeListArray:
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)


def _parts(batch: pa.RecordBatch, kind: type[Typed], prefix: str) -> dict[str, npt.NDArray[Any]]:
    """The numbers of all arrays, not copied. `to_numpy` would import pandas if it is installed."""
    parts = {}
    for field in fields(kind):  # type: ignore[arg-type]
        values = batch.column(prefix + field.name).values
        buffer = values.buffers()[1] if len(values) else b""
        parts[field.name] = np.frombuffer(buffer, kind.types.get(field.name, np.int32), len(values))
    return parts
