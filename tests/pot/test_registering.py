"""Registrations and unregistrations in groups: the resulting catalog does not depend on the grouping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from tests.examples import example_settings
from tureen.errors import DuplicateName, UnknownQuery, UnknownStream
from tureen.pot.bulk_statements import BATCH_ROWS
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.catalog_tables import clauses, queries, query_inputs, query_runs
from tureen.pot.clauses import choose_clauses, fail_clauses
from tureen.pot.queries import find_query
from tureen.pot.query_runs import QueryRunRecord, publish_query_run
from tureen.pot.registered import NewInput, Registration, Unregistration
from tureen.pot.registering import change_together
from tureen.pot.streams import create_stream, drop_stream, find_stream
from tureen.predicate import Interval, Within
from tureen.schema import Schema
from tureen.testing.manual_engine import change


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


def registration(
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


@example_settings(20)
@given(data=st.data())
def test_random_groups(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    catalog = two_streams(tmp_path_factory.mktemp("pot"))
    standing: dict[str, Registration] = {}
    gone: list[str] = []
    highest = 0
    registrations = st.builds(
        registration,
        st.integers(0, 3),
        st.sampled_from([True, False, None]),
        st.sampled_from([None, None, "x", "X", "y"]),
        st.sampled_from(["me", "you"]),
        st.integers(1, 2),
    )
    for _ in range(data.draw(st.integers(1, 8))):
        handles = st.sampled_from([*standing, *gone, "nothing"])
        group = data.draw(
            st.lists(
                registrations | st.builds(Unregistration, handles, st.sampled_from([None, "me", "you"])), max_size=9
            )
        )
        before = numbers(catalog)
        outcomes = change_together(catalog, group)
        follow(standing, gone, group, outcomes)
        highest = check(catalog, standing, before, highest)
        before = numbers(catalog)
        with catalog.write() as tx:
            seq = take_seq(tx)
            ids = sorted(before)
            chosen = data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
            half = len(chosen) // 2
            choose_clauses(tx, seq, chosen[:half], chosen[half:])
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
    """Check the outcomes against a dictionary: first all that unregister, then all that register."""
    for request, outcome in zip(group, outcomes, strict=True):
        if isinstance(request, Unregistration):
            query = standing.get(request.handle)
            if query is None or request.owner not in (None, query.owner):
                assert isinstance(outcome, UnknownQuery)
            else:
                assert outcome == request.handle
                del standing[request.handle]
                gone.append(request.handle)
    for request, outcome in zip(group, outcomes, strict=True):
        if isinstance(request, Registration):
            names = {(other.owner, other.name_key) for other in standing.values() if other.name}
            if (request.owner, request.name_key) in names:
                assert isinstance(outcome, DuplicateName)
            else:
                standing[outcome] = request


def check(catalog: Catalog, standing: dict[str, Registration], before: dict[int, int | None], highest: int) -> int:
    """Check that the catalog has exactly these queries and their clauses; returns the highest number so far."""
    with catalog.read() as tx:
        inputs = queries.join(query_inputs, query_inputs.c.query_id == queries.c.id)
        query_rows = {row.id: row for row in tx.execute(select(queries, query_inputs).select_from(inputs))}
        clause_rows = {row.id: row for row in tx.execute(select(clauses))}
        runs = tx.execute(select(query_runs)).all()
    assert {key: (row.owner, row.name, row.sql, row.stream_id, row.eager) for key, row in query_rows.items()} == {
        key: (query.owner, query.name, query.sql, query.inputs[0].stream_id, query.eager)
        for key, query in standing.items()
    }
    assert {row.clause_id for row in query_rows.values()} == set(clause_rows)
    for clause in clause_rows.values():
        users = [row for row in query_rows.values() if row.clause_id == clause.id]
        assert {(row.stream_id, row.sql) for row in users} == {(clause.stream_id, users[0].sql)}
        assert clause.refs == len(users)
        assert clause.eager_refs == sum(row.eager is True for row in users)
        assert clause.auto_refs == sum(row.eager is None for row in users)
        assert (clause.number is not None) == bool(clause.eager_refs or (clause.chosen and clause.auto_refs))
        if clause.number is not None and clause.number != before.get(clause.id):
            assert clause.number > highest
    for run in runs:
        living = [c for c in clause_rows.values() if c.stream_id == run.stream_id and c.number is not None]
        assert run.dead == run.clauses - sum(run.first <= c.number <= run.last for c in living)
    numbers: list[int] = [clause.number for clause in clause_rows.values() if clause.number is not None]
    assert len(numbers) == len(set(numbers))
    return max([highest, *numbers])


def compiled(tx: Any) -> QueryRunRecord | None:
    """A query run of the eager clauses after those of the last run, in the first stream."""
    last = max([row.last for row in tx.execute(select(query_runs))], default=0)
    eager = (clauses.c.stream_id == 1, clauses.c.number > last)
    numbers = sorted(tx.execute(select(clauses.c.number).where(*eager)).scalars())
    return QueryRunRecord(f"run-{last}", numbers[0], numbers[-1], len(numbers)) if numbers else None


def test_a_clause_reused_in_the_same_group_has_the_same_number(catalog: Catalog) -> None:
    first = change(catalog, registration(1, eager=True))
    number = number_of(catalog, first)
    assert number is not None
    _, second = change_together(catalog, [Unregistration(first), registration(1, eager=True)])
    assert number_of(catalog, second) == number


def test_a_failed_clause_stays_lazy_for_new_queries(catalog: Catalog) -> None:
    first = change(catalog, registration(1, eager=True))
    number = number_of(catalog, first)
    assert number is not None
    with catalog.write() as tx:
        take_seq(tx)
        fail_clauses(tx, {number: "it raised"})
    second = change(catalog, registration(1, eager=True))
    assert number_of(catalog, second) is None
    with catalog.read() as tx:
        assert find_query(tx, second).error == "it raised"


def test_groups_larger_than_a_statement(catalog: Catalog) -> None:
    many = 2 * BATCH_ROWS + 7
    handles = change_together(catalog, [registration(low, eager=True, name=f"n{low}") for low in range(many)])
    assert [number_of(catalog, handle) for handle in handles] == list(range(1, many + 1))
    refused = change_together(catalog, [registration(low, name=f"N{low}") for low in range(many)])
    assert all(isinstance(outcome, DuplicateName) for outcome in refused)
    assert change_together(catalog, [Unregistration(str(handle)) for handle in handles]) == handles
    assert numbers(catalog) == {}


def test_a_query_of_a_dropped_stream_fails_alone(catalog: Catalog) -> None:
    with catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "t"))
    refused, handle = change_together(catalog, [registration(1, stream_id=2, name="x"), registration(1, name="x")])
    assert isinstance(refused, UnknownStream)
    assert isinstance(handle, str)
    with catalog.read() as tx:
        assert find_query(tx, "x", "me").id == handle


def test_texts_are_stored_exactly(catalog: Catalog) -> None:
    odd = "SELECT '\0 \\u0000 \" ''  ' "
    handle = change(catalog, Registration(odd, "sh\0ape", (NewInput(1),), None, None, "own\0er"))
    with catalog.read() as tx:
        query = find_query(tx, handle)
    assert (query.sql, query.shape, query.owner) == (odd, "sh\0ape", "own\0er")
    assert change(catalog, Unregistration(handle, "own\0er")) == handle
