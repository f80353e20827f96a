"""Owners: each sees their own queries, and those that others share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tureen
from tureen.errors import DuplicateName, TureenError, TypeMismatch, UnknownQuery, UnknownStream
from tureen.pot.catalog import Catalog
from tureen.pot.stream_cache import StreamCache
from tureen.pot.streams import create_stream, drop_stream, find_stream
from tureen.results.invoke import Invoker
from tureen.schema import Schema
from tureen.soup.registry import Registry
from tureen.soup.served_soup import ServedSoup
from tureen.soup.standing import Following
from tureen.soup.templates import Templates

SQL = "SELECT a FROM s WHERE a > {}"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    catalog = Catalog(tmp_path, create=True)
    with catalog.write() as tx:
        create_stream(tx, "s", Schema.parse("a INT"), clock="wall", retain=None, source=None)
    yield Registry(catalog, StreamCache(catalog))
    catalog.close()


def test_names_are_per_owner(registry: Registry) -> None:
    ann = registry.register(SQL.format(1), "big", "auto", "ann")
    bob = registry.register(SQL.format(2), "big", "auto", "bob")
    assert (registry.find("BIG", "ann").id, registry.find("big", "bob").id) == (ann, bob)
    with pytest.raises(DuplicateName):
        registry.register(SQL.format(3), "Big", "auto", "ann")
    with pytest.raises(UnknownQuery):
        registry.find("big", None)  # without an owner, others' queries are found by handle only
    assert registry.find(ann, None).owner == "ann"


@pytest.mark.parametrize("where", ["b > 1", "a > 'x'", "a IS NULL", "a > 2"])
def test_queries_bind_to_a_recreated_stream(registry: Registry, where: str) -> None:
    others = Catalog(registry._catalog.root)
    registry.register(SQL.format(1), None, "auto", None)
    with others.write() as tx:
        drop_stream(tx, find_stream(tx, "s"))
        create_stream(tx, "s", Schema.parse("a STRING, b INT"), clock="wall", retain=None, source=None)
        new = find_stream(tx, "s").id
    sql = f"SELECT a FROM s WHERE {where}"
    if where == "a > 2":
        with pytest.raises(TypeMismatch):
            registry.register(sql, None, "auto", None)
    else:
        assert registry.find(registry.register(sql, None, "auto", None), None).stream_ids == (new,)
    with others.write() as tx:
        drop_stream(tx, find_stream(tx, "s"))
    others.close()
    with pytest.raises(UnknownStream):
        registry.register(sql, None, "auto", None)


def test_queries_of_other_owners_are_hidden(registry: Registry) -> None:
    ann = registry.register(SQL.format(1), "secret", "auto", "ann")
    with pytest.raises(UnknownQuery) as hidden:
        registry.find(ann, "bob")
    with pytest.raises(UnknownQuery) as missing:
        registry.find("0" * 32, "bob")
    assert str(hidden.value).replace(ann, "") == str(missing.value).replace("0" * 32, "")
    assert "secret" not in str(hidden.value), "hints name only visible queries"
    for attempt in (registry.unregister, lambda handle, owner: registry.share(handle, True, owner)):
        with pytest.raises(UnknownQuery):
            attempt(ann, "bob")
    assert registry.page("bob", None, None) == []


def test_shared_queries_are_readable_by_handle_only(registry: Registry) -> None:
    ann = registry.register(SQL.format(1), "open", "auto", "ann")
    registry.share(ann, True, "ann")
    assert registry.find(ann, "bob").sql == SQL.format(1)
    with pytest.raises(UnknownQuery):
        registry.find("open", "bob")
    for attempt in (registry.unregister, lambda handle, owner: registry.share(handle, False, owner)):
        with pytest.raises(UnknownQuery):
            attempt(ann, "bob")
    registry.share(ann, False, "ann")
    with pytest.raises(UnknownQuery):
        registry.find(ann, "bob")


def test_queries_are_paged(registry: Registry) -> None:
    handles = [registry.register(SQL.format(number), None, "auto", "ann") for number in range(7)]
    registry.register(SQL.format(9), None, "auto", "bob")
    listed, after = [], None
    while page := registry.page("ann", after, 3):
        assert len(page) <= 3
        listed += [info.id for info in page]
        after = page[-1].cursor
        # Unregistering in between must not make the next page skip or repeat a query.
        registry.unregister(page[-1].id, "ann")
    assert listed == handles
    for wrong in ("nonsense", "12"):
        with pytest.raises(TureenError, match="is not a cursor"):
            registry.page("ann", wrong, 3)
    with pytest.raises(TureenError, match="limit"):
        registry.page("ann", None, 0)


def test_queries_and_templates_share_a_namespace(registry: Registry) -> None:
    templates = Templates(registry._catalog, Invoker(registry._catalog))
    handle = templates.register("SELECT a FROM s WHERE a > :k", [{"k": 1}, {"k": 2}], "x")
    with pytest.raises(DuplicateName):
        registry.register(SQL.format(1), "X", "auto", None)
    registry.register(SQL.format(1), "y", "auto", None)
    with pytest.raises(DuplicateName):
        templates.register("SELECT a FROM s WHERE a > :k", [{"k": 1}], "Y")
    for name in ("x.1", f"{handle}.0", "z.17"):
        with pytest.raises(TureenError, match="must not end in a dot and a number"):
            registry.register(SQL.format(1), name, "auto", None)
    with pytest.raises(UnknownQuery):
        registry.unregister("x.1", None)
    registry.unregister(f"{handle}.1", None)
    with pytest.raises(UnknownQuery):
        registry.find("x.1", None)


@pytest.mark.parametrize(("after", "limit"), [("²._", 1), ("9" * 30 + ".x", 1), (None, 2**63), (None, True)])
def test_invalid_pages_are_rejected(registry: Registry, after: str | None, limit: int) -> None:
    with pytest.raises(TureenError):
        registry.page(None, after, limit)


def test_a_soup_acts_for_several_owners(soup: tureen.Soup) -> None:
    soup.create_stream("owned", "a INT")
    ann, bob = soup.acting_for("ann"), ServedSoup.of(soup).acting_for("bob")
    query = ann.register("SELECT a FROM owned WHERE a > 1", name="big")
    rules = ann.register_many("SELECT a FROM owned WHERE a = :a", [{"a": 1}, {"a": 2}], name="rules")
    at = soup.push("owned", [{"a": 1}, {"a": 2}])
    soup.wait(at)
    assert query.invoke().table.num_rows == 1
    assert [info.id for info in ann.queries()] == [query.id]
    assert bob.queries() == []
    assert bob.templates() == []
    hidden: tuple[Callable[[], object], ...] = (
        lambda: bob.query(query.id),
        lambda: bob.calls.answer(query.id, None, None, None),
        lambda: bob.calls.explain(query.id),
        lambda: bob.calls.changes(query.id, Following()),
        lambda: bob.calls.unregister(query.id),
        lambda: bob.share(query.id),
        lambda: bob.template(rules.id),
        lambda: bob.query(f"{rules.id}.0"),
        lambda: bob.calls.answer(f"{rules.id}.0", None, None, None),
        lambda: bob.calls.template_changes(rules.id, Following(timeout=0)),
        lambda: bob.calls.unregister(f"{rules.id}.0"),
        lambda: bob.calls.unregister_template(rules.id),
        lambda: bob.share(rules.id),
    )
    for number, attempt in enumerate(hidden):
        with pytest.raises(UnknownQuery):
            pytest.fail(f"{number}: {attempt()}")
    ann.share(query.id)
    ann.share(rules.id)
    assert bob.query(query.id).invoke().table.to_pylist() == [{"a": 2}]
    assert bob.template(rules.id)[1].invoke().table.to_pylist() == [{"a": 2}]
    for number in (4, 5, 10, 11, 12):
        with pytest.raises(UnknownQuery):
            pytest.fail(f"{number}: {hidden[number]()}")
    assert soup.query(query.id).invoke().table.num_rows == 1, "the pot itself sees all queries"
    soup.drop_stream("owned")
