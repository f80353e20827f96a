"""What queries need of the streams that they read."""

from __future__ import annotations

import pytest

from tureen.language import bind_query
from tureen.language.languages import bind_text
from tureen.query import NamedRelation, RelationKind
from tureen.schema import Schema
from tureen.sharing.selection_text import selection_text
from tureen.sharing.stream_needs import stream_needs

SCHEMAS = {
    "s": Schema.parse("a INT, b INT, t TIMESTAMP", time="t"),
    "u": Schema.parse("a INT, c STRING, t TIMESTAMP", time="t"),
    "d": Schema.parse("a INT, label STRING"),
}


def relation(name: str) -> NamedRelation:
    return NamedRelation(name, SCHEMAS[name], RelationKind.TABLE if name == "d" else RelationKind.STREAM)


def texts(sql: str) -> list[str | None]:
    needs = stream_needs(bind_query(sql, relation), SCHEMAS.__getitem__)
    return [None if need is None else selection_text(SCHEMAS[need.stream], need) for need in needs]


S, U = "SELECT `a`, `b`, `t` FROM `s`", "SELECT `a`, `c`, `t` FROM `u`"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT b FROM s WHERE b > 3", ["SELECT `b`, `t` FROM `s` WHERE (`b` >= 4)"]),
        ("SELECT count(*) FROM s [RANGE 1 MINUTE] WHERE a = 1", ["SELECT `a`, `t` FROM `s` WHERE (`a` = 1)"]),
        ("SELECT b FROM s [ROWS 10] WHERE a = 1", ["SELECT `a`, `b`, `t` FROM `s`"]),
        ("SELECT a FROM s WHERE t > NOW - INTERVAL '1' HOUR AND a = 2", ["SELECT `a`, `t` FROM `s` WHERE (`a` = 2)"]),
        ("SELECT s.b FROM s JOIN u ON s.a = u.a WHERE u.c = 'x'", [S, f"{U} WHERE (`c` = 'x')"]),
        ("SELECT s.b FROM s JOIN d ON s.a = d.a", [S, None]),
        ("SELECT x FROM (SELECT b AS x FROM s WHERE a = 1) AS q", ["SELECT `a`, `b`, `t` FROM `s` WHERE (`a` = 1)"]),
        (
            "SELECT a FROM s WHERE b = 2 UNION SELECT a FROM u",
            ["SELECT `a`, `b`, `t` FROM `s` WHERE (`b` = 2)", "SELECT `a`, `t` FROM `u`"],
        ),
    ],
)
def test_needs_of_queries(sql: str, expected: list[str | None]) -> None:
    assert texts(sql) == expected


def test_needs_of_wxquery() -> None:
    schema = Schema.parse("`coord/ra` DOUBLE, en DOUBLE, at DOUBLE", time="at")
    text = """<r>{ for $w in stream("p")/ps/p [coord/ra >= 120.0] |/p/at diff 20 step 10|
        let $a := avg($w/p/en) return <e>{ $a }</e> }</r>"""
    query = bind_text(text, "wxquery", lambda name: NamedRelation(name, schema, item="ps/p"))
    (need,) = stream_needs(query, lambda _: schema)
    assert need is not None
    assert selection_text(schema, need) == "SELECT `coord/ra`, `en`, `at` FROM `p` WHERE (`coord/ra` >= 120.0)"
