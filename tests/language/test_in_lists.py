"""Long lists after IN: tokenized as one token, with the same result as a token per constant."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from sqlglot.dialects.spark import Spark

from tureen.errors import SqlError
from tureen.language.binding.passes import bind_query
from tureen.language.text import in_lists as lists
from tureen.language.text import split
from tureen.language.text.in_lists import LIST, tokenize_with_lists
from tureen.language.text.shapes import shape_of
from tureen.query import NamedRelation, Query
from tureen.schema import Schema

SCHEMA = Schema.parse(
    "id BIGINT, small INT, sym STRING, price DOUBLE, low FLOAT, money DECIMAL(12,2), flag BOOLEAN, day DATE, "
    "ts TIMESTAMP",
    time="ts",
)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits from which lists count as long."""
    monkeypatch.setattr(lists, "LONG_TEXT", 200)
    monkeypatch.setattr(lists, "LONG_LIST", 100)


def bound(text: str) -> Query | str:
    try:
        return bind_query(text, lambda _: NamedRelation("t", SCHEMA))
    except SqlError as error:
        return str(error)


def slowly(monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[Query | str, str]:
    """The query and its shape, with a token per constant."""
    with monkeypatch.context() as patched:
        patched.setattr(split, "tokenize_with_lists", lambda text, tokenize: tokenize(text))
        return bound(text), shape_of(text).text


def listed(kind: str, count: int = 150) -> str:
    rng = random.Random(kind)
    values: dict[str, Callable[[], object]] = {
        "whole": lambda: str(rng.randint(-5_000, 5_000)),
        "large": lambda: str(rng.randint(-(10**17), 10**17)),
        "near": lambda: str(rng.choice([-(2**31), 2**31 - 1, 2**31, -(2**31) - 1, 0, 7])),
        "decimal": lambda: f"{rng.randint(-999, 999)}.{rng.randint(0, 99):02d}",
        "mixed": lambda: rng.choice([str(rng.randint(-9, 9)), f"{rng.randint(-9, 9)}.{rng.randint(0, 999)}"]),
        "consecutive": iter(range(count)).__next__,
        "text": lambda: f"'{rng.choice(PIECES)}{rng.randint(0, 999)}'",
        "digits": lambda: f"'{rng.randint(-999, 999)}'",
        "day": lambda: f"'2026-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}'",
    }
    blanks = [", ", ",", " ,\n", "\t,  "]
    return "".join(f"{values[kind]()}{rng.choice(blanks) if n < count - 1 else ''}" for n in range(count))


PIECES = ["a", "B", "é", "", ", ", "--", "/*", "\n", "(", '"']
KINDS = ["whole", "large", "near", "decimal", "mixed", "consecutive", "text", "digits", "day"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("column", [column.name for column in SCHEMA.columns])
def test_long_lists_are_bound_like_short_ones(monkeypatch: pytest.MonkeyPatch, kind: str, column: str) -> None:
    """The same query, the same shape, and the same error at the same location."""
    for negated in ("", "NOT "):
        text = f"SELECT id FROM t\nWHERE price > 1 AND\n {column} {negated}IN ( {listed(kind)}\n) AND sym = 'x' LIMIT 3"
        assert any(token.token_type is LIST for token in tokenize_with_lists(text, Spark().tokenize))
        assert (bound(text), shape_of(text).text) == slowly(monkeypatch, text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id IN ({0}) AS it, sym FROM t WHERE small IN ({0}) OR id in({0}) BEGIN NOW - 1 HOUR END NOW",
        "SELECT count(*) AS n FROM t WHERE NOT (id IN ({0})) GROUP BY sym HAVING max(id) IN ({0})",
        "SELECT id FROM t WHERE CASE WHEN id IN ({0}) THEN TRUE ELSE price + 1 IN ({0}) END",
        "SELECT id FROM t WHERE coalesce(id, 1) NOT IN ({0}) AND CAST(small AS DOUBLE) IN ({0}) ORDER BY id",
        "SELECT id FROM t WHERE (id IN ({0})) IS NULL",
        "SELECT id FROM t WHERE id IN ({0}) AND nobody = 1",
        "SELECT id FROM t WHERE id IN ({0}) AND",
        "SELECT id FROM t WHERE id IN ({0}) 5",
        "SELECT id FROM t WHERE sym = 'x IN ({0})' AND id IN ({0})",
        "SELECT id FROM t /* x IN ({0}) */ WHERE id IN ({0})",
        "SELECT id -- x IN ({0})\n FROM t WHERE id IN ({0})",
        "SELECT id FROM t WHERE id IN (\\ {0})",
        "SELECT id FROM t WHERE locate('a' IN ({0}))",
        "SELECT id FROM t WHERE id + 1 IN ({0}, NULL)",
        "SELECT id FROM t WHERE id IN ({0}, 1 + 1)",
        "SELECT id FROM t WHERE id IN ({0}",
        "SELECT id FROM t WHERE id IN ({0},)",
        "SELECT id FROM t WHERE `IN` ({0})",
        "SELECT IN ({0}) FROM t",
    ],
)
def test_lists_anywhere_are_bound_like_short_ones(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    text = text.replace("{0}", listed("whole", 100).replace("\n", " "))
    fast = bound(text)
    slow, shape = slowly(monkeypatch, text)
    if "locate" in text or "SELECT IN" in text:
        # Not a condition: both are rejected, with different messages.
        assert isinstance(fast, str)
        assert isinstance(slow, str)
    else:
        assert (fast, shape_of(text).text) == (slow, shape)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("id", "consecutive"),
        ("id", "whole"),
        ("id", "large"),
        ("small", "whole"),
        ("sym", "text"),
        ("day", "day"),
        ("price", "decimal"),
        ("low", "decimal"),
        ("low", "whole"),
    ],
)
def test_list_equals_chain_of_comparisons(column: str, kind: str) -> None:
    values = lists.items_of(listed(kind, 300))
    # The common type of the list is also the type of each comparison.
    edges = {"id": [str(2**63 - 1), str(-(2**63) + 1)], "small": [str(2**31 - 1), str(-(2**31))], "sym": ["''"]}
    values += edges.get(column, [])
    for word, op, joined in (("IN", "=", " OR "), ("NOT IN", "<>", " AND ")):
        chain = joined.join(f"{column} {op} {value}" for value in values)
        in_list, in_chain = (
            bound(f"SELECT id FROM t WHERE {text}") for text in (f"{column} {word} ({', '.join(values)})", chain)
        )
        assert isinstance(in_list, Query)
        assert isinstance(in_chain, Query)
        assert in_list.stream.clause == in_chain.stream.clause


def test_search_for_lists_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each string of this list could start another list."""
    starts: list[int] = []
    scan_end = lists._scan_end

    def recording_scan_end(text: str, at: int) -> int:
        starts.append(at)
        return scan_end(text, at)

    monkeypatch.setattr(lists, "_scan_end", recording_scan_end)
    text = "SELECT id FROM t WHERE sym IN (" + ", ".join(["'IN ('"] * 20_000) + " 5"
    assert list(lists._long_lists(text)) == []
    assert len(starts) < 5
