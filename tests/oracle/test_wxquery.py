"""WXQuery against Saxon, an independent engine of XQuery 3.1: random documents and queries, equal XML.

A query is written twice: in WXQuery over a stream, and in XQuery over the document that was pushed to it, with window
clauses for windows of counts and explicit intervals for those of time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tests.oracle.saxon import Saxon, running_saxon
from tureen.schema import Schema
from tureen.stems.xml_items import read_xml
from tureen.testing.manual_engine import ManualEngine
from tureen.testing.photons import ITEM, QUERIES, SCHEMA, TIME, photon_xml, photons

COLUMNS = "a INT, b DOUBLE, s STRING, `g/h` INT, `g/k` DOUBLE, t DOUBLE"
NUMBERS = ("a", "b", "g/h", "g/k", "t")
PATHS = (*NUMBERS, "s", "g")
_streams = count()
Option = TypeVar("Option")


@dataclass(frozen=True)
class Twin:
    """A part of a query in both languages."""

    wxquery: str
    xquery: str


@pytest.fixture(scope="module")
def saxon() -> Iterator[Saxon]:
    with running_saxon() as running:
        yield running


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManualEngine]:
    opened = ManualEngine(tmp_path_factory.mktemp("wxquery"))
    yield opened
    opened.close()


def answered(engine: ManualEngine, document: str, query: str) -> str:
    name = f"s{next(_streams)}"
    engine.create_stream(name, COLUMNS, time="t", clock="stream", item="r/i")
    rows = read_xml(Schema.parse(COLUMNS, "t"), "r/i", document.encode(), "d")
    # In two pushes, so that there are runs and pending rows.
    half = rows.num_rows // 2
    engine.push(name, rows.slice(0, half))
    engine.append(name, rows.slice(half))
    handle = engine.register(query.replace("STREAM", name), language="wxquery")
    return engine.invoke(handle).xml


def pick(options: Sequence[Option]) -> st.SearchStrategy[Option]:
    """Any of some options, all as often: of few examples, Hypothesis draws the first options most of the time."""
    return st.integers(0, 1 << 40).map(lambda number: options[number * 2_654_435_761 % (1 << 31) % len(options)])


def text_of(value: Decimal | int | str) -> str:
    return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)


def quarters(low: int, high: int) -> st.SearchStrategy[Decimal]:
    return pick(range(low * 4, high * 4 + 1)).map(lambda number: Decimal(number) / 4)


def optional_quarters(low: int, high: int) -> st.SearchStrategy[Decimal | None]:
    numbers = [None, None, *(Decimal(number) / 4 for number in range(low * 4, high * 4 + 1))]
    return pick(numbers)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Items with missing elements, in order of time."""
    items, time = [], Decimal(draw(pick(range(9))))
    for _ in range(draw(pick([0, 1, 4, 7, 10, 14]))):
        time += draw(quarters(0, 4))
        values: dict[str, Any] = {
            "a": draw(pick([None, *range(-4, 7)])),
            "b": draw(optional_quarters(-3, 5)),
            "s": draw(pick([None, "x", "y", "x&y", ""])),
        }
        group = {"h": draw(pick([None, 0, 1, 2, 3])), "k": draw(optional_quarters(0, 3))}
        inner = "".join(element(name, value) for name, value in group.items())
        fields = "".join(element(name, value) for name, value in values.items())
        items.append(f"<i>{fields}{f'<g>{inner}</g>' if inner else ''}{element('t', time)}</i>")
    return f"<r>{''.join(items)}</r>"


def element(name: str, value: Any) -> str:
    if value is None:
        return ""
    text = text_of(value).replace("&", "&amp;")
    return f"<{name}>{text}</{name}>" if text else f"<{name}/>"


OPERATORS = pick(["=", "<", "<=", ">", ">=", "!="])


def maybe(draw: st.DrawFn, strategy: st.SearchStrategy[Twin]) -> Twin | None:
    return draw(strategy) if draw(pick([True, False])) else None


