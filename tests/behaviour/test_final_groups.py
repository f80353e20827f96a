"""EMIT FINAL, embedded and through a client; the example of the documents runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tureen
from tests.behaviour.conftest import AnySoup, rows
from tureen.errors import SqlError, Unsupported

Names = Callable[[str], str]
PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text()


def test_example_of_the_documents(soup: AnySoup, fresh: Names) -> None:
    section = PAGE.partition("\n## Final groups\n")[2].partition("\n## ")[0]
    auctions, bids, finals = fresh("auctions"), fresh("bids"), fresh("finals")
    names: dict[str, Any] = {"soup": soup}
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        text = re.sub(r"(?<!\w)auctions(?!\w)", auctions, block)
        text = re.sub(
            r"(?<=FROM )bids|(?<=JOIN )bids|\"bids\"(?!:)", lambda match: match[0].replace("bids", bids), text
        )
        exec(text.replace('"finals"', f'"{finals}"'), names)
    closed = soup.punctuate(bids, {"item": 181})
    assert list(names["bids_of_auctions"].invoke(wait_for=closed)) == [
        {"item": 180, "bids": 2},
        {"item": 181, "bids": 1},
    ]
    answer = soup.answer_once(f"SELECT item, bids FROM {finals} ORDER BY item")
    assert list(answer) == [{"item": 180, "bids": 2}, {"item": 181, "bids": 1}]


def test_changes_have_each_group_once(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym, count(*) AS n FROM {trades} GROUP BY sym EMIT FINAL")
    start = query.invoke().position
    soup.push(trades, [*rows(("A", 1.0, 1), ("B", 1.0, 1), ("A", 2.0, 2)), tureen.Punctuation(sym="A")])
    first = next(query.changes(since=start, timeout=20))
    assert (first.kind, first.row) == ("insert", {"sym": "A", "n": 2})
    soup.punctuate(trades, {"sym": ["B", "C"]})
    (second,) = query.changes(since=first.position, timeout=0)
    assert (second.kind, second.row) == ("insert", {"sym": "B", "n": 1})
    assert list(query.changes(since=second.position, timeout=0)) == []
    assert len(list(query.changes(since=start, timeout=0))) == 2
    assert query.explain()["final"] == {
        "final": 2,
        "open": 0,
        "closed_by": [{"input": trades, "columns": ["sym"], "unique": False, "time": None}],
    }


def test_tuples_of_open_groups_say_so(soup: AnySoup, trades: str) -> None:
    query = soup.register(f"SELECT sym, count(*) AS n FROM {trades} GROUP BY sym EMIT FINAL")
    soup.push(trades, [*rows(("A", 1.0, 1), ("B", 1.0, 1)), tureen.Punctuation(sym="A")])
    reasons = {each.row["sym"]: [reason.kind for reason in each.reasons] for each in query.why("qty = 1").tuples}
    assert reasons == {"A": ["group"], "B": ["group", "open"]}


def test_errors_have_places(soup: AnySoup, trades: str) -> None:
    with pytest.raises(SqlError, match="EMIT must be followed by FINAL or PARTIAL, got 'NOTHING'") as caught:
        soup.register(f"SELECT sym FROM {trades} GROUP BY sym EMIT NOTHING")
    assert caught.value.location is not None
    with pytest.raises(Unsupported, match="EMIT FINAL is not supported in register_many"):
        soup.register_many(f"SELECT sym FROM {trades} WHERE qty > :q GROUP BY sym EMIT FINAL", [{"q": 1}])
