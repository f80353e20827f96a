"""A year of flights: what standing queries answer while they arrive is what DuckDB computes from scratch."""

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
from tests.flights.questions import Question, read_questions
from tureen.testing.hand_turned import HandTurned
from tureen.window import to_micros

CLOSE = 1e-9
"""How far a DOUBLE may be from DuckDB's, as a part of it, for the order of adding is nobody's promise."""

STAGES = ("half way", "all of it", "settled")
QUESTIONS = read_questions()
# A third of the questions comes before the flights, a third between them, a third after; of each, half are lazy.
BEFORE, BETWEEN, AFTER = (QUESTIONS[number::3] for number in range(3))


@dataclass(frozen=True)
class Asked:
    """The answers of one stage: by question, one for each of its moments."""

    arrived: int
    paths: set[str]
    """The ways by which flights came into the answers."""
    answers: dict[str, list[pa.Table]]


class Story:
    """A pot into which the flights come."""

    def __init__(self, pot: HandTurned) -> None:
        """Begin with an empty stream."""
        self.pot = pot
        pot.create_stream("flights", SCHEMA, time="sched", clock="stream")
        self._arrived = 0
        self._handles: dict[Question, str] = {}

    def register(self, questions: list[Question]) -> None:
        """Let them stand, every other one lazily."""
        for number, question in enumerate(questions):
            self._handles[question] = self.pot.register(question.ours, materialize=number % 2 == 0)

    def push(self, batch: pa.Table, parts: int) -> None:
        """Let some flights arrive."""
        self.pot.push("flights", batch, parts)
        self._arrived += len(batch)

    def ask(self) -> Asked:
        """What all that stand answer now."""
        taken = [self.pot.invoker.explain(handle)["tuples_by_path"] for handle in self._handles.values()]
        paths = {path for one in taken for path, tuples in one.items() if tuples}
        return Asked(self._arrived, paths, {question.name: self._answers(question) for question in self._handles})

    def _answers(self, question: Question) -> list[pa.Table]:
        moments = [None if moment is None else to_micros(moment) for moment in question.moments]
        return [self.pot.invoke(self._handles[question], moment).table for moment in moments]


@pytest.fixture(scope="module")
def arrivals() -> list[pa.Table]:
    return batches(read_flights())


@pytest.fixture(scope="module")
def asked(arrivals: list[pa.Table], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Asked]:
    """The whole story: what was answered at each stage."""
    pot = HandTurned(tmp_path_factory.mktemp("flights"))
    story, stages = Story(pot), {}
    story.register(BEFORE)
    pot.compile()
    story.push(arrivals[0], parts=2)
    story.register(BETWEEN)
    # Nothing is compiled or paid: for the eager ones among these, both batches are owed.
    story.push(arrivals[1], parts=1)
    stages["half way"] = story.ask()
    pot.compile()
    pot.pay()
    pot.seal(everything=True)
    story.push(arrivals[2], parts=3)
    story.register(AFTER)
    for batch in arrivals[3:]:
        story.push(batch, parts=1)
    stages["all of it"] = story.ask()
    pot.compile()
    pot.pay()
    pot.seal(everything=True)
    stages["settled"] = story.ask()
    pot.close()
    return stages


@pytest.fixture(scope="module")
def judges(arrivals: list[pa.Table], asked: dict[str, Asked]) -> Iterator[dict[str, duckdb.DuckDBPyConnection]]:
    """For each stage, DuckDB over what had arrived; `seq` numbers the arrivals."""
    everything = pa.concat_tables(arrivals)
    times = everything.column("sched").cast(pa.timestamp("us"))
    everything = everything.set_column(everything.column_names.index("sched"), "sched", times)
    everything = everything.append_column("seq", pa.array(np.arange(len(everything))))
    judges = {}
    for stage in STAGES:
        judges[stage] = duckdb.connect()
        judges[stage].register("arrived", everything.slice(0, asked[stage].arrived))
        judges[stage].execute("CREATE TABLE flights AS FROM arrived")
    yield judges
    for judge in judges.values():
        judge.close()


def expected(judge: duckdb.DuckDBPyConnection, question: Question, moment: datetime | None) -> pa.Table:
    """DuckDB's own answer."""
    now = "(SELECT max(sched) FROM flights)" if moment is None else f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"
    return judge.sql(question.theirs.replace("$now", now)).to_arrow_table()


def difference(ours: pa.Table, theirs: pa.Table) -> str | None:
    """Where two answers are not the same rows in the same order, DOUBLEs nearly so; None where they are."""
    if ours.column_names != theirs.column_names:
        return f"columns {ours.column_names} instead of {theirs.column_names}"
    if len(ours) != len(theirs):
        return f"{len(ours)} rows instead of {len(theirs)}"
    # A cast that would lose something raises: DuckDB's wider types hold nothing that ours could not.
    theirs = theirs.cast(ours.schema)
    for name in ours.column_names:
        wrong = np.flatnonzero(~_alike(ours.column(name), theirs.column(name)))
        if len(wrong):
            row = int(wrong[0])
            return f"{name} differs in {len(wrong)} rows, first\n{_row(ours, row)} instead of\n{_row(theirs, row)}"
    return None


def _alike(one: pa.ChunkedArray, other: pa.ChunkedArray) -> np.ndarray:
    if not pa.types.is_float64(one.type):
        alike: np.ndarray = pc.fill_null(pc.equal(one, other), False).to_numpy()
    else:
        # A NULL becomes NaN here, which is close to nothing.
        alike = np.isclose(one.to_numpy(), other.to_numpy(), rtol=CLOSE, atol=0)
    alike |= pc.and_(pc.is_null(one), pc.is_null(other)).to_numpy()
    return alike


def _row(table: pa.Table, number: int) -> dict[str, Any]:
    row: dict[str, Any] = table.slice(number, 1).to_pylist()[0]
    return row


def cases() -> list[tuple[str, Question]]:
    return [
        (stage, question) for stage in STAGES for question in QUESTIONS if stage != "half way" or question not in AFTER
    ]


@pytest.mark.parametrize(
    ("stage", "question"), cases(), ids=[f"{stage}: {question.name}" for stage, question in cases()]
)
def test_answers_are_those_of_duckdb(
    asked: dict[str, Asked], judges: dict[str, duckdb.DuckDBPyConnection], stage: str, question: Question
) -> None:
    for moment, ours in zip(question.moments, asked[stage].answers[question.name], strict=True):
        wrong = difference(ours, expected(judges[stage], question, moment))
        assert wrong is None, f"{question.ours}\nat {moment}: {wrong}"


def test_questions_have_answers(asked: dict[str, Asked]) -> None:
    """No question is answered by nothing, which would say little."""
    assert len(QUESTIONS) >= 40
    for name, answers in asked["settled"].answers.items():
        assert any(len(answer) for answer in answers), name


def test_flights_come_by_every_path(asked: dict[str, Asked]) -> None:
    assert asked["half way"].paths == {"published", "owed", "lazy"}
    assert asked["all of it"].paths == {"published", "owed", "lazy", "tail"}
    assert asked["settled"].paths == {"published", "lazy"}
