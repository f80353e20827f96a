"""Templates that change: rows of parameters are added and removed, labels, parameters in the select list."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.soup.template_pot import SQL, TemplatePot, make_row, numbered_rows
from tureen.errors import InvalidRows, TureenError, UnknownQuery
from tureen.pot.catalog import Catalog
from tureen.pot.members import drop_member, load_members
from tureen.pot.streams import drop_stream, find_stream
from tureen.pot.sweep import sweep
from tureen.pot.template_files import MOST_GONE
from tureen.results.invoke import Invoker
from tureen.soup.templates import Templates


@pytest.fixture
def pot(tmp_path: Path) -> Iterator[TemplatePot]:
    """A pot with a stream."""
    pot = TemplatePot(tmp_path)
    yield pot
    pot.engine.close()


def _files(pot: TemplatePot) -> list[Path]:
    return [path for path in (pot.engine.catalog.root / "templates").rglob("*") if path.is_file()]


def test_rows_are_added_and_removed(pot: TemplatePot) -> None:
    handle = pot.templates.register(SQL, [{"sym": "a", "p": 1.0}, {"sym": "b", "p": 2.0}], "alerts")
    pot.engine.push("s", [make_row(0, sym="c", price=5.0)])
    since = pot.matches(handle, None).position()
    assert pot.templates.add(handle, [{"sym": "c", "p": 3.0}, {"sym": "a", "p": None}]) == range(2, 4)
    assert list(pot.templates.members(handle)) == [0, 1, 2, 3]
    # Its answer includes tuples from before it was added.
    assert pot.engine.invoke("alerts.2").table.to_pylist() == [{"sym": "c", "twice": 10.0}]
    pot.engine.push("s", [make_row(1, price=9.0), make_row(2, sym="c", price=9.0)])
    assert [number for number, _ in numbered_rows(pot.matches(handle, since))] == [0, 2]
    assert pot.templates.remove(handle, [0, 3], None) == 2
    assert pot.templates.add(handle, pa.table({"P": [1], "SYM": ["a"]})) == range(4, 5)
    assert list(pot.templates.members(handle)) == [1, 2, 4]
    for gone in (0, 3, 5):
        with pytest.raises(UnknownQuery):
            pot.engine.invoke(f"{handle}.{gone}")
    assert [number for number, _ in numbered_rows(pot.matches(handle, since))] == [2]
    pot.engine.push("s", [make_row(3, price=9.0)])
    assert [number for number, _ in numbered_rows(pot.matches(handle, since))] == [2, 4]


def test_an_added_query_has_changes_for_later_tuples_only(pot: TemplatePot) -> None:
    handle = pot.templates.register(SQL, [{"sym": "a", "p": 0.0}], None)
    start = pot.matches(handle, None).position()
    pot.engine.push("s", [make_row(0, price=1.0), make_row(1, price=2.0)])
    first = pot.matches(handle, start)
    pot.templates.add(handle, [{"sym": "a", "p": 1.5}])
    pot.engine.push("s", [make_row(2, price=3.0), make_row(3, price=1.2)])
    pot.templates.add(handle, [{"sym": "a", "p": 0.5}])
    pot.engine.push("s", [make_row(4, price=9.0)])
    everything = pot.matches(handle, start)
    expected = [(number, row["twice"]) for number, row in numbered_rows(everything)]
    assert expected == [(0, 2.0), (0, 4.0), (0, 6.0), (1, 6.0), (0, 2.4), (0, 18.0), (1, 18.0), (2, 18.0)]
    # Following from any position returns the same changes.
    assert numbered_rows(pot.matches(handle, first.position())) == numbered_rows(everything)[2:]
    for index in range(len(expected)):
        assert numbered_rows(pot.matches(handle, everything.position(index))) == numbered_rows(everything)[index + 1 :]
    pot.engine.seal(everything=True)
    assert numbered_rows(pot.matches(handle, start)) == numbered_rows(everything)


def test_random_sequences_of_rule_changes(pot: TemplatePot) -> None:
    for seed in range(4):
        _play(pot, random.Random(seed))


def _play(pot: TemplatePot, choose: random.Random) -> None:
    """Add and remove rules between pushes; a follower gets exactly the matches of each rule."""
    handle = pot.templates.register("SELECT price FROM s WHERE price > :p", [{"p": 4.0}, {"p": 8.0}], None)
    with pot.engine.catalog.read() as tx:
        ids = find_stream(tx, "s").next_id
    rules = {0: (4.0, 0), 1: (8.0, 0)}
    start = at = pot.matches(handle, None).position()
    delivered: list[tuple[int, float]] = []
    pushed: list[tuple[int, float]] = []
    for _ in range(40):
        step = choose.choice(["push", "push", "add", "remove", "look"])
        if step == "push":
            prices = [float(choose.randrange(10)) for _ in range(choose.randrange(1, 4))]
            pot.engine.push("s", [make_row(ids + n, price=price) for n, price in enumerate(prices)])
            pushed += [(ids + n, price) for n, price in enumerate(prices)]
            ids += len(prices)
        elif step == "add":
            bounds = [float(choose.randrange(10)) for _ in range(choose.randrange(1, 4))]
            numbers = pot.templates.add(handle, [{"p": bound} for bound in bounds])
            rules |= {number: (bound, ids) for number, bound in zip(numbers, bounds, strict=True)}
        elif step == "remove" and rules:
            going = choose.sample(sorted(rules), min(len(rules), choose.randrange(1, 3)))
            assert pot.templates.remove(handle, going, None) == len(going)
            rules = {number: rule for number, rule in rules.items() if number not in going}
        elif step == "look":
            matches = pot.matches(handle, at)
            delivered += [(number, row["price"]) for number, row in numbered_rows(matches)]
            at = matches.position()
    expected = [
        (number, price)
        for tuple_id, price in pushed
        for number, (bound, first) in sorted(rules.items())
        if price > bound and tuple_id >= first
    ]
    assert _prices(pot, handle, start) == expected
    live = [pair for pair in delivered if pair[0] in rules]
    assert live + _prices(pot, handle, at) == expected, "several reads return the same as a single one"


def _prices(pot: TemplatePot, handle: str, since: str) -> list[tuple[int, float]]:
    return [(number, row["price"]) for number, row in numbered_rows(pot.matches(handle, since))]


def test_adding_rows_rewrites_little_and_leaves_few_files(pot: TemplatePot) -> None:
    handle = pot.templates.register(SQL, [{"sym": "a", "p": float(n)} for n in range(500)], None)
    (first,) = _files(pot)
    written: dict[str, int] = {}
    for number in range(60):
        assert pot.templates.add(handle, [{"sym": "b", "p": float(number)}]) == range(500 + number, 501 + number)
        parts = pot.templates.members(handle).parts
        assert pot.engine.catalog.root / parts[0].path == first
        assert len(parts) < 8
        written |= {part.path: part.rows for part in parts[1:]}
    assert sum(written.values()) < 60 * 8, "a row is rewritten a few times only"
    assert len(pot.templates.members(handle)) == 560
    sweep(pot.engine.catalog, abandoned_after=-1, grace=-1)
    assert len(_files(pot)) == len(pot.templates.members(handle).parts)
    since = pot.matches(handle, None).position()
    pot.engine.push("s", [make_row(0, sym="b", price=30.5), make_row(1, price=1.5)])
    numbers = [number for number, _ in numbered_rows(pot.matches(handle, since))]
    assert numbers == [*range(500, 531), 0, 1]


def test_files_are_rewritten_without_many_removed_rows(pot: TemplatePot) -> None:
    rows = 4 * MOST_GONE
    handle = pot.templates.register(SQL, [{"sym": "a", "p": float(n % 7)} for n in range(rows)], "alerts")
    pot.templates.add(handle, [{"sym": "b", "p": 0.0}])
    since = pot.matches(handle, None).position()
    assert pot.templates.remove(handle, range(1, rows, 2), None) == rows // 2
    members = pot.templates.members(handle)
    assert (len(members.parts), len(members.gone), len(members)) == (1, 0, rows // 2 + 1)
    assert [members[0], members[1], members[-2], members[-1]] == [0, 2, rows - 2, rows]
    assert pot.templates.add(handle, [{"sym": "b", "p": 1.0}]) == range(rows + 1, rows + 2)
    pot.engine.push("s", [make_row(0, price=0.5), make_row(1, sym="b", price=9.0)])
    numbers = [number for number, _ in numbered_rows(pot.matches(handle, since))]
    assert numbers == [*(n for n in range(0, rows, 2) if n % 7 == 0), rows, rows + 1]
    with pytest.raises(UnknownQuery):
        pot.engine.invoke("alerts.1")
    assert pot.engine.invoke("alerts.0").table.num_rows == 1
    assert pot.templates.remove(handle, [*list(members), rows + 1], None) == rows // 2 + 2
    assert (len(pot.templates.members(handle)), numbered_rows(pot.matches(handle, since))) == (0, [])
    pot.templates.add(handle, [{"sym": "a", "p": 0.0}])
    assert pot.templates.members(handle)[0] == rows + 2


def test_indexes_and_numbers_of_members(pot: TemplatePot) -> None:
    handle = pot.templates.register(SQL, [{"sym": "a", "p": float(n)} for n in range(20)], None)
    for _ in range(3):
        pot.templates.add(handle, [{"sym": "a", "p": float(n)} for n in range(10)])
    pot.templates.remove(handle, [0, 1, 5, 19, 20, 33, 49], None)
    standing = [n for n in range(50) if n not in {0, 1, 5, 19, 20, 33, 49}]
    members = pot.templates.members(handle)
    assert [members[index] for index in range(len(members))] == list(members) == standing
    assert [members[index] for index in range(-len(members), 0)] == standing
    assert members[3:9] == standing[3:9]
    assert [members.after(number) for number in (-1, 0, 5, 18, 49)] == [0, 0, 3, 16, 43]
    for index in (43, -44):
        with pytest.raises(IndexError):
            members[index]


@pytest.mark.parametrize(
    ("where", "removed"),
    [
        ({"sym": "a"}, [0, 1]),
        ({"SYM": ["a", "c"], "p": 2.0}, [1, 4]),
        ({"day": "2026-01-02"}, [2]),
        ({"n": 7}, [3]),
        ({"n": "7"}, [3]),
        ({"p": "2.0"}, [1, 2, 4]),
        ({"sym": None}, [5]),
        ({"sym": "nobody"}, []),
        ({"net": Decimal("1.50")}, [4]),
    ],
)
def test_rows_are_removed_by_values(pot: TemplatePot, where: dict[str, Any], removed: list[int]) -> None:
    rows = [("a", 1.0, 1), ("a", 2.0, 1), ("b", 2.0, 2), ("b", 1.0, 1), ("c", 2.0, 1), (None, 9.0, 1)]
    table = [
        {"sym": sym, "p": p, "day": date(2026, 1, day), "n": 7 if number == 3 else number, "net": Decimal("1.25")}
        for number, (sym, p, day) in enumerate(rows)
    ]
    table[4]["net"] = Decimal("1.50")
    sql = "SELECT * FROM s WHERE sym = :sym AND price > :p AND day >= :day AND qty > :n AND net < :net"
    handle = pot.templates.register(sql, table, None)
    assert pot.templates.remove(handle, None, where) == len(removed)
    assert list(pot.templates.members(handle)) == [n for n in range(6) if n not in removed]


def test_invalid_changes_change_nothing(pot: TemplatePot) -> None:
    handle = pot.templates.register(SQL, [{"sym": "a", "p": 1.0}, {"sym": "b", "p": 2.0}], "alerts")
    templates = pot.templates
    before = templates.describe()
    for rows, kind, says in [
        ([], InvalidRows, "parameters must have at least one row"),
        ([{"sym": "a"}], TureenError, "no values for :p"),
        ([{"sym": "a", "p": 1.0, "q": 1}], InvalidRows, "unknown column 'q'"),
        ([{"sym": "a", "p": "x"}], InvalidRows, "column 'p' is DOUBLE"),
        (pa.table({"sym": ["a"]}), TureenError, "no values for :p"),
        (5, InvalidRows, "got int"),
    ]:
        with pytest.raises(kind, match=says):
            templates.add(handle, rows)
    for numbers, where, kind, says in [
        ([0, 2], None, UnknownQuery, "no query 2"),
        (["0"], None, TureenError, "must be an integer"),
        ([True], None, TureenError, "must be an integer"),
        (None, None, TureenError, "either numbers or where"),
        ([0], {"sym": "a"}, TureenError, "either numbers or where"),
        (None, {}, TureenError, "a dict of columns"),
        (None, {"nope": 1}, TureenError, "no column 'nope'"),
        (None, {"p": "x"}, InvalidRows, "column 'p' is DOUBLE"),
    ]:
        with pytest.raises(kind, match=says):
            templates.remove(handle, numbers, where)  # type: ignore[arg-type]
    for call in (lambda: templates.add("none", [{}]), lambda: templates.remove("none", [0], None)):
        with pytest.raises(UnknownQuery, match="no template"):
            call()
    with pytest.raises(UnknownQuery):
        templates.remove(handle, [0], None, owner="somebody")
    assert templates.describe() == before
    assert list(templates.members(handle)) == [0, 1]


def test_labels_come_with_changes(pot: TemplatePot) -> None:
    rules = [{"sym": "a", "p": 1.0, "rule": "r-1"}, {"sym": "a", "p": 2.0, "rule": None}]
    handle = pot.templates.register(SQL, rules, None, label="RULE")
    since = pot.matches(handle, None).position()
    pot.templates.add(handle, [{"sym": "a", "p": 0.0, "rule": "r-3"}])
    pot.engine.push("s", [make_row(0, price=9.0), make_row(1, price=0.5)])
    matches = pot.matches(handle, since)
    assert list(zip(matches.numbers.tolist(), matches.labels, strict=True)) == [
        (0, "r-1"),
        (1, None),
        (2, "r-3"),
        (2, "r-3"),
    ]
    assert pot.templates.remove(handle, None, {"rule": ["r-1", "r-9"]}) == 1
    assert pot.matches(handle, since).labels == [None, "r-3", "r-3"]
    (described,) = pot.templates.describe()
    assert described[0].label == "rule"
    for label, says in [("nope", "no column 'nope'"), ("p", "must be STRING, INT or BIGINT, got DOUBLE")]:
        with pytest.raises(TureenError, match=says):
            pot.templates.register(SQL, [{"sym": "a", "p": 1.0}], None, label=label)


VALUES: list[dict[str, Any]] = [
    {"lim": 5, "k": 0.5, "word": "it's", "day": date(2026, 1, 1), "n": 1},
    {"lim": -5, "k": 2.0, "word": None, "day": None, "n": 2},
    {"lim": 2**40, "k": None, "word": "b", "day": date(2024, 2, 29), "n": 3},
]


@pytest.mark.parametrize(
    "items",
    [
        ":lim AS limit, sym, price",
        "price * :k AS scaled, :word AS word, upper(:word) AS loud",
        "*, :day AS since",
        ":lim AS lim",
        "CASE WHEN price > :k THEN :word ELSE sym END AS said, qty + :lim AS more",
        "CAST(net AS DOUBLE) * :lim AS x",
    ],
)
@pytest.mark.parametrize("where", ["price > :n", "price / :n > 0.5 OR sym = :word"])
def test_parameters_in_the_select_list(pot: TemplatePot, items: str, where: str) -> None:
    sql = f"SELECT {items} FROM s WHERE {where}"
    names = [name for name in VALUES[0] if f":{name}" in sql]
    values = [{name: row[name] for name in names} for row in VALUES]
    handle = pot.templates.register(sql, values[:2], None)
    since = pot.matches(handle, None).position()
    pot.templates.add(handle, values[2:])
    pot.engine.push("s", [make_row(n, price=float(n), net=Decimal("1.25")) for n in range(5)])
    rows_by_number: dict[int, list[dict[str, Any]]] = {}
    matches = pot.matches(handle, since)
    for number, row in numbered_rows(matches):
        rows_by_number.setdefault(number, []).append(row)
    for number in range(3):
        answer = pot.engine.invoke(f"{handle}.{number}").table
        assert answer.to_pylist() == rows_by_number.get(number, [])
        assert answer.schema == matches.rows.schema
    assert rows_by_number


def test_parameters_in_having(pot: TemplatePot) -> None:
    sql = (
        "SELECT :limit AS limit, sym, count(*) AS n, count(*) FILTER (WHERE price > :least) AS high"
        " FROM s WHERE qty > :q GROUP BY sym HAVING count(*) > :n ORDER BY sym"
    )
    rows = [{"limit": 10, "least": 1.5, "q": 0, "n": 1}, {"limit": 20, "least": 0.0, "q": 0, "n": 2}]
    handle = pot.templates.register(sql, rows, None)
    pot.templates.add(handle, [{"limit": 30, "least": 0.0, "q": 5, "n": 0}])
    pot.engine.push("s", [make_row(n, sym="ab"[n % 2], price=float(n), qty=n + 1) for n in range(5)])
    assert [pot.engine.invoke(f"{handle}.{n}").table.to_pylist() for n in range(3)] == [
        [{"limit": 10, "sym": "a", "n": 3, "high": 2}, {"limit": 10, "sym": "b", "n": 2, "high": 1}],
        [{"limit": 20, "sym": "a", "n": 3, "high": 2}],
        [],
    ]
    with pytest.raises(TureenError, match="has no changes"):
        pot.matches(handle, None)


def test_parameters_in_the_select_list_of_steps_of_rows(pot: TemplatePot) -> None:
    sql = "SELECT :x AS x, count(*) AS n FROM s [ROWS 4 SLIDE 2] WHERE qty > :x GROUP BY sym"
    handle = pot.templates.register(sql, [{"x": 0}, {"x": 4}], None)
    pot.engine.push("s", [make_row(n, qty=n) for n in range(8)])
    answers = [pot.engine.invoke(f"{handle}.{number}").table.to_pylist() for number in (0, 1)]
    assert answers == [[{"x": 0, "n": 3}, {"x": 0, "n": 4}, {"x": 0, "n": 4}], [{"x": 4, "n": 1}, {"x": 4, "n": 3}]]


def test_dropping_a_template_removes_its_files(pot: TemplatePot) -> None:
    handles = [pot.templates.register(SQL, [{"sym": "a", "p": float(n)} for n in range(50)], None) for _ in range(2)]
    for handle in handles:
        pot.templates.add(handle, [{"sym": "a", "p": 1.0}])
        pot.templates.remove(handle, [3], None)
    pot.templates.drop(handles[0])
    sweep(pot.engine.catalog, abandoned_after=-1, grace=-1)
    assert len(_files(pot)) == 2
    with pot.engine.catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "s"))
    sweep(pot.engine.catalog, abandoned_after=-1, grace=-1)
    assert not _files(pot)
    with pot.engine.catalog.read() as tx:
        for table in ("template_parts", "template_heads", "gone_members"):
            assert tx.execute_text(f"SELECT count(*) FROM {table}").scalar() == 0


def test_templates_of_an_older_pot(pot: TemplatePot) -> None:
    handle = pot.templates.register(SQL, [{"sym": "a", "p": 1.0}, {"sym": "b", "p": 2.0}], None)
    with pot.engine.catalog.write() as tx:
        tx.execute_text("DROP TABLE template_heads")
        tx.execute_text("DROP TABLE template_parts")
    catalog = Catalog(pot.engine.catalog.root)
    templates = Templates(catalog, Invoker(catalog))
    assert list(templates.members(handle)) == [0, 1]
    with catalog.write() as tx:
        drop_member(tx, catalog.root, f"{handle}.0")
    assert templates.add(handle, [{"sym": "a", "p": 1.0}]) == range(2, 3)
    assert list(templates.members(handle)) == [1, 2]
    catalog.close()


def test_concurrent_changes(pot: TemplatePot) -> None:
    handle = pot.templates.register(SQL, [{"sym": "a", "p": -1.0}], None)
    root = pot.engine.catalog.root
    ranges: list[range] = []

    def add(worker: int) -> None:
        catalog = Catalog(root)
        templates = Templates(catalog, Invoker(catalog))
        for number in range(5):
            ranges.append(templates.add(handle, [{"sym": "a", "p": worker * 100.0 + number}] * 2))
        catalog.close()

    threads = [threading.Thread(target=add, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for numbers in ranges for number in numbers) == list(range(1, 41))
    with pot.engine.catalog.read() as tx:
        members = load_members(tx, root, pot.templates.find(handle))
    assert list(members) == list(range(41))
    values = members.take(["p"], members.all_numbers).column(0).to_pylist()
    assert sorted(values) == sorted([-1.0, *(w * 100.0 + n for w in range(4) for n in range(5) for _ in range(2))])
