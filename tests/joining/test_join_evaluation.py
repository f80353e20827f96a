"""Limits, order and repeated sides of join trees; what joins return is tested in tests/oracle/test_joins.py."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tureen.errors import QueryFailed
from tureen.join import Field, InnerJoin, Join, JoinCompare, JoinKind, JoinOpaque
from tureen.joining.join_evaluation import JoinEvaluation
from tureen.joining.join_limits import JoinLimits
from tureen.results.joins.join_inputs import TableInput

SAME = JoinCompare(Field(0, "k"), "=", Field(1, "k"))


def evaluation(*columns: list[int | None], limits: JoinLimits | None = None) -> JoinEvaluation:
    inputs = [TableInput(pa.table({"k": pa.array(column, pa.int64())})) for column in columns]
    return JoinEvaluation(inputs, 0, limits or JoinLimits())


def test_inner_join_starts_with_the_fewest_rows_and_follows_equalities() -> None:
    join = evaluation([1] * 9, [1, 2, 3], [1, 5])
    rows = join.rows(InnerJoin((0, 1, 2), (SAME, JoinCompare(Field(1, "k"), "=", Field(2, "k")))))
    assert [step["side"] for step in join.steps] == [2, 1, 0]
    assert len(rows) == 9
    assert join.steps[-1] == {"side": 0, "joined_rows": 9, "rows": 9, "equalities": 1, "inequalities": 0}


def test_answer_with_too_many_rows_is_stopped_with_the_numbers() -> None:
    with pytest.raises(QueryFailed, match="would have 12 rows, more than 10"):
        evaluation([1] * 4, [1] * 3, limits=JoinLimits(rows=10)).rows(InnerJoin((0, 1), (SAME,)))
    with pytest.raises(QueryFailed, match="would have 12 rows, more than 10"):
        evaluation([1] * 4, [1] * 3, limits=JoinLimits(rows=10)).rows(Join(JoinKind.LEFT, 0, 1, (SAME,)))


def test_too_many_candidates_are_stopped_before_they_are_examined() -> None:
    never = JoinOpaque("k + _1_k < 0", (Field(0, "k"), Field(1, "k")))
    with pytest.raises(QueryFailed, match="would examine 12 pairs of rows, more than 10"):
        evaluation([1] * 4, [1] * 3, limits=JoinLimits(candidates=10)).rows(InnerJoin((0, 1), (never,)))
    assert len(evaluation([1] * 4, [1] * 3).rows(InnerJoin((0, 1), (never,)))) == 0


@pytest.mark.parametrize(("kind", "numbers"), [(JoinKind.SEMI, [1, 2]), (JoinKind.ANTI, [0, 3])])
def test_semi_and_anti_join(kind: JoinKind, numbers: list[int]) -> None:
    rows = evaluation([7, 1, 1, None], [1, 1, None]).rows(Join(kind, 0, 1, (SAME,)))
    assert rows.rows[0].tolist() == numbers
    assert list(rows.rows) == [0]


def test_full_join_keeps_rows_of_both_sides_without_partner() -> None:
    rows = evaluation([1, None], [2, 1]).rows(Join(JoinKind.FULL, 0, 1, (SAME,)))
    assert sorted(zip(rows.rows[0].tolist(), rows.rows[1].tolist(), strict=True)) == [(-1, 0), (0, 1), (1, -1)]
