"""The operators that tuples are routed to: grouped filters (CACQ §2.2), one for each set of columns of factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tureen.predicate import Clause, Factor, columns_of


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator that each tuple visits at most once, and that may reject it for some of its queries.

    Queries are identified by number. A grouped filter has all factors over its columns, of all queries; a SteM
    (CACQ §2.3) has one side of the joins of its queries.
    """

    name: str
    queries: frozenset[int]
    columns: tuple[str, ...] = ()

    @property
    def predicates(self) -> int:
        """The number of predicates that a visit applies: one for each query of the operator."""
        return len(self.queries)


def operator_name(factor: Factor) -> str:
    """The name of the grouped filter that a factor belongs to.

    >>> from tureen.predicate import Compare
    >>> operator_name(Compare("b", "<", "a"))
    'a, b'
    """
    return ", ".join(sorted(columns_of(factor)))


def grouped_filters(clauses: Sequence[Clause]) -> tuple[Operator, ...]:
    """The grouped filters of clauses, in the order of their names (CACQ §2.2).

    >>> from tureen.predicate import IsNull
    >>> filters = grouped_filters([(IsNull("a"),), (IsNull("a"), IsNull("b"))])
    >>> [(operator.name, sorted(operator.queries)) for operator in filters]
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

    The operators that a query needs are the paper's completion mask: a tuple is in its answer when it has visited all
    of them and none rejected it.
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
            frozenset(operator.name for operator in self.operators if number in operator.queries)
            for number in range(self.queries)
        )

    def unfinished(self, visited: frozenset[str]) -> frozenset[int]:
        """The queries that need an operator that has not been visited.

        >>> flow = Flow((Operator("a", frozenset({0, 1})), Operator("b", frozenset({1}))), 3)
        >>> sorted(flow.unfinished(frozenset())), sorted(flow.unfinished(frozenset({"a"})))
        ([0, 1], [1])
        """
        return frozenset(number for number, needed in enumerate(self.needs) if not needed <= visited)