@st.composite
def comparisons(draw: st.DrawFn, root: str) -> Twin:
    """An atomic predicate; `root` precedes paths."""
    left, operator = draw(pick(NUMBERS)), draw(OPERATORS)
    match draw(pick(range(4))):
        case 0:
            text = f'{root}s {operator} "{draw(pick(["x", "y"]))}"'
            return Twin(text, text)
        case 1:
            right, added = draw(pick(NUMBERS)), draw(quarters(-2, 2))
            text = f"{root}{left} {operator} {root}{right} + {text_of(added)}"
            return Twin(text, text)
        case 2 if operator != "!=":
            right = draw(pick(NUMBERS))
            return Twin(
                f"{root}{left} {operator} {root}{right}", f"number({root}{left}) {operator} number({root}{right})"
            )
    text = f"{root}{left} {operator} {text_of(draw(quarters(-3, 5)))}"
    return Twin(text, text)


@st.composite
def conditions(draw: st.DrawFn, root: str) -> Twin:
    parts = draw(st.lists(comparisons(root), min_size=1, max_size=3))
    operator = draw(pick([" and ", " and ", " or "]))
    return Twin(operator.join(part.wxquery for part in parts), operator.join(part.xquery for part in parts))


def both(template: str, *parts: Twin) -> Twin:
    return Twin(template.format(*(part.wxquery for part in parts)), template.format(*(part.xquery for part in parts)))


def same(text: str) -> Twin:
    return Twin(text, text)


@st.composite
def results(draw: st.DrawFn, variable: str, depth: int = 2) -> Twin:
    """What is returned for an item."""
    kinds = ["path", "path", "item", "text", "nothing", *(["element", "if", "for"] if depth else [])]
    match draw(pick(kinds)):
        case "path":
            return same(f"${variable}/{draw(pick(PATHS))}")
        case "item":
            return same(f"${variable}")
        case "nothing":
            return same("()")
        case "text":
            return same("<e>a &lt; b</e>")
        case "element":
            parts = draw(st.lists(results(variable, depth - 1), max_size=3))
            return both("<e>" + "{{{}}}" * len(parts) + "</e>", *parts) if parts else same("<e/>")
        case "for":
            inner = draw(results("v", 0))
            where = draw(comparisons(f"${variable}/"))
            return both("(for $v in " + f"${variable}/g" + " where {} return {})", where, _within_g(inner))
    condition, then, otherwise = (
        draw(conditions(f"${variable}/")),
        draw(results(variable, depth - 1)),
        draw(results(variable, depth - 1)),
    )
    return both("if ({}) then {} else {}", condition, then, otherwise)


def _within_g(part: Twin) -> Twin:
    """Paths of an item as paths of its element `g`."""

    def change(text: str) -> str:
        return re.sub(r"\$v/(?:g/)?\w+", "$v/h", text)

    return Twin(change(part.wxquery), change(part.xquery))


STREAM = 'stream("STREAM")/r/i'


@st.composite
def selections(draw: st.DrawFn) -> Twin:
    filters = maybe(draw, conditions(""))
    where = maybe(draw, conditions("$p/"))
    result = draw(results("p"))
    path = same("") if filters is None else both("[{}]", filters)
    clause = same("") if where is None else both(" where {}", where)
    query = both("{} {} return {}", path, clause, result)
    return Twin(f"<out>{{for $p in {STREAM}{query.wxquery}}}</out>", f"<out>{{for $p in /r/i{query.xquery}}}</out>")


