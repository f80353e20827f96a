"""Followed joins: what each follower reads equals what appeared, computed from scratch, after every step of a script.

Queries that share a join come and go while tuples flow; tuples are pending, committed or merged. The plain twin judges
the followers, and DuckDB the twin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.joining import clause_lineages, continuous_join
from tureen.language import bind_query
from tureen.pipeline import arrival, upkeep
from tureen.position import BEGINNING, Position
from tureen.pot.relations import Relations
from tureen.pot.streams import find_stream
from tureen.results.following import block_rows, join_operator
from tureen.results.invoke import Invoker
from tureen.routing_policies import ROUTING_POLICIES
from tureen.schema import Schema
from tureen.soup.tables import Dimensions
from tureen.testing.appearing_rows import AppearingRows, TwinRelation, comparable_texts
from tureen.testing.followed_join_strategies import (
    STREAM_COLUMNS,
    STREAMS,
    TABLE,
    TABLE_COLUMNS,
    FollowedJoinText,
    join_families,
    stream_row,
    table_rows,
)
from tureen.testing.manual_engine import ManualEngine
from tureen.testing.tuples import Tuple
from tureen.window import to_micros

Step = tuple[str, Any]
Rows = Sequence[Mapping[str, Any]]

BASE = datetime(2026, 1, 1, tzinfo=UTC)
MOST_TUPLES = 9
"""Of each stream: the twin tries all combinations."""


@st.composite
def scripts(draw: st.DrawFn) -> tuple[list[FollowedJoinText], list[Step]]:
    """Queries over one or two joins, and steps."""
    queries = [text for family in draw(st.lists(join_families(), min_size=1, max_size=2)) for text in family]
    rows = st.lists(stream_row(), min_size=1, max_size=4)
    number = st.integers(0, len(queries) - 1)
    push = st.tuples(st.sampled_from(["append", "append", "append", "push"]), st.tuples(st.sampled_from(STREAMS), rows))
    other = st.one_of(
        st.tuples(st.just("follow"), st.tuples(number, st.booleans())),
        st.tuples(st.just("leave"), st.integers(0, 9)),
        st.tuples(st.just("part"), st.tuples(st.integers(0, 9), st.integers(0, 3))),
        st.tuples(st.just("take"), st.tuples(st.sampled_from(STREAMS), st.integers(1, 2))),
        st.tuples(st.just("seal"), st.booleans()),
        st.tuples(st.just("table"), table_rows()),
        st.tuples(st.just("restart"), st.none()),
    )
    read = st.tuples(st.just("read"), st.integers(1, 3))
    first: list[Step] = [("append", (name, draw(rows))) for name in draw(st.permutations(STREAMS))]
    start: list[Step] = [("table", draw(table_rows())), *draw(st.lists(push, max_size=1))]
    followed: list[Step] = [("follow", (each, False)) for each in range(len(queries) - draw(st.integers(0, 1)))]
    rest = draw(st.lists(st.one_of(push, push, read, other), min_size=4, max_size=14))
    return queries, [*start, *followed, *first, *rest, ("read", 1)]


@dataclass(eq=False)
class TwinFollower:
    """A follower of a query, and what it has read since it started."""

    query: FollowedJoinText
    handle: str
    start: Position
    position: Position
    followed: Any
    rows: Counter[str] = field(default_factory=Counter)

    def forget(self) -> None:
        """Start again where it is."""
        self.start, self.rows = self.position, Counter()


class FollowedScriptRun:
    """A script that runs in the engine, in the plain twin and in DuckDB."""

    def __init__(self, root: Path, queries: Sequence[FollowedJoinText], routing: str) -> None:
        self.routing, self.read_rows, self.shared = routing, 0, 0
        self.engine = ManualEngine(root)
        self.engine.invoker.followers.joins.routing = routing
        for name in STREAMS:
            self.engine.create_stream(name, STREAM_COLUMNS, time="ts", clock="stream")
        with self.engine.catalog.read() as tx:
            self.ids = {name: find_stream(tx, name).id for name in STREAMS}
        Dimensions(self.engine.catalog).create(TABLE, TABLE_COLUMNS, [])
        self.tuples: dict[str, list[Tuple]] = {name: [] for name in (*STREAMS, TABLE)}
        self.schemas = {name: Schema.parse(STREAM_COLUMNS, "ts") for name in STREAMS}
        self.schemas[TABLE] = Schema.parse(TABLE_COLUMNS)
        self.handles = {query: self.engine.register(query.text, materialize=False) for query in queries}
        self.queries, self.followers = queries, list[TwinFollower]()
        self.judge = duckdb.connect(config={"threads": "1"})
        with self.engine.catalog.read() as tx:
            relations = Relations.of(tx)
            self.bound = {
                query: bind_query(query.text, relations.describe, functions=relations.function) for query in queries
            }

    def run(self, step: Step) -> None:
        """Run a step; a follower that reads is compared with the twin."""
        action, value = step
        match action:
            case "append" | "push":
                self._push(action, *value)
            case "follow":
                self._follow(*value)
            case "leave":
                if value < len(self.followers):
                    self._leave(self.followers.pop(value))
            case "part":
                self._read_partly(*value)
            case "take":
                self.engine.take(*value)
            case "seal":
                self.engine.seal(everything=value)
            case "table":
                self._replace_table(value)
            case "restart":
                self.engine.invoker = Invoker(self.engine.catalog, routing=self.routing)
                for follower in self.followers:
                    follower.followed = self.engine.invoker.follow(follower.handle)
            case _:
                for follower in self.followers[::value]:
                    self.read(follower)

    def _push(self, action: str, name: str, rows: Rows) -> None:
        tuples = self.tuples[name]
        timed = []
        for row in rows[: MOST_TUPLES - len(tuples)]:
            moment = BASE + timedelta(seconds=2 * len(tuples) - row["late"], milliseconds=len(tuples))
            values = {"k": row["k"], "x": row["x"], "s": row["s"], "ts": moment}
            tuples.append(Tuple(len(tuples), to_micros(moment), values))
            timed.append(values)
        if timed:
            (self.engine.append if action == "append" else self.engine.push)(name, timed)

    def _follow(self, number: int, from_beginning: bool) -> None:
        query = self.queries[number]
        handle = self.handles[query]
        now = BEGINNING if from_beginning else self.engine.invoker.new_rows(handle, None).position()
        position = Position.parse(now)
        follower = TwinFollower(query, handle, position, position, self.engine.invoker.follow(handle))
        self.shared += follower.followed is not None
        self.followers.append(follower)

    def _leave(self, follower: TwinFollower) -> None:
        if follower.followed is not None:
            self.engine.invoker.followers.remove(follower.followed)

    def read(self, follower: TwinFollower) -> None:
        """Read all that is new, and compare everything since the start with the twin."""
        new = self.engine.invoker.new_rows(follower.handle, follower.position, follower.followed)
        follower.rows.update(comparable_texts(new.rows.to_pylist()))
        follower.position = Position.parse(new.position())
        ends = self._moment(follower.position)
        # A mark of a stream that the query reads is the end of the stream.
        assert all(end in (len(self.tuples[name]), 0) for name, end in ends.items()), (ends, follower.query.text)
        begin = self._moment(follower.start)
        expected = self._twin(follower.query).between(begin, ends)
        assert follower.rows == expected, (follower.query.text, follower.rows, expected)
        assert expected == self._judged(follower.query, begin, ends), follower.query.text
        self.read_rows += len(new)

    def _read_partly(self, number: int, rows: int) -> None:
        """Read some of the new rows, and continue later from the position of the last of them."""
        if number >= len(self.followers):
            return
        follower = self.followers[number]
        new = self.engine.invoker.new_rows(follower.handle, follower.position, follower.followed)
        if rows < len(new):
            follower.rows.update(comparable_texts(new.rows.slice(0, rows + 1).to_pylist()))
            follower.position = Position.parse(new.position(rows))

    def _replace_table(self, rows: Rows) -> None:
        """Changes are joined with the content at the time of reading."""
        for follower in self.followers:
            self.read(follower)
            follower.forget()
        Dimensions(self.engine.catalog).replace(TABLE, rows)
        self.tuples[TABLE] = [Tuple(number, 0, dict(row)) for number, row in enumerate(rows)]

    def _moment(self, position: Position) -> dict[str, int]:
        """The number of tuples of each stream before a position; 0 for one that the query does not read."""
        marks = position.marks
        return {name: marks[number].next_id if number in marks else 0 for name, number in self.ids.items()}

    def _twin(self, query: FollowedJoinText) -> AppearingRows:
        return AppearingRows(
            self.bound[query], {name: TwinRelation(self.schemas[name], rows) for name, rows in self.tuples.items()}
        )

    def _judged(self, query: FollowedJoinText, begin: Mapping[str, int], end: Mapping[str, int]) -> Counter[str]:
        """What DuckDB has at the end and not at the begin."""
        before = {row[: query.visible] for row, _ in self._batch(query, begin)}
        return Counter(text for row, text in self._batch(query, end) if row[: query.visible] not in before)

    def _batch(self, query: FollowedJoinText, moment: Mapping[str, int]) -> list[tuple[tuple[Any, ...], str]]:
        for name, tuples in self.tuples.items():
            kept = tuples[: moment.get(name, len(tuples))]
            schema = pa.schema([*self.schemas[name].arrow, ("_id", pa.int64())])
            rows = [{**each.values, "_id": each.number} for each in kept]
            self.judge.register(name, pa.Table.from_pylist(rows, schema=schema))
        table = self.judge.sql(query.judge_sql).to_arrow_table()
        outputs = table.select(table.column_names[query.visible :]).to_pylist()
        ids = table.select(table.column_names[: query.visible]).to_pylist()
        keys = [tuple(row.values()) for row in ids]
        return list(zip(keys, comparable_texts(outputs), strict=True))

    def close(self) -> None:
        """Close everything; no operator is left when all followers have left."""
        for follower in self.followers:
            self._leave(follower)
        assert len(self.engine.invoker.followers.joins) == 0
        self.engine.close()
        self.judge.close()


@example_settings(8, explored=15, shrink=False)
@given(scripts(), st.sampled_from(ROUTING_POLICIES), st.sampled_from([2, 1 << 18]), st.sampled_from([0.5, -1, 64]))
def test_followers_read_what_appeared(
    script: tuple[list[FollowedJoinText], list[Step]], routing: str, most_rows: int, dense_pairs: float
) -> None:
    queries, steps = script
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        for module in (arrival, upkeep):
            patch.setattr(module, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "FAN", 2)
        patch.setattr(join_operator, "KEPT_BLOCKS", 3)
        patch.setattr(join_operator, "BLOCK_TUPLES", 5)
        patch.setattr(continuous_join, "ROUTED_TUPLES", 2)
        patch.setattr(block_rows, "MOST_ROWS", most_rows)
        # Lineages are bitmaps, or pairs, or both.
        patch.setattr(clause_lineages, "DENSE_PAIRS", dense_pairs)
        run = FollowedScriptRun(Path(folder), queries, routing)
        for step in steps:
            run.run(step)
        run.close()
