"""Queries of a known frame are bound without parsing, with the same result."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.fast_path_switch import without_fast_paths
from tureen.errors import TureenError, UnknownColumn
from tureen.fast_paths import FastPath
from tureen.language import bind_query
from tureen.language.fast.quick import QuickBinder
from tureen.language.text.shapes import shape_of
from tureen.predicate import Interval
from tureen.query import NamedRelation, Query
from tureen.schema import Schema

SCHEMA = Schema.parse(
    "i INT, l BIGINT, d DOUBLE, f FLOAT, s STRING, n DECIMAL(9,2), b BOOLEAN, day DATE, ts TIMESTAMP, "
    "`begin` INT, `end` INT, emit INT, partial INT",
    "ts",
)


def lookup(name: str) -> NamedRelation:
    return NamedRelation(name.lower(), SCHEMA)


NUMBERS = [
    "2147483647",
    "-2147483648",
    "2147483648",
    "9223372036854775807",
    "99999999999999999999",
    "0",
    "-0",
    "0.0",
    "-0.0",
    "1.5",
    "-2.25",
    "1e3",
    "5L",
    "2.5D",
    "1.0BD",
    ".5",
    "7.",
    "1.23456789012345678901234567890123456789",
]
CONSTANTS = st.one_of(
    st.integers(-300, 300).map(str),
    st.sampled_from(NUMBERS),
    st.text("ab'%\\ é", max_size=3).map(lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"),
    st.sampled_from(["'2026-01-01'", "DATE '2026-01-01'", "TIMESTAMP '2026-01-01 00:00:00'", "NULL", "TRUE"]),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda value: f"{value:.6f}"),
)
FACTORS = st.sampled_from(
    """
{c} = {}; {c} <> {}; {c} < {}; {c} >= {}; {} > {c}; {c} BETWEEN {} AND {}; {c} IN ({}, {}); {c} LIKE {}; NOT {c} = {}
{c} + {} > {}; ({c} = {} OR {c} > {}); {c} IS NOT NULL; {} < {}
""".strip()
    .replace("\n", "; ")
    .split("; ")
)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[str, int]:
    """A query with `{}` for its constants, and the number of these."""
    count = draw(st.integers(1, 3))
    parts = [
        draw(FACTORS).replace("{c}", draw(st.sampled_from(["i", "l", "d", "f", "s", "n", "day"]))) for _ in range(count)
    ]
    text = "SELECT i FROM str WHERE " + " AND ".join(parts)
    return text + draw(st.sampled_from(["", " BEGIN NOW - 5 END NOW", " ORDER BY i LIMIT 3"])), text.count("{}")


def bound(text: str) -> Query | str:
    try:
        return bind_query(text, lookup)
    except TureenError as error:
        return type(error).__name__


def quickly(binder: QuickBinder, text: str) -> Query | str:
    try:
        return binder.bind(text, lookup)[0]
    except TureenError as error:
        return type(error).__name__


@example_settings(100)
@given(shapes(), st.data())
def test_known_shape_is_bound_as_in_full(shape: tuple[str, int], data: st.DataObject) -> None:
    text, count = shape
    binder = QuickBinder()
    for _ in range(4):
        filled = text.format(*[data.draw(CONSTANTS) for _ in range(count)])
        assert quickly(binder, filled) == bound(filled), filled


PLAIN = "SELECT i FROM str WHERE "
STEPS = "SELECT count(*) AS c FROM str [RANGE 10 SECONDS SLIDE 5 SECONDS] WHERE "
FILTER = "SELECT count(*) FILTER (WHERE {}) AS c FROM {}"


@pytest.mark.parametrize(
    "texts",
    [
        # The frame of a query whose clause is not plain is not reused.
        [PLAIN + "i > 3", PLAIN + "i > 1 OR l > 4 LIMIT 3", PLAIN + "i > 7"],
        [PLAIN + "i > 3", PLAIN + "i > 1 OR l > 4 BEGIN NOW - 5 SECONDS END NOW", PLAIN + "i > 7"],
        [
            "SELECT s FROM str WHERE i > 3",
            "SELECT s FROM str WHERE i > 3 OR b GROUP BY s",
            "SELECT s FROM str WHERE i > 8",
        ],
        [PLAIN + "b OR i > l LIMIT 3", PLAIN + "b OR s = 'x' ORDER BY i", PLAIN + "b OR i > l LIMIT 3"],
        [PLAIN + "i > 3", PLAIN + "i > 3 OFFSET 7", PLAIN + "i > 3", PLAIN + "i > 3 OFFSET 5"],
        [PLAIN + "i > 3", PLAIN + "i > 3;", PLAIN + "i > 4", PLAIN + "i > 4 ;"],
        [PLAIN + "b OR i > l END NOW - 5 SECONDS", PLAIN + "b OR i > l END NOW - 7 SECONDS"],
        # The WHERE of a FILTER.
        [FILTER.format("b", "str"), FILTER.format("b", "other"), FILTER.format("b", "str")],
        [FILTER.format("i > 1", "str"), FILTER.format("i > 1", "str GROUP BY s"), FILTER.format("i > 2", "str")],
        [FILTER.format("i > 1", "str WHERE i > 2"), FILTER.format("i > 9", "str WHERE i > 2")],
        # EMIT PARTIAL, and names that are keywords.
        [STEPS + "i > 3", STEPS + "i > 3 EMIT PARTIAL", STEPS + "i > 5", STEPS + "i > 5 EMIT PARTIAL"],
        [STEPS + "i > 3 EMIT PARTIAL", STEPS + "i > 3", STEPS + "i > 5 EMIT PARTIAL AND i > 3"],
        [
            PLAIN + "l > 5 AND i > begin AND l > 3",
            PLAIN + "l > 7 begin AND l > 3",
            PLAIN + "i > AND l > 5 begin AND l > 3",
        ],
        [
            PLAIN + "l > 5 AND i < end AND l > 3",
            PLAIN + "l > 5 end AND l > 3",
            PLAIN + "end < 4",
            PLAIN + "end < 4 END NOW",
        ],
        [
            PLAIN + "emit > 5",
            PLAIN + "emit > 5 AND partial = 2",
            PLAIN + "i > 5 AND emit > 5",
            PLAIN + "i > 5 emit > 5",
        ],
        # What depends on NOW, and clauses of window functions.
        [PLAIN + "i > 3", PLAIN + "i > 3 AND ts < NOW", PLAIN + "i > 7"],
        [PLAIN + "i > 3 AND ts < NOW - INTERVAL 5 MINUTES", PLAIN + "i > 3 AND ts < NOW - INTERVAL 7 MINUTES"],
        [
            f"SELECT i, rank() OVER (ORDER BY l) AS r FROM str WHERE {rest}"
            for rest in ("i > 3", "i > 3 QUALIFY r > 1", "i > 4 QUALIFY r > 2", "i > 4")
        ],
        [
            f"SELECT i, rank() OVER w AS r FROM str WHERE {rest}"
            for rest in ("i > 3 WINDOW w AS (ORDER BY l)", "i > 3 WINDOW w AS (ORDER BY i)", "i > 4")
        ],
        # Constants with suffixes.
        [PLAIN + "d = 0.1", PLAIN + "d = 0.1F", PLAIN + "d = 0.1D", PLAIN + "i = 16777217F", PLAIN + "i = 16777217"],
        [PLAIN + "i > 5", PLAIN + "i > 300Y", PLAIN + "i > 5L", PLAIN + "i > 40000S", PLAIN + "d > 1.5BD"],
        # Constants that do not occur in the clause.
        [PLAIN + f"(FALSE AND {constant} > i)" for constant in ("1 / 5", "1 / 0", "1 + 5", "2147483647 + 5")],
        [PLAIN + f"(FALSE AND CAST('{text}' AS INT) = i)" for text in ("5", "abc")],
        # Aliases of streams.
        *(
            [f"SELECT i FROM {stream} WHERE {name}.i > 3" for stream, name in pairs]
            for pairs in ((("st", "st"), ("st x", "x"), ("st x", "st"), ("st", "x")), (("str", "str"), ("str", "time")))
        ),
    ],
    ids=lambda texts: texts[1],
)
def test_similar_queries_do_not_interfere(texts: list[str]) -> None:
    for order in (texts, texts[::-1]):
        binder = QuickBinder()
        for text in [text for pair in zip(order, order, strict=True) for text in pair] + order + order[::-1]:
            assert quickly(binder, text) == bound(text), text


def bound_with_shape(binder: QuickBinder, text: str) -> tuple[Query, str] | tuple[str, str]:
    """The query and its shape, or the error with its location."""
    try:
        return binder.bind(text, lookup)
    except TureenError as error:
        return type(error).__name__, str(error)


def binder_without_quick_binding() -> QuickBinder:
    with without_fast_paths(FastPath.QUICK_BINDING):
        return QuickBinder()


@example_settings(60)
@given(st.data())
def test_queries_shapes_and_errors_are_the_same_without_quick_binding(data: st.DataObject) -> None:
    quick, full = QuickBinder(), binder_without_quick_binding()
    frames = data.draw(st.lists(st.sampled_from(FRAMES), min_size=1, max_size=2))
    conditions = data.draw(st.lists(st.sampled_from([*POOL, "wrong > {}", "i > > {}"]), min_size=1, max_size=4))
    for _ in range(6):
        head, tail = data.draw(st.sampled_from(frames))
        written = " AND ".join(data.draw(st.lists(st.sampled_from(conditions), min_size=1, max_size=3)))
        digits = data.draw(st.lists(st.integers(1, 9), min_size=written.count("{}"), max_size=written.count("{}")))
        text = head + written.format(*digits) + tail
        assert bound_with_shape(quick, text) == bound_with_shape(full, text), text
    assert not full._frames.keys()


def test_without_quick_binding_every_text_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    full = binder_without_quick_binding()
    text = "SELECT i FROM str WHERE i > 3"
    full.bind(text, lookup)
    other = bind_query("SELECT s FROM str", lookup)
    monkeypatch.setattr("tureen.language.fast.quick.bind_text", lambda *_, **__: other)
    assert full.bind(text, lookup)[0] == other


def test_stream_recreated_during_binding() -> None:
    binder = QuickBinder()
    before, after = Schema.parse("i INT, x STRING"), Schema.parse("i BIGINT")
    text = "SELECT x FROM str WHERE i = 1"
    for calls in range(4):
        schemas = [before] * calls + [after] * 4

        def changing_lookup(name: str, schemas: list[Schema] = schemas) -> NamedRelation:
            return NamedRelation(name, schemas.pop(0))

        with contextlib.suppress(TureenError):
            binder.bind(text, changing_lookup)
        with pytest.raises(UnknownColumn):
            binder.bind(text, lambda name: NamedRelation(name, after))


FRAMES = (
    ("SELECT i FROM str WHERE ", ""),
    ("SELECT s, count(*) AS n FROM str WHERE ", " GROUP BY s HAVING count(*) > 2 AND s < 'x'"),
    ("SELECT * FROM str -- WHERE\nWHERE /* AND */", "-- AND\n BEGIN NOW - 5 END NOW"),
    ("SELECT str.i FROM str [RANGE 5 SECONDS] WHERE ", "\nORDER BY i LIMIT 3;"),
    ("SELECT i FROM str WHERE i > 3 OR ", ""),
    ("SELECT i FROM str WHERE NOT ", " OR s = 'y'"),
    ("SELECT i FROM str WHERE CASE WHEN ", " THEN TRUE ELSE FALSE END"),
    (STEPS, " EMIT PARTIAL"),
    (PLAIN, " OFFSET 4"),
    (PLAIN, " LIMIT 3 OFFSET 4 END NOW - 3 SECONDS"),
    ("SELECT count(*) FILTER (WHERE i > 3) AS c FROM str WHERE ", " BEGIN NOW - 5 END NOW"),
    ("SELECT i, NOW AS n, row_number() OVER (PARTITION BY s ORDER BY i) AS r FROM str WHERE ", " QUALIFY r < 3"),
    ("SELECT i, lag(i) OVER w AS r FROM str WHERE ", " WINDOW w AS (ORDER BY ts) ORDER BY r LIMIT 3"),
    ("SELECT s, max(ts) AS t FROM str WHERE ", " GROUP BY s HAVING max(ts) < NOW - INTERVAL 5 MINUTES"),
)
POOL = (
    *("i > {}", "l <= {}", "str.d BETWEEN {} AND {}", "i BETWEEN {} AND {}", "s = '{}'", "d < -{}.5", "`l` <> {}"),
    *("{} < i", "(i = {})", "(i = {} OR l = {})", "b", "s IS NULL", "NOT i BETWEEN {} AND {}", "s IN ('{}', 'b')"),
    *("day = DATE '2026-01-0{}'", "i + {} > 5", "s LIKE '{}%'", "i >\n -- AND\n {}", "TRUE", "i = NULL", "begin > {}"),
    *("ts < NOW", "ts > now() - INTERVAL {} MINUTES", "i > hour(NOW)", "day = current_date", "window > {}"),
    *("d > {}.5F", "i = {}L", "end > {}", "emit = {}", "partial < {}", "i == {}", "n = {}.5", "f > {}.25", "I > - {}"),
)


@example_settings(60)
@given(st.data())
def test_known_comparisons_are_combined_as_in_full(data: st.DataObject) -> None:
    binder = QuickBinder()
    frames = data.draw(st.lists(st.sampled_from(FRAMES), min_size=1, max_size=2))
    pool = data.draw(st.lists(st.sampled_from(POOL), min_size=1, max_size=4))
    for _ in range(6):
        head, tail = data.draw(st.sampled_from(frames))
        factors = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4))
        written = f" {data.draw(st.sampled_from(['AND', 'and', 'AND', 'OR']))} ".join(factors)
        digits = data.draw(st.lists(st.integers(1, 9), min_size=written.count("{}"), max_size=written.count("{}")))
        text = head + written.format(*digits) + tail
        assert quickly(binder, text) == bound(text), text


@pytest.mark.parametrize(
    ("head", "tail"), [frame for frame in FRAMES if " OR " not in "".join(frame) and "CASE" not in frame[0]]
)
def test_second_query_of_a_frame_is_not_parsed(head: str, tail: str, monkeypatch: pytest.MonkeyPatch) -> None:
    binder = QuickBinder()
    binder.bind(f"{head} s > '2' AND i > 3 {tail}", lookup)
    monkeypatch.setattr("tureen.language.fast.quick.bind_text", None)
    text = f"{head}\n i  > 5\t AND s > 'z' AND i > 4{tail}"
    assert binder.bind(text, lookup)[0] == bind_query(text, lookup)


def test_frame_with_a_different_clause_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tureen.language.fast.quick.intervals_of", lambda *_: (Interval(77),))
    binder = QuickBinder()
    for text in 3 * ["SELECT i FROM str WHERE i > 3", "SELECT i FROM str WHERE i > 4"]:
        assert binder.bind(text, lookup)[0] == bind_query(text, lookup)


def test_new_combination_of_known_comparisons_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    binder = QuickBinder()
    for text in ("SELECT i FROM str WHERE i > 3 AND s = 'a'", "SELECT i FROM str WHERE d BETWEEN 1 AND 2"):
        binder.bind(text, lookup)
    monkeypatch.setattr("tureen.language.fast.quick.bind_text", None)
    text = "SELECT i FROM str WHERE s = 'b' AND d BETWEEN 3 AND 4 AND i > 5"
    assert binder.bind(text, lookup)[0] == bind_query(text, lookup)


def test_second_query_of_a_shape_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    binder = QuickBinder()
    text = "SELECT i FROM str WHERE s = '{}' AND d > {} AND i < -{} BEGIN NOW - 5 END NOW"
    binder.bind(text.format("x", 1.5, 3), lookup)
    monkeypatch.setattr("tureen.language.fast.quick.bind_text", None)
    query, shape = binder.bind(text.format("it", 2.25, 77), lookup)
    assert query == bind_query(text.format("it", 2.25, 77), lookup)
    assert shape == shape_of(text.format("x", 1.5, 2)).text


def test_recreated_stream_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    binder = QuickBinder()
    other = Schema.parse("s STRING, d BIGINT")
    text = "SELECT s FROM str WHERE d > 2"
    binder.bind(text, lookup)
    query, _ = binder.bind(text, lambda name: NamedRelation(name, other))
    assert query == bind_query(text, lambda name: NamedRelation(name, other))
    assert query.stream.clause != binder.bind(text, lookup)[0].stream.clause
    binder.bind(text, lambda name: NamedRelation(name, other))
    monkeypatch.setattr("tureen.language.fast.quick.bind_text", None)
    assert binder.bind(text, lambda name: NamedRelation(name, other))[0] == query


def test_column_names_keep_their_case() -> None:
    binder = QuickBinder()
    for text in 3 * ["SELECT i AS Nr FROM str WHERE i = 1", "SELECT i AS nr FROM str WHERE i = 2"]:
        assert binder.bind(text, lookup)[0] == bind_query(text, lookup)


def test_shapes_ignore_constants() -> None:
    shape = shape_of("select I from str where s = 'a' and d > -1 begin now - 5 end now")
    assert shape.text == shape_of("SELECT i  FROM str WHERE s='bcd' AND d > 22.5 BEGIN NOW - 5 END NOW").text
    assert shape.text == shape_of("SELECT i FROM str WHERE s = :name AND d > :limit BEGIN NOW - 5 END NOW").text
    for other in (
        "SELECT i FROM str WHERE s = 'a' AND d > 1 BEGIN NOW - 6 END NOW",
        "SELECT i FROM str WHERE s = 'a' AND d >= 1 BEGIN NOW - 5 END NOW",
        "SELECT `I` FROM str WHERE s = 'a' AND d > 1 BEGIN NOW - 5 END NOW",
    ):
        assert shape_of(other).text != shape.text


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("SELECT i FROM str WHERE i > 3 END NOW - 5", "select i from str where i > ? end now - 5"),
        ("SELECT i FROM str WHERE i > 3 LIMIT 2 OFFSET 7", "select i from str where i > ? limit 2 offset 7"),
        ("SELECT i FROM str WHERE i > 3L AND d IN (0.5D, 1BD)", "select i from str where i > ? and d in ( ? , ? )"),
        ("SELECT i FROM str WHERE i > 3 OFFSET 7;", "select i from str where i > ? offset 7 ;"),
        ("SELECT i FROM str WHERE i > 3 QUALIFY r > 4", "select i from str where i > ? qualify r > 4"),
        (
            "SELECT i FROM str WHERE i > 3 WINDOW w AS (ORDER BY i ROWS 2 PRECEDING)",
            "select i from str where i > ? window w as ( order by i rows 2 preceding )",
        ),
        (
            "SELECT count(*) FILTER (WHERE i > 1) AS n FROM str WHERE i > 2",
            "select count ( * ) filter ( where i > 1 ) as n from str where i > ?",
        ),
        (
            "SELECT i FROM str [ROWS 5] WHERE end > 5 AND begin < 7",
            "select i from str [ rows 5 ] where end > ? and begin < ?",
        ),
    ],
)
def test_shapes_keep_constants_of_other_clauses(text: str, shape: str) -> None:
    assert shape_of(text).text == shape