@st.composite
def aggregates(draw: st.DrawFn, window: str, items: str) -> tuple[Twin, Twin, list[str]]:
    """Clauses of let, a condition over their variables, and their names."""
    clauses, names = [], [f"v{number}" for number in range(draw(pick([1, 2, 3])))]
    for name in names:
        function, path = draw(pick(["min", "max", "sum", "count", "avg"])), draw(pick(NUMBERS))
        inner = draw(pick(["", "", "[h > 1]"])) if path == "g/h" and function != "count" else ""
        path = f"g{inner}/h" if inner else path
        whole = function == "count" and draw(pick([True, False]))
        wxquery = window if whole else f"{window}/{draw(pick(['', 'i/']))}{path}"
        clauses.append(
            Twin(
                f"let ${name} := {function}({wxquery})",
                f"let ${name} := {function}({items}{'' if whole else '/' + path})",
            )
        )
    where = same("")
    if draw(pick([True, False])):
        value = f"${draw(pick(names))} {draw(OPERATORS)} {text_of(draw(quarters(-2, 4)))}"
        where = same(f" where {value}")
    return both(" ".join(["{}"] * len(clauses)), *clauses), where, names


@st.composite
def windows(draw: st.DrawFn) -> Twin:
    filters = maybe(draw, conditions(""))
    path = same("") if filters is None else both("[{}]", filters)
    lets, where, names = draw(aggregates("$w", "$w"))
    values = "".join(f"<{name}>{{${name}}}</{name}>" for name in names)
    if draw(pick([True, False])):
        size, step = draw(pick([1, 2, 3, 4])), draw(pick([1, 2, 3, 4]))
        listed = "{$w/b}{$w/g}{$w}" if filters is None and draw(pick([True, False])) else ""
        window = f"|count {size} step {step}|" if step != size else f"|count {size}|"
        clause = (
            f"for sliding window $w in /r/i{path.xquery} start at $s when ($s - 1) mod {step} = 0 "
            f"only end at $e when $e - $s + 1 = {size}"
        )
    else:
        width, slide = draw(quarters(1, 6)), draw(quarters(1, 6))
        listed = "{$w/b}{$w/g}{$w}" if draw(pick([True, False])) else ""
        window = f"|{draw(pick(['t', '/i/t', '']))} diff {width} step {slide}|"
        clause = (
            f"for $k in -30 to 200 let $w := /r/i{path.xquery}[t >= $k * {slide} and t < $k * {slide} + {width}] "
            f"where exists($w) and $k * {slide} + {width} <= max(/r/i/t)"
        )
    end = f"return <w>{values}{listed}</w>"
    return Twin(
        f"<out>{{for $w in {STREAM}{path.wxquery} {window} {lets.wxquery}{where.wxquery} {end}}}</out>",
        f"<out>{{{clause} {lets.xquery}{where.xquery} {end}}}</out>",
    )


@st.composite
def whole_streams(draw: st.DrawFn) -> Twin:
    filters = draw(conditions(""))
    path, name = draw(pick(NUMBERS)), draw(pick(["min", "max", "sum", "count", "avg"]))
    end = "return <o>{$x}|{$y}</o>"
    return Twin(
        f"let $x := {name}({STREAM}[{filters.wxquery}]/{path}) let $y := count({STREAM}) {end}",
        f"let $x := {name}(/r/i[{filters.xquery}]/{path}) let $y := count(/r/i) {end}",
    )


@st.composite
def nested(draw: st.DrawFn) -> Twin:
    """A query over the elements that another constructs: selected items, or aggregates of windows."""
    where, outer = draw(conditions("$p/")), draw(pick(["x/b > 1", "x/n/t <= 9.5", "x/t >= 3"]))
    inner = "return <x>{$p/b}<n>{$p/t}</n>{$p/t}</x>"
    condition = outer.replace("x/", "$x/")
    if draw(pick([True, False])):
        end = f"where {condition} return <o>{{$x}}{{$x/n}}</o>"
        return Twin(
            f"<out>{{for $x in (for $p in {STREAM} where {where.wxquery} {inner}) {end}}}</out>",
            f"<out>{{for $x in (for $p in /r/i where {where.xquery} {inner}) {end}}}</out>",
        )
    size = draw(pick([1, 2, 3]))
    lets = "let $m := sum($x/b), $n := count($x) return <o>{$m}/{$n}</o>"
    selected = both(
        f"<all>{{{{for $p in {{}} where {{}} {inner.replace('{', '{{').replace('}', '}}')}}}}}</all>/x",
        Twin(STREAM, "/r/i"),
        where,
    )
    return Twin(
        f"<out>{{for $x in {selected.wxquery} |count {size}| {lets}}}</out>",
        f"<out>{{for tumbling window $x in {selected.xquery} "
        f"start at $s when true() only end at $e when $e - $s + 1 = {size} {lets}}}</out>",
    )


