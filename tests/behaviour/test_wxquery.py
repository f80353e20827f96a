"""Queries in WXQuery, embedded and through a client: registered, invoked, followed, explained and listed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.behaviour.conftest import AnySoup
from tests.service.running import RunningServer
from tureen.errors import SqlError, TureenError, UnknownColumn
from tureen.testing.photons import ITEM, QUERIES, SCHEMA, TIME, photon_xml, photons

Names = Callable[[str], str]
ALL = list(photons(200, seed=5, interval=2.0))


@pytest.fixture(scope="module")
def stream(soup: AnySoup) -> str:
    soup.create_stream("wx_photons", SCHEMA, time=TIME, item=ITEM, if_not_exists=True)
    if not len(soup.answer_once("SELECT phc FROM wx_photons LIMIT 1")):
        soup.push("wx_photons", photon_xml(ALL), format="xml", key="all")
    return "wx_photons"


def text_of(name: str, stream: str) -> str:
    return QUERIES[name].replace('"photons"', f'"{stream}"')


@pytest.mark.parametrize("name", QUERIES)
def test_queries_of_the_paper(soup: AnySoup, stream: str, name: str, fresh: Names) -> None:
    text, label = text_of(name, stream), fresh(name)
    query = soup.register(text, name=label, language="wxquery")
    answer = query.invoke()
    assert answer.xml.startswith("<photons><")
    assert answer.xml == soup.answer_once(text, language="wxquery").xml == soup.query(label).invoke().xml
    assert answer.xml.count("</vela>" if name == "Q1" else "</rxj>" if name == "Q2" else "</avg_en>") == len(answer)
    plan = query.explain()
    assert (plan["language"], plan["sql"]) == ("wxquery", text)
    assert plan["translation"].startswith("SELECT ")
    assert soup.explain_once(text, language="wxquery")["translation"] == plan["translation"]
    listed = next(entry for entry in soup.describe_queries() if entry["id"] == query.id)
    assert (listed["language"], listed["sql"]) == ("wxquery", text)
    assert soup.query(label).registered.language == "wxquery"
    query.unregister()


def test_changes(soup: AnySoup, fresh: Names) -> None:
    name = fresh("followed")
    soup.create_stream(name, "v DOUBLE, t DOUBLE", time="t", item="r/i")
    items = f'stream("{name}")/r/i'
    rows = soup.register(
        f"<out>{{for $i in {items} where $i/v > 1 return <big>{{$i/v}}</big>}}</out>", language="wxquery"
    )
    window = f"for $w in {items} |t diff 10| let $a := avg($w/v) return <mean>{{$a}}</mean>"
    means = soup.register(window, language="wxquery")
    since, start = rows.invoke().position, means.invoke().position
    soup.push(name, [{"v": float(number), "t": number * 4.0} for number in range(5)])
    assert [change.xml for change in rows.changes(since=since, timeout=0.2)] == [
        f"<big><v>{number}</v></big>" for number in (2, 3, 4)
    ]
    # The window from 10 on is complete when the time reaches 20.
    changes = list(means.changes(since=start, timeout=0.2))
    assert [(change.kind, change.xml) for change in changes] == [("insert", "<mean>1</mean>")]
    soup.push(name, [{"v": 5.0, "t": 20.0}])
    changes = list(means.changes(since=changes[-1].position, timeout=0.2))
    assert [change.xml for change in changes] == ["<mean>3.5</mean>"]
    assert means.invoke().xml == "<mean>1</mean><mean>3.5</mean>"
    fed = [change for change in soup.feed(since="0", timeout=0.2) if change.query in (rows.id, means.id)]
    assert {change.xml for change in fed} >= {"<big><v>5</v></big>", "<mean>3.5</mean>"}
    for query in (rows, means):
        query.unregister()


def test_errors(soup: AnySoup, stream: str) -> None:
    text = f'for $p in stream("{stream}")/photons/photon\nreturn $p/enn'
    for call in (soup.register, soup.answer_once):
        with pytest.raises(UnknownColumn, match="there is no element 'enn' in <photon>") as raised:
            call(text, language="wxquery")
        assert raised.value.location is not None
        assert (raised.value.location.line, raised.value.location.column) == (2, 11)
        assert raised.value.hint == "did you mean 'en'?"
    with pytest.raises(SqlError):
        soup.register(text)
    with pytest.raises(TureenError, match="language must be one of sql, wxquery, got 'xpath'"):
        soup.register(text, language="xpath")
    with pytest.raises(TureenError, match="has no changes"):
        counted = f'for $w in stream("{stream}")/photons/photon[en > 1] |count 2| let $a := max($w/en) return $a'
        list(soup.register(counted, language="wxquery").changes(timeout=0))


def test_http(served_pot: RunningServer, stream: str) -> None:
    headers = {"Authorization": f"Bearer {served_pot.tokens['admin']}"}
    text = f'<all>{{for $p in stream("{stream}")/photons/photon[phc < 5] return $p/phc}}</all>'
    body: dict[str, Any] = {"sql": text, "language": "wxquery"}
    expected = "".join(f"<phc>{row['phc']}</phc>" for row in ALL if row["phc"] < 5)
    with httpx.Client(base_url=served_pot.url, headers=headers, timeout=60) as http:
        query = http.post("/v1/queries", json=body).json()
        assert query["language"] == "wxquery"
        result = f"/v1/queries/{query['id']}/result"
        assert http.get(result, headers={"Accept": "application/xml"}).text == f"<all>{expected}</all>"
        assert [row["phc"] for row in http.get(result).json()["rows"]] == [row["phc"] for row in ALL if row["phc"] < 5]
        once = http.post("/v1/sql", json=body, headers={"Accept": "application/xml"})
        assert once.text == f"<all>{expected}</all>"
        refused = http.post("/v1/queries", json={**body, "sql": "<a>"}).json()["error"]
        assert (refused["message"], refused["position"]) == ("<a> is not closed", {"line": 1, "column": 1})
        assert http.post("/v1/queries", json={**body, "language": "xpath"}).status_code == 422
        assert http.post("/v1/queries", json={**body, "params": [{"a": 1}]}).status_code == 400
        http.delete(f"/v1/queries/{query['id']}")
