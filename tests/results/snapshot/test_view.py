"""The cache of standing queries: valid until any process changes or unregisters one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from tureen.errors import UnknownQuery
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.catalog_tables import queries, streams
from tureen.pot.clauses import choose_clauses, fail_clauses
from tureen.pot.members import drop_member
from tureen.pot.queries import share
from tureen.pot.registered import NewInput, Registration, Unregistration
from tureen.pot.registering import change_together
from tureen.pot.streams import create_stream
from tureen.pot.templates import share_template
from tureen.predicate import Interval, Within
from tureen.results.invoke import Invoker
from tureen.results.snapshot import view as module
from tureen.results.snapshot.view import View
from tureen.schema import Schema
from tureen.soup.templates import Templates
from tureen.testing.manual_engine import change


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = Catalog(tmp_path, create=True)
    with catalog.write() as tx:
        create_stream(tx, "s", Schema.parse("a INT"), clock="wall", retain=None, source=None)
    yield catalog
    catalog.close()


@pytest.fixture
def others(catalog: Catalog) -> Iterator[Catalog]:
    """The catalog of another process."""
    other = Catalog(catalog.root)
    yield other
    other.close()


def registration(low: int, *, eager: bool | None = None, name: str | None = None) -> Registration:
    clause = (Within("a", (Interval(low=low),)),)
    return Registration(f"SELECT a FROM s WHERE a >= {low}", "", (NewInput(1, clause),), eager, name)


def test_other_commits_do_not_invalidate_the_cache(
    catalog: Catalog, others: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = change(catalog, registration(1, name="one"))
    view = View(catalog)
    view.refresh()
    before = view.query(handle), view.query("one")
    assert before[0] == before[1]
    change(others, registration(2))
    with others.write() as tx:
        tx.execute(update(streams).values(next_id=7))
    monkeypatch.setattr(module, "find_query", None)
    view.refresh()
    assert (view.query(handle), view.query("one")) == before
    assert view.query(handle, at_least=others.seq()) is before[0]


def test_a_change_of_a_query_or_its_clause_is_seen(catalog: Catalog, others: Catalog) -> None:
    handle = change(catalog, registration(1, name="one"))
    view = View(catalog)
    view.refresh()
    first = view.query(handle)
    assert (first.shared, first.stream.number, first.eager) == (False, None, None)
    with others.write() as tx:
        share(tx, handle, True)
    view.refresh()
    assert view.query(handle).shared
    assert first.stream.clause_id is not None
    with others.write() as tx:
        choose_clauses(tx, take_seq(tx), [first.stream.clause_id], [])
    view.refresh()
    number = view.query(handle).stream.number
    assert number is not None
    with others.write() as tx:
        take_seq(tx)
        fail_clauses(tx, {number: "it raised"})
    view.refresh()
    assert view.query(handle).stream.number is None
    change(others, Unregistration(handle))
    view.refresh()
    with pytest.raises(UnknownQuery):
        view.query(handle)


def test_at_least_reads_a_newer_state(catalog: Catalog, others: Catalog) -> None:
    handle = change(catalog, registration(1))
    view = View(catalog)
    view.refresh()
    clause = view.query(handle).stream.clause_id
    assert clause is not None
    with others.write() as tx:
        choose_clauses(tx, take_seq(tx), [clause], [])
    assert view.query(handle).stream.number is None
    assert view.query(handle, at_least=others.seq()).stream.number is not None


def test_a_name_reused_by_another_query(catalog: Catalog, others: Catalog) -> None:
    handle = change(catalog, registration(1, name="one"))
    view = View(catalog)
    view.refresh()
    assert view.query("one").id == handle
    _, new = change_together(others, [Unregistration(handle), registration(2, name="one")])
    view.refresh()
    assert view.query("one").id == new
    with others.write() as tx:
        tx.execute(update(queries).values(name_key="two"))
    view.refresh()
    assert view.query("two").id == new


def test_members_of_a_template_are_shared_and_dropped(catalog: Catalog, others: Catalog) -> None:
    view = View(catalog)
    templates = Templates(others, Invoker(others))
    handle = templates.register("SELECT a FROM s WHERE a > :low", [{"low": 1}, {"low": 2}], "many", None)
    view.refresh()
    assert [view.query(f"{handle}.{n}").shared for n in range(2)] == [False, False]
    with others.write() as tx:
        share_template(tx, handle, True)
    view.refresh()
    assert view.query("many.0").shared
    assert view.query(f"{handle}.1").shared
    with others.write() as tx:
        drop_member(tx, others.root, f"{handle}.1")
    view.refresh()
    with pytest.raises(UnknownQuery):
        view.query(f"{handle}.1")
    assert view.query(f"{handle}.0").shared
    templates.drop(handle, None)
    view.refresh()
    with pytest.raises(UnknownQuery):
        view.query(f"{handle}.0")


def test_the_change_counter_is_added_to_older_pots(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, create=True)
    with catalog.write() as tx:
        for (name,) in tx.execute_text("SELECT name FROM sqlite_master WHERE type = 'trigger'").all():
            tx.execute_text(f"DROP TRIGGER {name}")
        tx.execute_text("DROP TABLE standing")
    catalog.close()
    again = Catalog(tmp_path)
    with again.write() as tx:
        create_stream(tx, "s", Schema.parse("a INT"), clock="wall", retain=None, source=None)
    handle = change(again, registration(1))
    view = View(again)
    view.refresh()
    assert not view.query(handle).shared
    with again.write() as tx:
        share(tx, handle, True)
    view.refresh()
    assert view.query(handle).shared
    again.close()
