"""What tuples are routed to: grouped filters (CACQ §2.2), one for each set of columns that factors look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tureen.predicate import Clause, Factor, columns_of


@dataclass(frozen=True, slots=True)
class Operator:
    """Something that tuples are sent to once, and that rejects them for some of its queries.

    Queries are known by their number. A grouped filter holds all factors over its columns, of all queries;
    a SteM (CACQ §2.3) holds one side of the joins of its queries.
    """

    name: str
    queries: frozenset[int]
    columns: tuple[str, ...] = ()

    @property
    def predicates(self) -> int:
        """How many predicates a visit applies: one for each query that the operator serves."""
        return len(self.queries)


def operator_name(factor: Factor) -> str:
    """The name of the grouped filter that a factor belongs to.

    >>> from tureen.predicate import Compare
    >>> operator_name(Compare("b", "<", "a"))
    'a, b'
    """
    return ", ".join(sorted(columns_of(factor)))


def grouped_filters(clauses: Sequence[Clause]) -> tuple[Operator, ...]:
    """The grouped filters of some clauses, in the order of their names (CACQ §2.2).

    >>> from tureen.predicate import IsNull
    >>> [(one.name, sorted(one.queries)) for one in grouped_filters([(IsNull("a"),), (IsNull("a"), IsNull("b"))])]
    [('a', [0, 1]), ('b', [1])]
    """
    queries: dict[str, set[int]] = {}
    columns: dict[str, tuple[str, ...]] = {}
    for number, clause in enumerate(clauses):
        for factor in clause:
            name = operator_name(factor)
            queries.setdefault(name, set()).add(number)
            columns[name] = tuple(sorted(columns_of(factor)))
    return tuple(Operator(name, frozenset(queries[name]), columns[name]) for name in sorted(queries))


@dataclass(frozen=True)
class Flow:
    """All queries of one stream as one flow: its operators, and which of them each query needs (CACQ §2.2).

    What a query needs is the paper's completion mask: a tuple is in its answer when it has visited all of these
    and none rejected it.
    """

    operators: tuple[Operator, ...]
    queries: int

    @classmethod
    def of(cls, clauses: Sequence[Clause]) -> Flow:
        """The flow whose operators are the grouped filters of the clauses."""
        return cls(grouped_filters(clauses), len(clauses))

    @cached_property
    def needs(self) -> tuple[frozenset[str], ...]:
        """The names of the operators that each query needs."""
        return tuple(
            frozenset(one.name for one in self.operators if number in one.queries) for number in range(self.queries)
        )

    def unfinished(self, done: frozenset[str]) -> frozenset[int]:
        """The queries that need an operator which has not been visited yet.

        >>> flow = Flow((Operator("a", frozenset({0, 1})), Operator("b", frozenset({1}))), 3)
        >>> sorted(flow.unfinished(frozenset())), sorted(flow.unfinished(frozenset({"a"})))
        ([0, 1], [1])
        """
        return frozenset(number for number, needed in enumerate(self.needs) if not needed <= done)
