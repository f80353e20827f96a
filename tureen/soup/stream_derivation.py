"""Deriving a stream from a query: what its columns, its time and its clock are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tureen.arguments import check_clock, check_item
from tureen.errors import InvalidSchema, Unsupported
from tureen.join import parse_field
from tureen.language import bind_query
from tureen.pot.catalog import Catalog
from tureen.pot.derived_streams import create_derived_stream
from tureen.pot.functions import StoredFunctions
from tureen.pot.registered import DERIVED, NewInput, Registration
from tureen.pot.relations import Relations, StoredRelation, find_relation
from tureen.pot.streams import Stream, check_new_name
from tureen.query import STEP_END, STEP_START, Output, Query
from tureen.results.changes.changes import check_has_changes
from tureen.results.changes.closed_steps import check_has_steps
from tureen.results.changes.join_changes import check_can_follow
from tureen.results.groups.group_following import check_can_follow_groups
from tureen.retention import Retain
from tureen.schema import Column, Schema, name_key
from tureen.soup.remote_inputs import RemoteStreams, claimed_inputs, finding_remote


def derive_stream(
    catalog: Catalog,
    name: str,
    sql: str,
    *,
    time: str | None,
    retain: Retain,
    clock: str | None,
    item: str | None = None,
    remote: RemoteStreams | None = None,
) -> None:
    """Create a stream whose tuples are the changes of a query."""
    with catalog.read() as tx:
        # Before peers are asked, and again in the transaction that creates it.
        check_new_name(tx, name)
    with _claimed(catalog, sql, remote) as claimed, catalog.write() as tx:
        check_new_name(tx, name)
        streams: dict[str, Stream] = {}

        def find(relation_name: str) -> StoredRelation:
            relation = find_relation(tx, relation_name)
            if isinstance(relation, Stream):
                streams[name_key(relation.name)] = relation
            return relation

        relations = Relations(find, StoredFunctions.of(tx))
        query = bind_query(sql, relations.describe, functions=relations.function)
        check_can_derive(query)
        _check_retention(query, streams)
        schema = schema_of(query, streams, time)
        clocks = {stream.clock for stream in streams.values()}
        clock = check_clock(schema, clock)
        if item is not None:
            check_item(item, schema)
        inputs = claimed or tuple(relations.new_input(entry) for entry in query.leaves)
        create_derived_stream(
            tx,
            name,
            schema,
            Registration(sql, "", inputs, eager=False, owner=DERIVED),
            clock=clock or ("stream" if clocks == {"stream"} else "wall"),
            retain=retain,
            item=item,
        )


@contextmanager
def _claimed(catalog: Catalog, sql: str, remote: RemoteStreams | None) -> Iterator[tuple[NewInput, ...]]:
    """The inputs of a query, claimed before the transaction: peers may have to be asked."""
    if remote is None:
        yield ()
        return

    def find(name: str) -> StoredRelation:
        with catalog.read() as tx:
            return find_relation(tx, name)

    relations = Relations(finding_remote(find, remote), StoredFunctions(catalog.read))
    query = bind_query(sql, relations.describe, functions=relations.function)
    with claimed_inputs(relations, query, remote) as inputs:
        yield inputs


def check_can_derive(query: Query) -> None:
    """Raise for a query whose changes are not the tuples of a stream."""
    if query.final:
        check_can_follow_groups(query)
    elif query.steps is not None:
        check_has_steps(query)
    elif query.grouping is not None:
        raise Unsupported(
            "a stream cannot be derived from groups without steps, which change as tuples arrive",
            hint="group by steps of time, such as FROM trades [TUMBLE 1 MINUTE], or write EMIT FINAL",
        )
    elif query.joins:
        check_can_follow(query)
    else:
        check_has_changes(query)


def _check_retention(query: Query, streams: Mapping[str, Stream]) -> None:
    """Raise if tuples expire before the step that they are in is over."""
    if query.steps is None:
        return
    stream = streams[name_key(query.stream.relation)]
    if stream.retain is not None and stream.retain < query.steps.width:
        raise InvalidSchema(
            f"a step is longer than stream '{stream.name}' retains its tuples",
            hint="use shorter steps, or a stream with a longer retention",
        )


def schema_of(query: Query, streams: Mapping[str, Stream], time: str | None) -> Schema:
    """The columns of a query, with its time column; by default, the first output that is the time of an input."""
    columns = tuple(Column(output.name, output.value.type) for output in query.outputs)
    if time is not None and name_key(time) not in {name_key(column.name) for column in columns}:
        raise InvalidSchema(f"the query has no column '{time}', which is to be the time of the stream")
    return Schema(columns, time or _time_of(query, streams)).checked()


def _time_of(query: Query, streams: Mapping[str, Stream]) -> str | None:
    if query.steps is not None:
        # The start first: it is within the step, also in longer steps over the derived stream.
        return _named(query.outputs, STEP_START) or _named(query.outputs, STEP_END)
    for output in query.outputs:
        if output.value.column is not None:
            field = parse_field(output.value.column)
            stream = streams.get(name_key(query.inputs[field.input].relation))
            if stream is not None and stream.schema.time == field.column:
                return output.name
    return None


def _named(outputs: Sequence[Output], column: str) -> str | None:
    return next((output.name for output in outputs if output.value.column == column), None)