@pytest.mark.parametrize("queries", [selections, windows, whole_streams, nested])
@given(data=st.data())
@example_settings(13, explored=25)
def test_equals_xquery(
    engine: ManualEngine, saxon: Saxon, queries: Callable[[], st.SearchStrategy[Twin]], data: st.DataObject
) -> None:
    document, query = data.draw(documents()), data.draw(queries())
    assert answered(engine, document, query.wxquery) == saxon.answer(document, query.xquery)


@given(document=documents(), where=conditions("$p/"), operator=pick(["=", "<", ">="]))
@example_settings(8)
def test_joins_equal_xquery(engine: ManualEngine, saxon: Saxon, document: str, where: Twin, operator: str) -> None:
    end = "return <j>{$p/a}{$q/t}</j>"
    query = f"for $p in {STREAM} for $q in {STREAM}[b > 0] where $p/a {operator} $q/g/h and ({where.wxquery}) {end}"
    compared = f"number($p/a) {operator} number($q/g/h)"
    expected = f"for $p in /r/i for $q in /r/i[b > 0] where {compared} and ({where.xquery}) {end}"
    answer = answered(engine, document, query)
    # The rows of a join are ordered by their earliest time.
    assert sorted(re.findall("<j.*?(?:/>|</j>)(?=<j|$)", answer)) == sorted(
        re.findall("<j.*?(?:/>|</j>)(?=<j|$)", saxon.answer(document, expected))
    )


WINDOWS_OF_THE_PAPER = {"Q3": (20, 10, "true()"), "Q4": (60, 40, "$a >= 1.3")}


@pytest.mark.parametrize("name", QUERIES)
def test_queries_of_the_paper(engine: ManualEngine, saxon: Saxon, name: str) -> None:
    rows = list(photons(400, seed=5, interval=2.0))
    document = photon_xml(rows).decode().replace("\n", "").replace(".0<", "<")
    stream = f"p{next(_streams)}"
    engine.create_stream(stream, SCHEMA, time=TIME, clock="stream", item=ITEM)
    engine.push(stream, rows)
    text = QUERIES[name]
    answer = engine.invoke(engine.register(text.replace('"photons"', f'"{stream}"'), language="wxquery")).xml
    # Without windows, the queries are XQuery as they stand.
    query = text.replace('stream("photons")', "")
    if name in WINDOWS_OF_THE_PAPER:
        size, step, condition = WINDOWS_OF_THE_PAPER[name]
        items = query[query.index("/photons/photon") : query.index("|")].strip()
        query = (
            "<photons>{for $k in -10 to 300 "
            f"let $w := {items}[det_time >= $k * {step}][det_time < $k * {step} + {size}] "
            f"let $a := avg($w/en) where exists($w) and $k * {step} + {size} <= max(/photons/photon/det_time) "
            f"and {condition} return <avg_en>{{$a}}</avg_en>}}</photons>"
        )
    expected = saxon.answer(document, query)
    assert expected.count("<") > 4
    assert rounded(answer) == rounded(expected)


def rounded(xml: str) -> str:
    """Sums of doubles depend on their order in the last digits."""
    return re.sub(r"\d+\.\d+", lambda match: f"{float(match.group()):.9f}", xml)
