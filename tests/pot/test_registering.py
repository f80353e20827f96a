"""Queries that come and go together: what each of them leaves in the catalog, whoever came with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from tureen.errors import DuplicateName, UnknownQuery, UnknownStream
from tureen.pot.bulk_statements import BATCH_ROWS
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.catalog_tables import clauses, queries, query_inputs, query_runs
from tureen.pot.clauses import choose_clauses, fail_clauses
from tureen.pot.queries import NewInput, Registration, Unregistration, find_query
from tureen.pot.query_runs import QueryRunRecord, publish_query_run
from tureen.pot.registering import change_together
from tureen.pot.streams import create_stream, drop_stream, find_stream
from tureen.predicate import Interval, Within
from tureen.schema import Schema
from tureen.testing.hand_turned import change


def two_streams(root: Path) -> Catalog:
    catalog = Catalog(root, create=True)
    with catalog.write() as tx:
        for name in ("s", "t"):
            create_stream(tx, name, Schema.parse("a INT"), clock="wall", retain=None, source=None)
    return catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = two_streams(tmp_path)
    yield catalog
    catalog.close()


def wanted(
    low: int, eager: bool | None = None, name: str | None = None, owner: str = "me", stream_id: int = 1
) -> Registration:
    entry = NewInput(stream_id, (Within("a", (Interval(low=low),)),))
    return Registration(f"a >= {low}", "", (entry,), eager, name, owner)


def numbers(catalog: Catalog) -> dict[int, int | None]:
    """The numbers of all clauses, by their ids."""
    with catalog.read() as tx:
        return {row.id: row.number for row in tx.execute(select(clauses.c.id, clauses.c.number))}


def number_of(catalog: Catalog, handle: Any) -> int | None:
    with catalog.read() as tx:
        return find_query(tx, handle).stream.number


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_groups_leave_what_they_say(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    catalog = two_streams(tmp_path_factory.mktemp("pot"))
    standing: dict[str, Registration] = {}
    gone: list[str] = []
    highest = 0
    registrations = st.builds(
        wanted,
        st.integers(0, 3),
        st.sampled_from([True, False, None]),
        st.sampled_from([None, None, "x", "X", "y"]),
        st.sampled_from(["me", "you"]),
        st.integers(1, 2),
    )
    for _ in range(data.draw(st.integers(1, 8))):
        known = st.sampled_from([*standing, *gone, "nothing"])
        group = data.draw(
            st.lists(registrations | st.builds(Unregistration, known, st.sampled_from([None, "me", "you"])), max_size=9)
        )
        before = numbers(catalog)
        outcomes = change_together(catalog, group)
        follow(standing, gone, group, outcomes)
        highest = check(catalog, standing, before, highest)
        before = numbers(catalog)
        with catalog.write() as tx:
            seq = take_seq(tx)
            ids = sorted(before)
            some = data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
            half = len(some) // 2
            choose_clauses(tx, seq, some[:half], some[half:])
            if data.draw(st.booleans()):
                publish_query_run(tx, 1, [], compiled(tx), seq)
        highest = check(catalog, standing, before, highest)
    catalog.close()


def follow(
    standing: dict[str, Registration],
    gone: list[str],
    group: Sequence[Registration | Unregistration],
    outcomes: Sequence[Any],
) -> None:
    """What the outcomes must be, one by one, in a dictionary: first those who go, then those who come."""
    for one, outcome in zip(group, outcomes, strict=True):
        if isinstance(one, Unregistration):
            there = standing.get(one.handle)
            if there is None or one.owner not in (None, there.owner):
                assert isinstance(outcome, UnknownQuery)
            else:
                assert outcome == one.handle
                del standing[one.handle]
                gone.append(one.handle)
    for one, outcome in zip(group, outcomes, strict=True):
        if isinstance(one, Registration):
            named = {(other.owner, other.name_key) for other in standing.values() if other.name}
            if (one.owner, one.name_key) in named:
                assert isinstance(outcome, DuplicateName)
            else:
                standing[outcome] = one


def check(catalog: Catalog, standing: dict[str, Registration], before: dict[int, int | None], highest: int) -> int:
    """Whether the catalog has exactly these queries and their clauses; returns the highest number so far."""
    with catalog.read() as tx:
        inputs = queries.join(query_inputs, query_inputs.c.query_id == queries.c.id)
        found = {row.id: row for row in tx.execute(select(queries, query_inputs).select_from(inputs))}
        held = {row.id: row for row in tx.execute(select(clauses))}
        runs = tx.execute(select(query_runs)).all()
    assert {key: (row.owner, row.name, row.sql, row.stream_id, row.eager) for key, row in found.items()} == {
        key: (one.owner, one.name, one.sql, one.inputs[0].stream_id, one.eager) for key, one in standing.items()
    }
    assert {row.clause_id for row in found.values()} == set(held)
    for clause in held.values():
        users = [row for row in found.values() if row.clause_id == clause.id]
        assert {(row.stream_id, row.sql) for row in users} == {(clause.stream_id, users[0].sql)}
        assert clause.refs == len(users)
        assert clause.eager_refs == sum(row.eager is True for row in users)
        assert clause.auto_refs == sum(row.eager is None for row in users)
        assert (clause.number is not None) == bool(clause.eager_refs or (clause.chosen and clause.auto_refs))
        if clause.number is not None and clause.number != before.get(clause.id):
            assert clause.number > highest
    for run in runs:
        living = [c for c in held.values() if c.stream_id == run.stream_id and c.number is not None]
        assert run.dead == run.clauses - sum(run.first <= c.number <= run.last for c in living)
    taken: list[int] = [clause.number for clause in held.values() if clause.number is not None]
    assert len(taken) == len(set(taken))
    return max([highest, *taken])


def compiled(tx: Any) -> QueryRunRecord | None:
    """A query run of the eager clauses that came after those of the last one, in the first stream."""
    last = max([row.last for row in tx.execute(select(query_runs))], default=0)
    eager = (clauses.c.stream_id == 1, clauses.c.number > last)
    some = sorted(tx.execute(select(clauses.c.number).where(*eager)).scalars())
    return QueryRunRecord(f"run-{last}", some[0], some[-1], len(some)) if some else None


def test_a_clause_whose_last_query_goes_as_another_comes_keeps_its_number(catalog: Catalog) -> None:
    first = change(catalog, wanted(1, eager=True))
    number = number_of(catalog, first)
    assert number is not None
    _, second = change_together(catalog, [Unregistration(first), wanted(1, eager=True)])
    assert number_of(catalog, second) == number


def test_a_clause_that_failed_is_not_eager_again_for_who_shares_it(catalog: Catalog) -> None:
    first = change(catalog, wanted(1, eager=True))
    number = number_of(catalog, first)
    assert number is not None
    with catalog.write() as tx:
        take_seq(tx)
        fail_clauses(tx, {number: "it raised"})
    second = change(catalog, wanted(1, eager=True))
    assert number_of(catalog, second) is None
    with catalog.read() as tx:
        assert find_query(tx, second).error == "it raised"


def test_more_than_one_statement_takes(catalog: Catalog) -> None:
    many = 2 * BATCH_ROWS + 7
    handles = change_together(catalog, [wanted(low, eager=True, name=f"n{low}") for low in range(many)])
    assert [number_of(catalog, handle) for handle in handles] == list(range(1, many + 1))
    refused = change_together(catalog, [wanted(low, name=f"N{low}") for low in range(many)])
    assert all(isinstance(one, DuplicateName) for one in refused)
    assert change_together(catalog, [Unregistration(str(handle)) for handle in handles]) == handles
    assert numbers(catalog) == {}


def test_a_query_of_a_dropped_stream_is_refused_and_the_others_are_not(catalog: Catalog) -> None:
    with catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "t"))
    refused, handle = change_together(catalog, [wanted(1, stream_id=2, name="x"), wanted(1, name="x")])
    assert isinstance(refused, UnknownStream)
    assert isinstance(handle, str)
    with catalog.read() as tx:
        assert find_query(tx, "x", "me").id == handle


def test_texts_are_kept_to_the_letter(catalog: Catalog) -> None:
    odd = "SELECT '\0 \\u0000 \" ''  ' "
    handle = change(catalog, Registration(odd, "sh\0ape", (NewInput(1),), None, None, "own\0er"))
    with catalog.read() as tx:
        found = find_query(tx, handle)
    assert (found.sql, found.shape, found.owner) == (odd, "sh\0ape", "own\0er")
    assert change(catalog, Unregistration(handle, "own\0er")) == handle
