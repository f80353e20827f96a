"""The random inputs cover all forms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.control import BuildContext
from hypothesis.errors import StopTest
from hypothesis.internal.conjecture.data import ConjectureData

from tests.examples import example_settings
from tureen.schema import Kind, Schema, Type
from tureen.testing import strategies
from tureen.testing.values import stored_value

SCHEMA = strategies.wide_schema()


def drawn(strategy: st.SearchStrategy[Any], count: int = 300) -> list[Any]:
    """Examples of a strategy, the same in every run."""
    examples: list[Any] = []

    @settings(
        max_examples=count,
        phases=(Phase.generate,),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Any) -> None:
        examples.append(value)

    collect()
    return examples


class Sample:
    """Independent examples of a strategy, the same in every run, made when they are first read.

    Hypothesis often repeats parts of an example in the next one: of a thousand examples of `drawn` half are equal to
    another one, of these hardly any.
    """

    def __init__(self, strategy: st.SearchStrategy[Any], count: int) -> None:
        """Of so many examples."""
        self._strategy, self._count = strategy, count
        self._random = Random(0)
        self._made: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        """The examples, from the first one."""
        for number in range(self._count):
            while number >= len(self._made):
                self._make()
            yield self._made[number]

    def _make(self) -> None:
        data = ConjectureData(random=self._random)
        # Raised by an example that would be too long, or that a filter refuses.
        with suppress(StopTest), BuildContext(data, wrapped_test=Sample):
            self._made.append(data.draw(self._strategy))


CONDITIONS = {
    portable: Sample(strategies.conditions(SCHEMA, portable=portable, depth=1), 1200) for portable in (True, False)
}
QUERIES = Sample(strategies.queries(SCHEMA, "s", depth=0), 600)
QUESTIONS = Sample(strategies.questions(SCHEMA), 700)


def occurs(form: str, texts: Iterable[str]) -> bool:
    return any(re.search(form, text) for text in texts)


def test_the_wide_schema_has_two_columns_of_every_type() -> None:
    assert {column.type.kind for column in SCHEMA.columns} == set(Kind) - {Kind.ARRAY}, "lists are results only"
    for type_ in strategies.TYPES:
        assert sum(column.type == type_ for column in SCHEMA.columns) >= 2
    assert SCHEMA.time == "Ts"


@pytest.mark.parametrize(
    "form",
    [
        r"\w <= ",
        r"-?\d+ < ",
        r" NOT BETWEEN ",
        r" IN \(.*NULL",
        r" NOT IN \(",
        r" IS NOT NULL",
        r" LIKE '[^']*%",
        r" ESCAPE '!'",
        r"NOT \(",
        r"\) OR \(",
        r" and .* OR ",
        r"\w_\d [<>=]+ \w+_\d \+ 1",
        r"upper\(",
        r"double_\d \+ double_\d > 3",
        r"INTERVAL '1' SECOND",
        r"DATE '",
        r"TIMESTAMP '",
        r"CAST\('NaN' AS DOUBLE\)",
    ],
)
def test_every_kind_of_condition_occurs(form: str) -> None:
    assert occurs(form, CONDITIONS[True])


@pytest.mark.parametrize("form", [r"\d\.\d+D", r"\d+L", r"LIKE '.*\\\\", r"timestamp_\d [<>=]+ '", r"'a\\\\b'"])
def test_forms_of_spark_occur_if_not_portable(form: str) -> None:
    assert occurs(form, CONDITIONS[False])
    assert not occurs(form, islice(CONDITIONS[True], 500))


@pytest.mark.parametrize(
    "form",
    [
        r"^$",
        r"BEGIN NOW - INTERVAL '\d+' \w+ END NOW$",
        r"BEGIN NOW - \d+ MINUTES END NOW - INTERVAL",
        r"BEGIN NOW - \d+ HOURS END NOW$",
        r"BEGIN NOW - \d+ END NOW$",
        r"BEGIN TIMESTAMP '.*' END NOW$",
        r"BEGIN TIMESTAMP '.*' END TIMESTAMP '.*'$",
        r"BEGIN NOW - \d+ ROWS END NOW$",
        r"BEGIN NOW - \d+ ROWS END NOW - \d+ ROWS$",
    ],
)
def test_every_kind_of_window_occurs(form: str) -> None:
    assert occurs(form, (query.window for query in QUERIES))


@pytest.mark.parametrize("form", [r"SELECT \*", r"SELECT t\.\*", r" AS out\d", r"FROM s AS t", r"s\.\w+ .*FROM s\b"])
def test_every_kind_of_select_list_occurs(form: str) -> None:
    assert occurs(form, (query.batch for query in QUERIES))


def test_the_parts_of_a_query_make_its_text() -> None:
    assert any(query.where is None for query in QUERIES)
    for query in islice(QUERIES, 200):
        assert query.text.startswith(query.batch)
        assert query.batch.endswith(f" WHERE {query.where}" if query.where else f" FROM {query.source}")


@pytest.mark.parametrize(
    "form",
    [
        r"SELECT DISTINCT (?!.*GROUP BY)",
        r"SELECT DISTINCT .*GROUP BY",
        r"SELECT \*|, \* FROM|\*, ",
        r"CASE WHEN .* END AS o\d",
        r"ORDER BY [^()]+ DESC NULLS FIRST",
        r"ORDER BY \d",
        r"LIMIT 2 OFFSET 1",
        r"OFFSET 99",
        r"GROUP BY \d",
        r"GROUP BY o\d",
        r"GROUP BY [^,]*(CASE|coalesce|IS NULL| [+*/%] )",
        r"HAVING count",
        r"HAVING \(",
        r"count\(\*\)",
        r"count\(DISTINCT [^()]+, ",
        r"approx_count_distinct\(",
        r"sum\(",
        r"sum\(DISTINCT",
        r"avg\(",
        r"min\(",
        r"max\(DISTINCT",
        r"stddev_pop\(",
        r"var_samp\(",
        r"approx_percentile\(.*, 0\.",
        r" percentile\(",
        r"median\(",
        r"first\([^()]+\) (?!IGNORE)",
        r"last\([^()]+\) IGNORE NULLS",
        r"max_by\(",
        r"bool_and\(",
        r"count_if\(",
        r"FILTER \(WHERE",
        r"\[RANGE \d+ \w+ SLIDE",
        r"\[HOP ",
        r"\[TUMBLE \d+ \w+\]",
        r"\[ROWS \d SLIDE \d\]",
        r"START AT TIMESTAMP",
        r"EMIT PARTIAL\]",
        r" TUMBLE\(Ts, ",
        r" HOP\(Ts, ",
        r" window\(Ts, '\d+ \w+', '\d+ \w+'\)",
        r" window\(Ts, '\d+ \w+', '\d+ \w+', '1 ",
        r"EMIT PARTIAL BEGIN",
        r"END .* EMIT PARTIAL$",
        r"SLIDE .*BEGIN",
        r"window_start",
        r"window\.start",
        r"\[ROWS 7\]",
        r"rank\(\) OVER \(",
        r"(lag|lead)\([^()]+\) ",
        r"ROWS BETWEEN \d PRECEDING",
        r"RANGE BETWEEN \d PRECEDING",
        r"sum\([^()]+\) OVER \(.* ORDER BY [^()]+\)",
        r"GROUP BY .*ROLLUP \(",
        r"GROUP BY .*CUBE \(",
        r" AND .*now\(\)",
        r"SELECT (?!.*(GROUP BY|\()).*SLIDE",
    ],
)
def test_every_kind_of_question_occurs(form: str) -> None:
    assert occurs(form, (question.text for question in QUESTIONS))


@pytest.mark.parametrize("type_", strategies.TYPES, ids=lambda type_: type_.sql)
def test_tame_values_are_small(type_: Type) -> None:
    values = [value for value in drawn(strategies.values(type_, tame=True), 60) if type(value) in (int, float, Decimal)]
    assert all(abs(value) <= 1000 for value in values if math.isfinite(value))


@pytest.mark.parametrize("type_", strategies.TYPES, ids=lambda type_: type_.sql)
def test_values_fit_their_type_and_are_sometimes_null(type_: Type) -> None:
    values = drawn(strategies.values(type_), 100)
    assert None in values
    assert len({value for value in values if value is not None and stored_value(value, type_) is not None}) > 1


@pytest.mark.parametrize("kind", [Kind.FLOAT, Kind.DOUBLE])
def test_special_floats_occur(kind: Kind) -> None:
    values = drawn(strategies.values(Type(kind), nulls=False))
    assert any(math.isnan(value) for value in values)
    assert -math.inf in values
    assert any(value == 0 and math.copysign(1, value) < 0 for value in values)


def test_schemas_with_and_without_time_occur() -> None:
    times = {schema.time for schema in drawn(strategies.schemas(), 50)}
    assert times == {None, "Ts"}


@example_settings(30)
@given(st.data())
def test_rows_fit_their_schema(data: st.DataObject) -> None:
    schema: Schema = data.draw(strategies.schemas())
    for row in data.draw(strategies.rows(schema)):
        assert set(row) == set(schema.names)
        assert schema.time is None or row[schema.time] is not None
