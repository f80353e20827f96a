"""Random window functions for Hypothesis, in Tureen's SQL and in that of a judge."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tureen.schema import FRACTIONAL, INTEGRAL, NUMERIC, Kind, Type
from tureen.testing.formula_strategies import FormulaScope, scalars
from tureen.testing.judge import RANK, Formula

_INT, _DOUBLE, _BIGINT = Type(Kind.INT), Type(Kind.DOUBLE), Type(Kind.BIGINT)
_DIRECTIONS = ("", "", " DESC", " NULLS LAST", " DESC NULLS FIRST")
_STARTS = ("UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW")
_ENDS = ("CURRENT ROW", "1 FOLLOWING", "3 FOLLOWING", "UNBOUNDED FOLLOWING")
_RANGED = INTEGRAL | {Kind.DOUBLE, Kind.FLOAT}
_PICKS = ("first_value({})", "last_value({})", "first({}) IGNORE NULLS", "last_value({}) IGNORE NULLS")


@dataclass(frozen=True)
class _OverClause:
    """PARTITION BY and ORDER BY, as written and with ties broken by the row number."""

    partition: str
    order: str

    def sql(self, frame: str = "") -> str:
        return f"OVER ({self.partition}{self.order}{frame})"

    def ranked_sql(self, frame: str = "") -> str:
        order = f"{self.order}, {RANK}" if self.order else f" ORDER BY {RANK}"
        return f"OVER ({self.partition}{order}{frame})"


@st.composite
def overs(draw: st.DrawFn, field: FormulaScope) -> Formula:
    """A window function of any kind."""
    maker = draw(st.sampled_from([_rank, _beside, _beside, _by_rows, _by_rows, _by_range, _by_range]))
    return maker(draw, field)


def _over_clause(draw: st.DrawFn, field: FormulaScope, *, ordered: bool = True) -> _OverClause:
    keys = draw(st.lists(scalars(field), max_size=1))
    partition = f"PARTITION BY {keys[0].sql}" if keys else ""
    orders = draw(st.lists(scalars(field), min_size=int(ordered), max_size=2))
    items = [f"{key.sql}{draw(st.sampled_from(_DIRECTIONS))}" for key in orders]
    return _OverClause(partition, f" ORDER BY {', '.join(items)}" if items else "")


def _rank(draw: st.DrawFn, field: FormulaScope) -> Formula:
    over = _over_clause(draw, field)
    name = draw(st.sampled_from(["rank", "dense_rank", "percent_rank", "cume_dist"]))
    text = f"{name}() {over.sql()}"
    return Formula(text, text, _DOUBLE if name in ("percent_rank", "cume_dist") else _INT)


def _beside(draw: st.DrawFn, field: FormulaScope) -> Formula:
    """Functions of a row's number in the order."""
    over, value = _over_clause(draw, field), draw(scalars(field))
    moved = draw(st.sampled_from(["lag", "lead"])) + f"({value.sql}{draw(st.sampled_from(['', ', 2', ', 0', ', -1']))})"
    call, type_ = draw(
        st.sampled_from(
            [
                ("row_number()", _INT),
                (f"ntile({draw(st.integers(1, 5))})", _INT),
                (moved, value.type),
                (f"{draw(st.sampled_from(['lag', 'lead']))}({value.sql}) IGNORE NULLS", value.type),
            ]
        )
    )
    return Formula(f"{call} {over.sql()}", f"{call} {over.ranked_sql()}", type_)


def _by_rows(draw: st.DrawFn, field: FormulaScope) -> Formula:
    """Aggregates and values of a frame of rows."""
    over = _over_clause(draw, field, ordered=False)
    frame = f" ROWS BETWEEN {draw(st.sampled_from(_STARTS))} AND {draw(st.sampled_from(_ENDS))}"
    call = _aggregate(draw, field)
    if draw(st.booleans()):
        value = draw(scalars(field))
        pick = draw(st.sampled_from(_PICKS)).format(value.sql)
        call = Formula(pick, pick, value.type)
    return Formula(f"{call.sql} {over.sql(frame)}", f"{call.judge_sql} {over.ranked_sql(frame)}", call.type, call.exact)


def _by_range(draw: st.DrawFn, field: FormulaScope) -> Formula:
    """Aggregates of a RANGE frame: Spark's default, up to peers, or by distance from the current value."""
    over, call = _over_clause(draw, field, ordered=False), _aggregate(draw, field)
    frame = ""
    if over.order and draw(st.booleans()):
        frame = f" RANGE BETWEEN {draw(st.sampled_from(['UNBOUNDED PRECEDING', 'CURRENT ROW']))} AND "
        frame += draw(st.sampled_from(["CURRENT ROW", "UNBOUNDED FOLLOWING"]))
    elif draw(st.booleans()):
        value = draw(scalars(field, _RANGED))
        if value.type.kind in _RANGED and field.tame:
            over = _OverClause(over.partition, f" ORDER BY {value.sql}{draw(st.sampled_from(_DIRECTIONS))}")
            frame = f" RANGE BETWEEN {draw(st.sampled_from(_STARTS))} AND {draw(st.sampled_from(_ENDS))}"
    text = f"{call.sql} {over.sql(frame)}"
    return Formula(text, text, call.type, call.exact)


def _aggregate(draw: st.DrawFn, field: FormulaScope) -> Formula:
    value = draw(scalars(field))
    forms = [("count(*)", _BIGINT, True), (f"count({value.sql})", _BIGINT, True)]
    forms += [(f"{name}({value.sql})", value.type, True) for name in ("min", "max")]
    if value.type.kind in NUMERIC and (field.tame or value.type.kind not in FRACTIONAL):
        exact = value.type.kind not in FRACTIONAL
        total = _BIGINT if value.type.kind in INTEGRAL else value.type if exact else _DOUBLE
        forms += [(f"sum({value.sql})", total, exact)] * 2
        forms += [(f"avg({value.sql})", _DOUBLE, False)] if field.tame else []
    text, type_, is_exact = draw(st.sampled_from(forms))
    return Formula(text, text, type_, is_exact)
