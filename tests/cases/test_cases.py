"""Every case in the engine: each of its handles gives exactly the expected rows, names, types or error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

from tests.cases.casefile import FOLDER, Case, CaseFile, Failure, read_files
from tests.cases.compare import LAST_DIGITS, judge
from tests.cases.runner import WITH_PATHS, FileRun, cases_of
from tests.cases.spark_input import bound
from tureen.errors import TureenError

FILES = read_files()
CASES = cases_of(FILES)
IDS = [f"{file.name}: {case.name}" for file, case in CASES]

Run = Callable[[CaseFile], FileRun]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run a file, once."""
    by_name = {file.name: file for file in FILES}
    run_once = cache(lambda name: FileRun(by_name[name], tmp_path_factory.mktemp(name)))
    return lambda file: run_once(file.name)


def is_grouped(file: CaseFile, case: Case) -> bool:
    """Whether the DOUBLEs of a case may be sums."""
    try:
        query = bound(file, case)
    except TureenError:
        return False
    return query.grouping is not None or bool(query.overs)


@pytest.mark.parametrize(("file", "case"), CASES, ids=IDS)
def test_case(run: Run, file: CaseFile, case: Case) -> None:
    assert case.expected is not None, "the case has no expected answer: make cases"
    tolerance = LAST_DIGITS if is_grouped(file, case) else 0.0
    outcomes = run(file).outcomes[case.name]
    wrong = {role: judge(outcome, case.expected, tolerance=tolerance) for role, outcome in outcomes.items()}
    assert not {role: problems for role, problems in wrong.items() if problems}
    assert len(outcomes) >= (2 if file.joins else 6)


def test_answers_use_every_path(run: Run) -> None:
    for name in WITH_PATHS:
        paths = run(next(file for file in FILES if file.name == name)).paths
        assert all(paths[path] for path in ("published", "owed", "lazy", "tail")), f"{name}: {paths}"


def test_joins_use_every_path(run: Run) -> None:
    paths = run(next(file for file in FILES if file.name == "joins")).paths
    assert all(paths[path] for path in ("published", "owed", "lazy", "tail", "kept join")), paths


def test_there_are_enough_cases() -> None:
    kinds = Counter("error" if isinstance(case.expected, Failure) else "answer" for _, case in CASES)
    assert kinds["answer"] >= 200
    assert kinds["error"] >= 40


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_file_round_trips(file: CaseFile) -> None:
    assert file.text() == (FOLDER / f"{file.name}.case").read_text()
