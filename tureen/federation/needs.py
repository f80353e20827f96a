"""What an input of a query needs of a stream that lives at another server."""

from __future__ import annotations

from dataclasses import dataclass

from tureen.errors import Unsupported
from tureen.federation.flow import FlowSelection, flow_text
from tureen.pot.streams import Stream
from tureen.predicate import AllOf, Clause, columns_of, may_raise
from tureen.query import Query
from tureen.sharing.covering import covers
from tureen.sharing.partial_rows import partial_properties
from tureen.sharing.properties import Properties
from tureen.sharing.selection_text import shippable_partials


@dataclass(frozen=True)
class Need:
    """A selection and projection of a remote stream; all columns if `columns` is None."""

    stream: Stream
    columns: frozenset[str] | None = None
    clause: Clause = ()
    partials: Properties | None = None
    """Partial aggregates that will do instead; None if tuples are needed."""

    @property
    def properties(self) -> Properties:
        """What its rows have, for planning."""
        schema = self.stream.visible
        names = frozenset(schema.names) if self.columns is None else self.columns
        return Properties(self.stream.name, self.clause, names)

    @property
    def flow(self) -> str:
        """The flow that has exactly what is needed, as far as it can be written."""
        return flow_text(self.stream.visible, self.stream.name, self.columns, self.clause)

    def is_covered_by(self, flow: FlowSelection) -> bool:
        """Whether a replica that receives a flow has what is needed."""
        return covers(self.stream.visible, flow.properties, self.properties)


def need_of(stream: Stream, query: Query, number: int, *, aggregates: bool = False) -> Need:
    """What the leaf of that number of a query needs; raises for a query that cannot be answered from a replica.

    With `aggregates`, partial aggregates of the tuples will do where the answer can be computed from them.
    """
    if query.steps is not None and query.steps.rows:
        if stream.retain is not None:
            raise Unsupported(
                f"steps that count rows are not supported over stream '{stream.name}', which lives at '{stream.home}'",
                detail="they begin with tuples that are no longer retained",
                hint=f"register the query at '{stream.home}', or use steps of time",
            )
        return Need(stream)
    leaf = query.leaves[number]
    is_direct = number in query.leaf_numbers
    if not is_direct or leaf.window.span(0).counts_rows:
        # Tuples are counted before WHERE.
        return Need(stream)
    clause = tuple(factor for factor in leaf.clause if not may_raise(factor))
    if query.joins:
        return Need(stream, None, clause)
    # All factors are evaluated here, also those that are part of the flow.
    columns = frozenset(query.columns) | columns_of(AllOf(leaf.clause)) | ({stream.schema.time or ""} - {""})
    partials = _partials(stream, query) if aggregates else None
    return Need(stream, columns & frozenset(stream.visible.names), clause, partials)


def _partials(stream: Stream, query: Query) -> Properties | None:
    needed = partial_properties(query, stream.visible)
    return None if needed is None else shippable_partials(stream.visible, needed)
