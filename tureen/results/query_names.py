"""The names of a query's inputs and columns as people wrote them, in texts about it.

Expressions are computed from rows whose columns have names of their own: `_1_sector` for the column `sector` of the
second input, `out0` for the first output of a query in FROM. Nobody who wrote the query knows those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tureen.functions.user_function import shown_sql
from tureen.join import Field, InnerJoin, Join, JoinCompare, JoinFactor, JoinTree, LateralJoin, parse_field
from tureen.language.expression_text import with_names
from tureen.language.spelling import spell_name
from tureen.query import NOW, Aggregate, Expression, Query, aggregate_name, block_column, key_name


class QueryNames:
    """Names the inputs of a query by their aliases, and their columns; with several inputs, as `input.column`."""

    def __init__(self, query: Query) -> None:
        """Name what a query reads; inputs with the same name get their numbers too."""
        names = [entry.shown_name for entry in query.inputs]
        repeated = Counter(names)
        self.inputs = [f"{name}#{number}" if repeated[name] > 1 else name for number, name in enumerate(names)]
        self._outputs = [
            {}
            if entry.block is None
            else {block_column(i): output.name for i, output in enumerate(entry.block.outputs)}
            for entry in query.inputs
        ]
        self._computed: dict[str, str] = {NOW: "NOW"}
        """What other columns of rows are: NOW, and the keys and aggregates of groups."""
        if query.grouping is not None:
            keys = {key_name(number): self.expression(key) for number, key in enumerate(query.grouping.keys)}
            calls = {aggregate_name(i): self._aggregate(call) for i, call in enumerate(query.grouping.aggregates)}
            self._computed |= keys | calls

    def field(self, field: Field) -> str:
        """A column of an input."""
        name = spell_name(self._outputs[field.input].get(field.column, field.column))
        return f"{self.inputs[field.input]}.{name}" if len(self.inputs) > 1 else name

    def column(self, name: str) -> str:
        """A column of the rows that expressions are computed from."""
        computed = self._computed.get(name)
        return self.field(parse_field(name)) if computed is None else computed

    def expression(self, expression: Expression) -> str:
        """An expression over rows or groups."""
        return _text(expression.sql, expression.text, self.column)

    def join_factor(self, factor: JoinFactor) -> str:
        """A condition between inputs."""
        if isinstance(factor, JoinCompare):
            offset = f" {'+' if factor.offset > 0 else '-'} {abs(factor.offset)}" if factor.offset else ""
            return f"{self.field(factor.left)} {factor.op} {self.field(factor.right)}{offset}"
        if factor.is_last and factor.fields:
            number = factor.fields[0].input
            return _text(factor.sql, factor.text, lambda name: self.field(Field(number, name)))
        return _text(factor.sql, factor.text, self.column)

    def tree(self, tree: JoinTree) -> str:
        """How inputs are joined, in the form of SQL."""
        match tree:
            case InnerJoin(sides, factors):
                return f"({', '.join(map(self.tree, sides))}{self._on(' WHERE ', factors)})"
            case Join(kind, left, right, factors, latest):
                on = self._on(" ON ", (*factors, *([latest] if latest is not None else [])))
                return f"({self.tree(left)} {kind.value.upper()} JOIN {self.tree(right)}{on})"
            case LateralJoin(left, right, factors, result):
                on = self._on(" ON ", factors)
                return f"({self.tree(left)} LATERAL {self.inputs[result]} OF {self.tree(right)}{on})"
            case _:
                return self.inputs[tree]

    def _on(self, word: str, factors: tuple[JoinFactor, ...]) -> str:
        return word + " AND ".join(map(self.join_factor, factors)) if factors else ""

    def _aggregate(self, call: Aggregate) -> str:
        arguments = ", ".join(map(self.expression, call.arguments)) or "*"
        return f"{call.function}({'DISTINCT ' if call.distinct else ''}{arguments})"


def _text(sql: str, text: str, name_of: Callable[[str], str]) -> str:
    return with_names(text or shown_sql(sql), name_of)
