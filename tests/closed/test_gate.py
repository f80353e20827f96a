"""Gates accept and reject the rows that the plain twin does."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.closed import key_set
from tureen.closed.gate import Gate
from tureen.closed.rules import Rules
from tureen.closed.section import PlacedPattern, decode_section, encode_section
from tureen.errors import InvalidPunctuation
from tureen.punctuation import Punctuation, Range
from tureen.schema import Schema
from tureen.stems.intake import to_batch
from tureen.stems.punctuation_binding import bind_punctuation
from tureen.testing.punctuations import PunctuatedStream

SCHEMA = Schema.parse(
    "a INT, s STRING, f DOUBLE, d DECIMAL(9,2), w DECIMAL(38,2), b BOOLEAN, day DATE, ts TIMESTAMP", "ts"
)
START = datetime(2026, 1, 1, tzinfo=UTC)

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "a": st.integers(-1, 2),
    "s": st.sampled_from(["", "a", "ab", "ä", "z" * 40]),
    "f": st.sampled_from([-1.5, -0.0, 0.0, 0.25, 3.0, float("inf")]),
    "d": st.integers(-3, 5).map(lambda n: Decimal(n).scaleb(-2)),
    "w": st.integers(-2, 3).map(lambda n: Decimal(f"{'-' * (n < 0)}{'1234567890' * 3}123456.0{abs(n)}")),
    "b": st.booleans(),
    "day": st.integers(0, 4).map(lambda n: date(2026, 1, 1) + timedelta(days=n)),
    "ts": st.integers(0, 30).map(lambda n: START + timedelta(seconds=n)),
}
ROWS = st.fixed_dictionaries({name: value if name == "ts" else st.none() | value for name, value in VALUES.items()})


@st.composite
def patterns(draw: st.DrawFn, name: str) -> Any:
    """A value, a list or a range of a column."""
    values = VALUES[name]
    kind = draw(st.sampled_from(["value", "list", "range"] if name != "b" else ["value", "list"]))
    if kind == "value":
        return draw(values)
    if kind == "list":
        return draw(st.lists(values, min_size=1, max_size=3))
    low, high = sorted([draw(values), draw(values)])
    ends: dict[str, Any] = draw(st.sampled_from([{"low": low}, {"high": high}, {"low": low, "high": high}]))
    if low != high:
        ends |= {"low_open": draw(st.booleans()), "high_open": draw(st.booleans())}
    try:
        bind_punctuation(SCHEMA, Punctuation(**{name: Range(**ends)}))
    except ValueError:
        return low
    except Exception:
        return draw(values)
    return Range(**ends)


@st.composite
def punctuations(draw: st.DrawFn) -> Punctuation:
    """A punctuation of one to three columns, mostly of one."""
    names = draw(
        st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=draw(st.sampled_from([1, 1, 2, 3])), unique=True)
    )
    return Punctuation(**{name: draw(patterns(name)) for name in names})


ITEMS = st.lists(ROWS | ROWS | ROWS | punctuations(), max_size=12)
RULES = st.sampled_from([Rules(), Rules(("a",)), Rules(("a", "s")), Rules(("s",), 5_000_000), Rules((), 3_000_000)])


def pushed(gate: Gate, items: list[Any]) -> tuple[list[Any], int, pa.RecordBatch, Any]:
    """The accepted rows of a push."""
    rows: list[Any] = []
    placed: list[PlacedPattern] = []
    for item in items:
        if isinstance(item, Punctuation):
            placed.append(PlacedPattern(len(rows), bind_punctuation(SCHEMA, item)))
        else:
            rows.append(item)
    verdict = gate.pass_through(to_batch(SCHEMA, rows), placed, 1_700_000_000_000_000)
    assert len(verdict.section.rejected) == verdict.section.rejected_rows
    return verdict.accepted.to_pylist(), verdict.section.rejected_rows, verdict.accepted, verdict.section


def row(a: int | None, s: str | None = None, second: int = 0) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(VALUES)
    return {**empty, "a": a, "s": s, "ts": START + timedelta(seconds=second)}


@example([[row(1), Punctuation(a=1), row(1), row(2)], [row(1), row(2)]], Rules(), False, False)
@example([[row(1, "a"), Punctuation(s=Range(low="a", high="b")), row(1, "a"), row(1, "c")]], Rules(), False, False)
@example([[row(1, "a"), Punctuation(a=[1, 2], s="a"), row(2, "a"), row(2, "b")]], Rules(("a",)), True, False)
@example([[row(1, "x", 9), row(1, "y", 30), row(2, "z", 5), row(3, "u", 3)]], Rules(("a",), 5_000_000), False, True)
@given(st.lists(ITEMS, max_size=5), RULES, st.booleans(), st.booleans())
@example_settings(60)
def test_gates_decide_as_the_plain_twin(
    pushes: list[list[Any]], rules: Rules, small_levels: bool, in_order: bool
) -> None:
    lateness = None if rules.lateness is None else timedelta(microseconds=rules.lateness)
    twin = PunctuatedStream(rules.unique, "ts" if lateness is not None else None, lateness)
    gate = Gate(SCHEMA, rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_set, "DELTA_KEYS", 1 if small_levels else 4096)
        patch.setattr(key_set, "_SORTED_ROWS", 1 if small_levels else 1024)
        patch.setattr("tureen.closed.gate._ROUNDS", 0 if in_order else 20)
        log = []
        for items in pushes:
            before = len(twin.accepted), len(twin.rejected)
            twin.push(items)
            accepted, rejected, batch, section = pushed(gate, items)
            assert accepted == twin.accepted[before[0] :]
            assert rejected == len(twin.rejected) - before[1]
            log.append((batch, decode_section(encode_section(section))))
            assert log[-1][1].patterns == section.patterns
        # A gate that is restored from the log decides as the first one.
        restored = Gate(SCHEMA, rules)
        for batch, section in log:
            restored.restore(batch, section, 1_700_000_000_000_000)
        probe = [row for items in pushes for row in items if not isinstance(row, Punctuation)]
        assert pushed(restored, probe)[0] == pushed(gate, probe)[0]


def test_reasons_name_the_punctuation_and_when_it_was_pushed() -> None:
    gate = Gate(SCHEMA, Rules(("a",), 5_000_000))
    first = {"a": 1, "s": "x", "ts": START}
    pushed(gate, [first, Punctuation(s="y"), Punctuation(day=Range(high=date(2026, 1, 3)))])
    several = Punctuation(a=9, f=Range(low=1.0))
    late = {"a": 2, "ts": START - timedelta(seconds=6)}
    broken = [first, {"a": 3, "s": "y", "ts": START}, late, several]
    broken += [{"a": 9, "f": 2.0, "ts": START}, {"a": 4, "day": date(2026, 1, 2), "ts": START}]
    section = pushed(gate, broken)[3]
    assert [reason for _, reason in section.rejected] == [
        "there is a tuple with the unique key a = 1 already",
        "closed by the punctuation s = 'y', pushed at 2023-11-14 22:13:20 UTC",
        "ts = '2025-12-31T23:59:54+00:00' is more than 0:00:05 before the highest time seen",
        "closed by the punctuation a = 9 AND f >= 1.0, earlier in the same push",
        "closed by the punctuation day <= '2026-01-03', pushed at 2023-11-14 22:13:20 UTC",
    ]


def test_ranges_are_merged_and_cover_values() -> None:
    gate = Gate(SCHEMA, Rules())
    for part in (5, [7, 8], Range(low=10, high=12), Range(low=13, high=20), Range(low=4, high=7), Range(high=-5)):
        pushed(gate, [Punctuation(a=part)])
    pushed(
        gate, [Punctuation(s=Range(low="a", high="c", high_open=True)), Punctuation(s=Range(low="c", low_open=True))]
    )
    pushed(gate, [Punctuation(s=Range(high="b"))])
    summary = gate.summary()
    assert summary["values"] == [{"columns": ["a"], "count": 1}]
    assert summary["ranges"] == ["a <= -5", "a >= 4 AND a <= 7", "a >= 10 AND a <= 20", "s > 'c'", "s < 'c'"]


def test_decimals_of_38_digits_are_exact() -> None:
    gate = Gate(SCHEMA, Rules(("w",)))
    first, second, third = (Decimal(f"{'1234567890' * 3}123456.0{digit}") for digit in range(3))
    accepted = [{**row(1), "w": value} for value in (first, second)]
    assert pushed(gate, [*accepted, Punctuation(w=Range(low=third))])[1] == 0
    section = pushed(gate, [{**row(1), "w": second}, {**row(1), "w": third}])[3]
    assert [reason.partition(", ")[0] for _, reason in section.rejected] == [
        f"there is a tuple with the unique key w = {second} already",
        f"closed by the punctuation w >= {third}",
    ]


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (Range(low=2**63 - 1, low_open=True), "column 'n': the range above 9223372036854775807 is empty"),
        (Range(high=-(2**63), high_open=True), "column 'n': the range below -9223372036854775808 is empty"),
    ],
)
def test_ranges_beyond_all_values_are_refused(ends: Range, message: str) -> None:
    schema = Schema.parse("n BIGINT")
    with pytest.raises(InvalidPunctuation) as error:
        bind_punctuation(schema, Punctuation(n=ends))
    assert error.value.message == message
    gate = Gate(schema, Rules())
    closed = Range(ends.low, ends.high)
    gate.pass_through(to_batch(schema, []), [PlacedPattern(0, bind_punctuation(schema, Punctuation(n=closed)))], 0)
    rows = [{"n": number} for number in (-(2**63), 0, 2**63 - 1)]
    assert gate.pass_through(to_batch(schema, rows), [], 0).section.rejected_rows == 1
