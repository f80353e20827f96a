"""Every case, played: each of its handles gives exactly the rows, names, types or error that its file says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

from tests.cases.casefile import FOLDER, Case, CaseFile, Failure, read_files
from tests.cases.judging import LAST_DIGITS, judge
from tests.cases.playing import Played, cases_of
from tureen.errors import TureenError
from tureen.language import bind_query

FILES = read_files()
CASES = cases_of(FILES)
IDS = [f"{file.name}: {case.name}" for file, case in CASES]

Play = Callable[[CaseFile], Played]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Each file is played once."""
    by_name = {file.name: file for file in FILES}
    made = cache(lambda name: Played(by_name[name], tmp_path_factory.mktemp(name)))
    return lambda file: made(file.name)


def is_grouped(file: CaseFile, case: Case) -> bool:
    """Whether a case's DOUBLEs may be sums."""
    try:
        query = bind_query(case.sql, lambda _: (file.stream, file.schema))
    except TureenError:
        return False
    return query.grouping is not None or bool(query.overs)


@pytest.mark.parametrize(("file", "case"), CASES, ids=IDS)
def test_a_case(play: Play, file: CaseFile, case: Case) -> None:
    assert case.expected is not None, "the case expects nothing yet: make cases"
    tolerance = LAST_DIGITS if is_grouped(file, case) else 0.0
    outcomes = play(file).outcomes[case.name]
    wrong = {who: judge(outcome, case.expected, tolerance=tolerance) for who, outcome in outcomes.items()}
    assert not {who: one for who, one in wrong.items() if one}
    assert len(outcomes) >= 6


def test_answers_come_from_every_kind_of_place(play: Play) -> None:
    for name in ("where", "expressions", "windows"):
        paths = play(next(file for file in FILES if file.name == name)).paths
        assert all(paths[one] for one in ("published", "owed", "lazy", "tail")), f"{name}: {paths}"


def test_there_are_cases_for_all_of_the_language() -> None:
    kinds = Counter("error" if isinstance(case.expected, Failure) else "answer" for _, case in CASES)
    assert kinds["answer"] >= 200
    assert kinds["error"] >= 40


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_a_file_is_written_as_it_is_read(file: CaseFile) -> None:
    assert file.text() == (FOLDER / f"{file.name}.case").read_text()
