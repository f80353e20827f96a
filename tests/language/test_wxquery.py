"""WXQuery as text: what it is translated to, and where errors are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import TureenError, UnknownStream
from tureen.language.source import Source
from tureen.language.wxquery.wxquery_binding import bind_wxquery
from tureen.query import NamedRelation
from tureen.schema import Schema
from tureen.testing.photons import ITEM, QUERIES, SCHEMA, TIME
from tureen.xml_template import decode_template, encode_template

PHOTONS = 'stream("photons")/photons/photon'
PAGE = (Path(__file__).parents[2] / "docs" / "wxquery.md").read_text()
STREAMS = {
    "photons": NamedRelation("photons", Schema.parse(SCHEMA, TIME), item=ITEM),
    "trades": NamedRelation("trades", Schema.parse("sym STRING, price DECIMAL(9,2), ts TIMESTAMP", "ts")),
    "arrived": NamedRelation("arrived", Schema.parse("`v[1]` INT, `v[last()]` INT, `w/@u` STRING"), item="r/i"),
}


def lookup(name: str) -> NamedRelation:
    if name not in STREAMS:
        raise UnknownStream(f"there is no stream named '{name}'")
    return STREAMS[name]


def translation(text: str) -> str:
    query = bind_wxquery(text, lookup)
    assert query.sql == text
    assert query.template is not None
    assert decode_template(encode_template(query.template)) == query.template
    return str(query.translation)


@pytest.mark.parametrize("text", [*QUERIES.values(), *re.findall(r"```wxquery\n(.*?)```", PAGE, re.DOTALL)])
def test_queries_of_the_paper_and_the_page(text: str) -> None:
    assert translation(text).startswith("SELECT ")


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        (f"for $p in {PHOTONS} return $p/en", "SELECT i1.`en` AS `en` FROM `photons` i1"),
        (f"for $p in {PHOTONS} return <hit/>", "SELECT 1 AS `row` FROM `photons` i1"),
        (
            f"for $w in {PHOTONS} |det_time diff 0.5| return <w/>",
            "SELECT window_start, window_end, count(*) AS `count` "
            "FROM `photons` i1 [RANGE 500000 MICROSECONDS SLIDE 500000 MICROSECONDS]",
        ),
        (
            f"for $w in {PHOTONS} |count 20 step 10| let $n := count($w) return <w>{{$n}}</w>",
            "SELECT count(*) AS `n` FROM `photons` i1 [ROWS 20 SLIDE 10]",
        ),
        (
            'for $t in stream("trades")/rows/row[sym = "it\'s"] where $t/price >= 1.50 return $t/price',
            "SELECT i1.`price` AS `price` FROM `trades` i1 WHERE i1.`sym` = 'it\\'s' AND i1.`price` >= 1.50",
        ),
        (
            'for $x in stream("arrived")/r/i where $x/v[last()] > 1 and $x/w/@u = "m" return $x/v[1]',
            "SELECT i1.`v[1]` AS `v[1]` FROM `arrived` i1 WHERE i1.`v[last()]` > 1 AND i1.`w/@u` = 'm'",
        ),
        (
            f"(: all :) for $p in {PHOTONS}[en > 1]/coord/cel[ra > 2] return <c>{{$p/ra}}</c>",
            "SELECT i1.`coord/cel/ra` AS `ra` FROM `photons` i1 WHERE i1.`en` > 1 AND i1.`coord/cel/ra` > 2 "
            "AND (i1.`coord/cel/ra` IS NOT NULL OR i1.`coord/cel/dec` IS NOT NULL)",
        ),
    ],
)
def test_translations(text: str, sql: str) -> None:
    assert translation(text) == sql


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text contains no query"),
        ("   (: nothing :) ", "the text contains no query"),
        ("‸SELECT * FROM photons", "expected an expression, got 'SELECT'"),
        ("<a/>", "the query reads no stream"),
        ("‸<a>", "<a> is not closed"),
        ("<a>\n‸</b>", "<a> is closed by </b>"),
        ("‸(: open", "a comment is not closed"),
        ('<a ‸b="c"/>', "attributes of constructors are not supported"),
        ("<a>‸}</a>", "expected an element, text or '{'"),
        ("<a>‸&b;</a>", "expected an entity such as &amp;"),
        ("‸$x", "there is no variable '$x'"),
        ('for $p in ‸stream("nothing")/a/b return $p', "there is no stream named 'nothing'"),
        ("for $p in stream(‸photons)/a return $p", "expected the name of a stream in quotes"),
        ('for $p in stream(‸"photons)/a return $p', "a text is not closed"),
        ('for $p in stream("photons")/‸photon return $p', "the items of stream 'photons' are not photon"),
        ('for $p in ‸stream("photons") return $p', "are not at its root"),
        ('for $p in stream("photons")‸//photon return $p', "only the child axis"),
        ('for $p in stream("photons")/photons/‸* return $p', "wildcards are not supported"),
        ('for $p in stream("photons")/‸photons[a = 1]/photon return $p', "only supported on items"),
        (f"for $p in {PHOTONS} return $p/‸enn", "there is no element 'enn' in <photon>"),
        (f"for $p in {PHOTONS} return $p/en/‸x", "there is no element 'x' in <en>"),
        (f"for $p in {PHOTONS} return ‸$q", "there is no variable '$q'"),
        (f"for $p in {PHOTONS} where ‸$p/coord = 1 return $p", "<coord> is not a value"),
        (f"for $p in {PHOTONS} where ‸en = 1 return $p", "'en' does not begin with a variable"),
        (f"for $p in {PHOTONS} where $p/en ‸return $p", "expected a comparison, got 'return'"),
        (f"for $p in {PHOTONS}\nwhere $p/en > ‸'much' return $p", "'much' is not a DOUBLE"),
        (f"for $p in {PHOTONS}‸", "expected 'return', the text ends"),
        (f"for $p in {PHOTONS} return‸", "expected an expression, the text ends"),
        (f"for $p in {PHOTONS} return if $p/en > 1 then $p‸", "expected 'else'"),
        (f"for $w in {PHOTONS} ‸|count 1.5| return $w", "a window counts whole items"),
        (f"for $w in {PHOTONS} |count ‸0| return $w", "must be above zero"),
        (f"for $w in {PHOTONS} ‸|en diff 5| return $w", "a window follows the time of its stream"),
        (f"for $w in {PHOTONS} |often‸| return $w", "expected 'diff'"),
        (f"for $w in {PHOTONS} |count 2| let $a := ‸median($w/en) return $a", "'median' is not an aggregate"),
        (f"for $w in {PHOTONS} |count 2| let $a := avg(‸$w/coord) return $a", "<coord> is not a value"),
        (f"for $w in {PHOTONS} |count 2| let $a := avg($w/en) let $b := max(‸$a) return $b", "is a value"),
        (f"for $w in {PHOTONS} |count 2| for ‸$p in $w/photon return $p", "only input"),
        (f"for $w in {PHOTONS}[en > 1] |count 2| return ‸$w", "cannot be listed"),
        (f"for $w in {PHOTONS} |count 2| where ‸$w/en > $w/phc return <a/>", "only be compared with constants"),
        (f"for $p in {PHOTONS} for ‸$w in {PHOTONS} |count 2| return $w", "the only input"),
        (f"<a>{{for $p in {PHOTONS} return $p}}{{‸for $p in {PHOTONS} return $p}}</a>", "one FLWR expression"),
        (f"for $p in {PHOTONS} return for ‸$q in {PHOTONS} return $q", "within return can only iterate"),
        (f"‸if 1 = 1 then {PHOTONS} else ()", "if is only supported after return"),
        (f"for $x in ‸(for $p in {PHOTONS} return $p) return $x", "must be a FLWR expression that returns"),
        (f"for $x in <a>{{for $p in {PHOTONS} return <b/>}}</a>/‸c return $x", "the elements in <a> are b"),
        ("<a>" * 64 + "‸<a>", "the query is nested too deeply"),
        ("(" * 64 + "‸(", "the query is nested too deeply"),
        (f"for $p in {PHOTONS} where " + "(" * 63 + "‸(", "nested too deeply"),
    ],
)
def test_errors_have_places(text: str, message: str) -> None:
    """The mark ‸ is before the place."""
    plain = text.replace("‸", "")
    with pytest.raises(TureenError, match=re.escape(message)) as raised:
        bind_wxquery(plain, lookup)
    assert raised.value.location == (Source(text).location(text.index("‸")) if "‸" in text else None)


PIECES = st.sampled_from(
    [
        "for",
        "let",
        "$p",
        "$w",
        "in",
        ":=",
        "where",
        "return",
        "if",
        "then",
        "else",
        "(",
        ")",
        "(",
        "{",
        "}",
        "<",
        ">",
        "<a>",
        "</a>",
        "<a/>",
        "/",
        "/photon/en",
        "[",
        "]",
        "en",
        ">",
        "1.5",
        "=",
        '"x"',
        "and",
        "or",
        "|count",
        "2|",
        "|det_time",
        "diff",
        "20",
        "step",
        "10|",
        "avg(",
        "count(",
        "$p/en",
        "$w/photon/en",
        'stream("photons")/photons/photon',
        ",",
        "(:",
        ":)",
        "&",
        "-",
    ]
)


def bound(text: str) -> bool:
    """Whether a text is a query; any other has an error with a place in the text."""
    try:
        assert bind_wxquery(text, lookup).template is not None
    except TureenError as error:
        if error.location is not None:
            Source(text).offset(error.location)
        return False
    return True


@given(st.lists(PIECES, max_size=25).map(" ".join) | st.text(max_size=40))
@example_settings(300)
def test_any_text_is_bound_or_refused(text: str) -> None:
    bound(text)


@given(st.sampled_from(sorted(QUERIES.values())), st.integers(0, 400), st.integers(0, 6), PIECES)
@example_settings(200)
def test_changed_queries_are_bound_or_refused(text: str, at: int, length: int, piece: str) -> None:
    assert bound(text)
    bound(text[:at] + piece + text[at + length :])
