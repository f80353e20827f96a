"""A query run: some clauses of one stream, compiled into arrays.

Everything is there once: the cut points of each column in ascending order, each distinct factor as ranges
between cut points, each clause as the numbers of its factors. Factors that are no ranges are *derived*:
evaluated once per block, whatever the number of clauses that contain them.
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
from tureen.queries.lineage import Lineage

VERSION = 2
"""The version of the file's format."""

_ACCESS = "access "


@dataclass(frozen=True, eq=False)
class QueryRun:
    """Compiled clauses: the names and encodings of the columns they use, the arrays, the derived factors.

    Which clauses are reached by a key follows from the arrays; who has worked it out before may say it.
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
        """The same clauses, none of them reached by a key: for blocks with too many rows to look for their keys."""
        if not len(self.access.column):
            return self
        return replace(self, known_access=AccessIndex.of(self.arrays, self.encodings, least_keys=len(self) + 1))

    @cached_property
    def lineage(self) -> Lineage | None:
        """For blocks of a few rows, the visited clauses as bitmaps; None where they would take too much memory."""
        return Lineage.of(self.arrays, self.access, len(self.derived_texts))

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
        columns = _lists(self.arrays, "") | _lists(self.access, _ACCESS)
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
        arrays = typed(Arrays, _parts(batch, Arrays, ""))
        access = typed(AccessIndex, _parts(batch, AccessIndex, _ACCESS))
        texts = batch.column("derived").values.to_pylist()
        encodings = tuple(Encoding(number) for number in about["encodings"])
        return cls(tuple(about["names"]), encodings, arrays, texts, access)

    def write(self, file: BinaryIO, name: str) -> None:
        """Write the run as one file of that name; making it durable is for the caller."""
        parts = PartsWriter(file, name)
        parts.add(self.to_buffer())
        parts.finish()

    @classmethod
    def load(cls, path: Path) -> QueryRun:
        """Map a file that `write` wrote, and verify it; raises DamagedFile."""
        parts = Parts(path)
        run = cls.from_buffer(parts.read(0))
        try:
            check_bounds(run.arrays, run.access, len(run.names), len(run.derived_texts))
        except ValueError as error:
            raise parts.damaged(str(error)) from error
        return run


def _lists(arrays: Typed, prefix: str) -> dict[str, pa.LargeListArray]:
    return {prefix + name: _one_list(pa.array(array)) for name, array in vars(arrays).items()}


def _one_list(values: pa.Array) -> pa.LargeListArray:
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)


def _parts(batch: pa.RecordBatch, kind: type[Typed], prefix: str) -> dict[str, npt.NDArray[Any]]:
    """The numbers of all arrays where they lie. `to_numpy` would import pandas where it is installed."""
    parts = {}
    for one in fields(kind):  # type: ignore[arg-type]
        values = batch.column(prefix + one.name).values
        buffer = values.buffers()[1] if len(values) else b""
        parts[one.name] = np.frombuffer(buffer, kind.types.get(one.name, np.int32), len(values))
    return parts
