"""A year of flights: answers of standing queries while flights arrive equal those of DuckDB from scratch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.flights.data import SCHEMA, batches, read_flights
from tests.flights.questions import FlightQuestion, read_questions
from tureen.testing.manual_engine import ManualEngine
from tureen.window import to_micros

CLOSE = 1e-9
"""The relative tolerance for DOUBLEs, whose order of addition is undefined."""

STAGES = ("half way", "all of it", "settled")
QUESTIONS = read_questions()
# A third of the questions is registered before the flights, a third between them, a third after; half are lazy.
BEFORE, BETWEEN, AFTER = (QUESTIONS[number::3] for number in range(3))


@dataclass(frozen=True)
class StageAnswers:
    """The answers of a stage: by question, one for each of its moments."""

    arrived: int
    paths: set[str]
    """The access paths of the flights in the answers."""
    answers: dict[str, list[pa.Table]]


class FlightPot:
    """A pot that receives the flights."""

    def __init__(self, pot: ManualEngine) -> None:
        """Start with an empty stream."""
        self.pot = pot
        pot.create_stream("flights", SCHEMA, time="sched", clock="stream")
        self._arrived = 0
        self._handles: dict[FlightQuestion, str] = {}

    def register(self, questions: list[FlightQuestion]) -> None:
        """Register questions, every second one lazy."""
        for number, question in enumerate(questions):
            self._handles[question] = self.pot.register(question.tureen_sql, materialize=number % 2 == 0)

    def push(self, batch: pa.Table, parts: int) -> None:
        """Push flights."""
        self.pot.push("flights", batch, parts)
        self._arrived += len(batch)

    def ask(self) -> StageAnswers:
        """Invoke all registered questions."""
        tuples_by_path = [self.pot.invoker.explain(handle)["tuples_by_path"] for handle in self._handles.values()]
        paths = {path for counts in tuples_by_path for path, tuples in counts.items() if tuples}
        return StageAnswers(
            self._arrived, paths, {question.name: self._answers(question) for question in self._handles}
        )

    def _answers(self, question: FlightQuestion) -> list[pa.Table]:
        moments = [None if moment is None else to_micros(moment) for moment in question.moments]
        return [self.pot.invoke(self._handles[question], moment).table for moment in moments]


@pytest.fixture(scope="module")
def arrivals() -> list[pa.Table]:
    return batches(read_flights())


@pytest.fixture(scope="module")
def stages(arrivals: list[pa.Table], tmp_path_factory: pytest.TempPathFactory) -> dict[str, StageAnswers]:
    """The answers at each stage."""
    pot = ManualEngine(tmp_path_factory.mktemp("flights"))
    flight_pot, answers = FlightPot(pot), {}
    flight_pot.register(BEFORE)
    pot.compile()
    flight_pot.push(arrivals[0], parts=2)
    flight_pot.register(BETWEEN)
    # Nothing is compiled or paid: for the eager questions of these, both batches are owed.
    flight_pot.push(arrivals[1], parts=1)
    answers["half way"] = flight_pot.ask()
    pot.compile()
    pot.pay()
    pot.seal(everything=True)
    flight_pot.push(arrivals[2], parts=3)
    flight_pot.register(AFTER)
    for batch in arrivals[3:]:
        flight_pot.push(batch, parts=1)
    answers["all of it"] = flight_pot.ask()
    pot.compile()
    pot.pay()
    pot.seal(everything=True)
    answers["settled"] = flight_pot.ask()
    pot.close()
    return answers


@pytest.fixture(scope="module")
def judges(arrivals: list[pa.Table], stages: dict[str, StageAnswers]) -> Iterator[dict[str, duckdb.DuckDBPyConnection]]:
    """For each stage, DuckDB over the flights so far; `seq` numbers them by arrival."""
    everything = pa.concat_tables(arrivals)
    times = everything.column("sched").cast(pa.timestamp("us"))
    everything = everything.set_column(everything.column_names.index("sched"), "sched", times)
    everything = everything.append_column("seq", pa.array(np.arange(len(everything))))
    judges = {}
    for stage in STAGES:
        judges[stage] = duckdb.connect()
        judges[stage].register("arrived", everything.slice(0, stages[stage].arrived))
        judges[stage].execute("CREATE TABLE flights AS FROM arrived")
    yield judges
    for judge in judges.values():
        judge.close()


def expected(judge: duckdb.DuckDBPyConnection, question: FlightQuestion, moment: datetime | None) -> pa.Table:
    """DuckDB's answer."""
    now = "(SELECT max(sched) FROM flights)" if moment is None else f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"
    return judge.sql(question.duckdb_sql.replace("$now", now)).to_arrow_table()


def difference(ours: pa.Table, theirs: pa.Table) -> str | None:
    """The first difference of two answers, with a tolerance for DOUBLEs; None if they are equal."""
    if ours.column_names != theirs.column_names:
        return f"columns {ours.column_names} instead of {theirs.column_names}"
    if len(ours) != len(theirs):
        return f"{len(ours)} rows instead of {len(theirs)}"
    # A lossy cast raises: values of DuckDB's wider types must fit ours.
    theirs = theirs.cast(ours.schema)
    for name in ours.column_names:
        wrong = np.flatnonzero(~_equal_values(ours.column(name), theirs.column(name)))
        if len(wrong):
            row = int(wrong[0])
            return f"{name} differs in {len(wrong)} rows, first\n{_row(ours, row)} instead of\n{_row(theirs, row)}"
    return None


def _equal_values(left: pa.ChunkedArray, right: pa.ChunkedArray) -> np.ndarray:
    if not pa.types.is_float64(left.type):
        equal: np.ndarray = pc.fill_null(pc.equal(left, right), False).to_numpy()
    else:
        # A NULL becomes NaN here, which is not close to any value.
        equal = np.isclose(left.to_numpy(), right.to_numpy(), rtol=CLOSE, atol=0)
    equal |= pc.and_(pc.is_null(left), pc.is_null(right)).to_numpy()
    return equal


def _row(table: pa.Table, number: int) -> dict[str, Any]:
    row: dict[str, Any] = table.slice(number, 1).to_pylist()[0]
    return row


def cases() -> list[tuple[str, FlightQuestion]]:
    return [
        (stage, question) for stage in STAGES for question in QUESTIONS if stage != "half way" or question not in AFTER
    ]


@pytest.mark.parametrize(
    ("stage", "question"), cases(), ids=[f"{stage}: {question.name}" for stage, question in cases()]
)
def test_answers_agree_with_duckdb(
    stages: dict[str, StageAnswers], judges: dict[str, duckdb.DuckDBPyConnection], stage: str, question: FlightQuestion
) -> None:
    for moment, ours in zip(question.moments, stages[stage].answers[question.name], strict=True):
        wrong = difference(ours, expected(judges[stage], question, moment))
        assert wrong is None, f"{question.tureen_sql}\nat {moment}: {wrong}"


def test_questions_have_answers(stages: dict[str, StageAnswers]) -> None:
    """Questions without rows would test little."""
    assert len(QUESTIONS) >= 40
    for name, answers in stages["settled"].answers.items():
        assert any(len(answer) for answer in answers), name


def test_every_access_path_is_used(stages: dict[str, StageAnswers]) -> None:
    assert stages["half way"].paths == {"published", "owed", "lazy"}
    assert stages["all of it"].paths == {"published", "owed", "lazy", "tail"}
    assert stages["settled"].paths == {"published", "lazy"}
