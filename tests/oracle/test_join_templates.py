"""Templates over joins: each of their queries equals the same query registered by itself, after every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import SqlError, TureenError, Unsupported
from tureen.language.templates.member import member_text
from tureen.pipeline import arrival, upkeep
from tureen.position import Position
from tureen.results.joins import join_inputs
from tureen.schema import Schema
from tureen.soup.tables import Dimensions
from tureen.soup.templates import Templates
from tureen.testing.join_strategies import (
    START,
    STREAM_COLUMNS,
    STREAMS,
    TABLE,
    TABLE_COLUMNS,
    JoinTemplate,
    join_templates,
    time_of,
)
from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros

Step = tuple[str, Any]
Rows = list[dict[str, Any]]


STREAM_ROW = st.fixed_dictionaries(
    {
        "k": st.sampled_from([1, 2, 1, 2, None]),
        "x": st.sampled_from([1, 2, 0, 3, None]),
        "d": st.sampled_from([1.0, 2.0, 2.5, 0.0, float("nan"), None]),
        "m": st.sampled_from([Decimal("1.00"), Decimal("2.00"), Decimal("2.50"), None]),
        "s": st.sampled_from(["a", "ab", "a", "A", None]),
    }
)
TABLE_ROW = st.fixed_dictionaries(
    {
        "k": st.sampled_from([1, 2, 0, None]),
        "m": st.sampled_from([Decimal("1.000"), Decimal("2.500"), None]),
        "s": st.sampled_from(["a", "ab", None]),
        "w": st.sampled_from([1, 2, 0, None]),
    }
)
"""Rows of which most have partners."""


@st.composite
def scripts(draw: st.DrawFn) -> tuple[JoinTemplate, Rows, list[Step]]:
    """A template, its first rows of parameters, and steps that change streams, the table and the template."""
    template = draw(join_templates())
    stream = st.sampled_from(STREAMS)
    rows = st.lists(STREAM_ROW, min_size=2, max_size=5)
    push = st.tuples(st.sampled_from(["push", "append"]), st.tuples(stream, rows))
    change = st.one_of(
        st.tuples(st.just("add"), template.rows()),
        st.tuples(st.just("remove"), st.integers(0, 5)),
        st.tuples(st.just("replace"), st.lists(TABLE_ROW, max_size=5)),
        st.tuples(st.sampled_from(["seal", "seal all"]), st.none()),
        st.tuples(st.just("take"), stream),
    )
    read = st.tuples(st.just("read"), st.integers(0, 40))
    first: list[Step] = [("replace", draw(st.lists(TABLE_ROW, min_size=2, max_size=5)))]
    first += [("push", (name, draw(rows))) for name in STREAMS]
    second: list[Step] = [("append", (name, draw(rows))) for name in STREAMS]
    second += [("add", draw(template.rows())), draw(read)]
    rest = draw(st.lists(st.one_of(push, push, change, read), max_size=6))
    steps = [*draw(st.permutations(first)), *draw(st.permutations(second)), *rest]
    return template, draw(template.rows()), steps


@dataclass
class TwinQuery:
    """A query of the template and the same query registered by itself, with what their followers have seen."""

    handle: str
    position: str | None
    seen: Rows = field(default_factory=list)
    of_template: Rows = field(default_factory=list)


@dataclass
class TemplateRun:
    """A script that runs with the queries of a template and with their twins."""

    root: Path
    template: JoinTemplate
    twins: dict[int, TwinQuery] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STREAMS, 0))

    def __post_init__(self) -> None:
        self.engine = ManualEngine(self.root, lambda: to_micros(START))
        for name in STREAMS:
            self.engine.create_stream(name, STREAM_COLUMNS, time="ts", clock="stream")
        self.tables = Dimensions(self.engine.catalog)
        self.tables.create(TABLE, TABLE_COLUMNS, [])
        self.templates = Templates(self.engine.catalog, self.engine.invoker)
        self.columns = Schema.parse(", ".join(f"{name} {kind}" for name, kind in self.template.parameters.items()))

    def register(self, rows: Rows) -> bool:
        """Register the template; False if it and its queries are refused."""
        try:
            self.handle = self.templates.register(self.template.text, self._table(rows), None)
        except (SqlError, Unsupported):
            with pytest.raises(TureenError):
                self.engine.register(member_text(self.template.text, self.columns, rows[0]))
            return False
        self.position, self.first_rows = self._position(), len(rows)
        self._add_twins(range(len(rows)), rows)
        return True

    def _table(self, rows: Rows) -> pa.Table:
        return pa.Table.from_pylist(rows, self.columns.arrow)

    def _position(self) -> str | None:
        try:
            return self.templates.matches(self.handle, None).position()
        except Unsupported:
            return None

    def _add_twins(self, numbers: Sequence[int], rows: Rows) -> None:
        for number, row in zip(numbers, rows, strict=True):
            handle = self.engine.register(member_text(self.template.text, self.columns, row), materialize=False)
            position = None if self.position is None else self.engine.invoker.new_rows(handle, None).position()
            self.twins[number] = TwinQuery(handle, position)

    def run(self, step: Step) -> None:
        """Run a step and compare all answers."""
        action, value = step
        match action:
            case "push" | "append":
                name, rows = value
                first = self.counts[name]
                timed = [{**row, "ts": time_of(first + n, STREAMS.index(name) * 100)} for n, row in enumerate(rows)]
                self.counts[name] += len(rows)
                (self.engine.push if action == "push" else self.engine.append)(name, timed)
            case "add":
                self._add_twins(self.templates.add(self.handle, self._table(value)), value)
            case "remove":
                if value in self.twins:
                    assert self.templates.remove(self.handle, [value], None) == 1
                    del self.twins[value]
            case "replace":
                # Changes are computed with the content of the table when they are read.
                self.read(None)
                self.tables.replace(TABLE, value)
            case "read":
                self.read(value)
            case "take":
                self.engine.take(value)
            case _:
                self.engine.seal(everything=action == "seal all")
        self.check()

    def check(self) -> None:
        """Compare the answers of all queries with those of their twins."""
        for number, twin in self.twins.items():
            answer, expected = self.engine.invoke(f"{self.handle}.{number}"), self.engine.invoke(twin.handle)
            assert repr(answer.table.to_pylist()) == repr(expected.table.to_pylist()), self.template.text
            assert answer.table.schema == expected.table.schema
            assert (answer.window, answer.position, answer.complete) == (
                expected.window,
                expected.position,
                expected.complete,
            )

    def read(self, count: int | None) -> None:
        """Read changes, of the template only the first `count`, and compare them with those of the twins."""
        if self.position is None:
            return
        changes, positions, end = self._changes(self.position)
        for index in {0, len(changes) // 2, len(changes) - 1} & set(range(len(changes))):
            assert repr(self._changes(positions[index])[0]) == repr(changes[index + 1 :]), self.template.text
        self._check_order(changes)
        taken = len(changes) if count is None else min(count, len(changes))
        for number, row in changes[:taken]:
            self.twins[number].of_template.append(row)
        self.position = end if taken == len(changes) else positions[taken - 1] if taken else self.position
        for twin in self.twins.values():
            new = self.engine.invoker.new_rows(twin.handle, _parse(twin.position))
            twin.seen += new.rows.to_pylist()
            twin.position = new.position()

    def _changes(self, since: str) -> tuple[list[tuple[int, dict[str, Any]]], list[str], str]:
        matches = self.templates.matches(self.handle, Position.parse(since))
        changes = list(zip(matches.numbers.tolist(), matches.rows.to_pylist(), strict=True))
        return changes, [matches.position(index) for index in range(len(matches))], matches.position()

    def _check_order(self, changes: list[tuple[int, dict[str, Any]]]) -> None:
        """From one position, a query has the same changes in the same order as its twin."""
        position = _parse(self.position)
        assert position is not None
        if any(mark.is_within for mark in position.marks.values()):
            return
        for number, twin in self.twins.items():
            if number < self.first_rows:
                expected = self.engine.invoker.new_rows(twin.handle, position).rows.to_pylist()
                assert repr([row for other, row in changes if other == number]) == repr(expected), self.template.text

    def finish(self) -> None:
        """Compare all that followers of the template and of the twins have seen."""
        self.read(None)
        for twin in self.twins.values():
            assert sorted(map(repr, twin.of_template)) == sorted(map(repr, twin.seen)), self.template.text


def _parse(position: str | None) -> Position | None:
    return None if position is None else Position.parse(position)


@example_settings(5, explored=8)
@given(scripts(), st.booleans())
def test_queries_of_a_template_equal_single_queries(
    script: tuple[JoinTemplate, Rows, list[Step]], by_key: bool
) -> None:
    template, rows, steps = script
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(arrival, "TAIL_ROWS", 4)
        patch.setattr(upkeep, "LONG_TAIL", 8)
        patch.setattr(upkeep, "FAN", 2)
        if by_key:
            patch.setattr(join_inputs, "PROBE_SHARE", 0)
            patch.setattr(join_inputs, "PROBE_COST", 0)
        run = TemplateRun(Path(folder), template)
        try:
            if run.register(rows):
                for step in steps:
                    run.run(step)
                run.finish()
        finally:
            run.engine.close()
