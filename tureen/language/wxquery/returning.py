"""What a FLWR expression returns: columns of its SELECT, and the template of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tureen.errors import SqlError, Unsupported
from tureen.language.wxquery.bindings import ElementBinding, Leaf, ValueBinding, WindowBinding
from tureen.language.wxquery.fragments import Fragment, fragment, joined
from tureen.language.wxquery.path_conditions import PathConditions, only_if
from tureen.language.wxquery.scanner import Scanner
from tureen.language.wxquery.selecting import Selecting
from tureen.language.wxquery.syntax import (
    Conditional,
    Element,
    Expression,
    Flwr,
    ForClause,
    Items,
    LetClause,
    Path,
    Text,
    Variable,
)
from tureen.schema import Kind
from tureen.xml_template import Choice, Constructor, Listing, Literal, Part, Subtree, Value, tree_of

_NOTHING = Listing()
_NO_VALUE = {
    Kind.STRING: "''",
    Kind.BOOLEAN: "false",
    Kind.DATE: "DATE '1970-01-01'",
    Kind.TIMESTAMP: "TIMESTAMP '1970-01-01 00:00:00'",
}
"""A value of each kind that is not a number, for the items that have none."""


class Returning:
    """Translates what comes after `return`; columns that it needs are added to the SELECT."""

    def __init__(self, scanner: Scanner, select: Selecting, conditions: PathConditions) -> None:
        """Use the variables and conditions of a FLWR expression."""
        self._scanner, self._select, self._conditions = scanner, select, conditions

    def part(self, expression: Expression | Text) -> Part:
        """The template of an expression."""
        match expression:
            case Text(text):
                return Literal(text)
            case Element(name, parts):
                return Constructor(name, tuple(map(self.part, parts)))
            case Items(parts):
                return Listing(tuple(map(self.part, parts)))
            case Conditional(condition, then, otherwise):
                column = self._select.output(self._conditions.sql(condition), "if")
                return Choice(column, self.part(then), self.part(otherwise))
            case Flwr():
                return self._nested(expression)
            case Path():
                return self._path(expression)

    def _path(self, path: Path) -> Part:
        binding = self._conditions.variable(self._root(path))
        if isinstance(binding, ValueBinding):
            return Value(self._select.output(self._conditions.value_of(binding, path), binding.name))
        if isinstance(binding, WindowBinding):
            return self._in_window(binding, path)
        element, conditions = self._conditions.descend(binding, path.steps)
        columns = [
            ("/".join(leaf.path), self._output(only_if(conditions, leaf.sql), path, leaf)) for leaf in element.leaves
        ]
        return tree_of(self._name(element, path), columns, always=element.is_item and not conditions)

    def _output(self, sql: Fragment, path: Path, leaf: Leaf) -> str:
        return self._select.output(sql, "/".join((*path.names, *leaf.path)) or "value")

    def _in_window(self, window: WindowBinding, path: Path) -> Part:
        """All elements of a window: lists of the values of its items."""
        if self._select.counts_matches:
            raise Unsupported(
                "the items of a window that counts items with a condition cannot be listed",
                hint="create a derived stream with the condition, and count its items",
                location=self._scanner.location(path.at),
            )
        element, conditions = self._conditions.in_window(window, path.steps)
        name = self._name(element, path)
        if element.value is not None:
            call = fragment("collect_list(", only_if(conditions, element.value.sql), ")", at=path.at)
            return Subtree(name, self._output(self._select.aggregate(call), path, element.value))
        if conditions:
            raise Unsupported(
                "conditions are only supported in paths of values of a window",
                hint="write the condition in brackets after the path of for",
                location=self._scanner.location(path.at),
            )
        lists = [self._lists(path, leaf) for leaf in element.leaves]
        columns = [("/".join(leaf.path), values) for leaf, (values, _) in zip(element.leaves, lists, strict=True)]
        return tree_of(name, columns, always=element.is_item, together=tuple(lists))

    def _lists(self, path: Path, leaf: Leaf) -> tuple[str, str]:
        """A list with a value for each item, and one that says which are not NULL: collect_list leaves NULL out."""
        if leaf.kind is None:
            raise Unsupported("only elements of a stream can be listed", location=self._scanner.location(path.at))
        call = fragment("collect_list(coalesce(", leaf.sql, f", {_NO_VALUE.get(leaf.kind, '0')}))", at=path.at)
        values = self._output(self._select.aggregate(call), path, leaf)
        present = fragment("collect_list(", leaf.sql, " IS NOT NULL)", at=path.at)
        return values, self._select.output(self._select.aggregate(present), f"{values} exists")

    def _nested(self, flwr: Flwr) -> Part:
        """A FLWR expression over elements of the variables around it: an item has at most one of each."""
        conditions: list[Fragment] = []
        environment = self._conditions.environment
        before = dict(environment)
        for clause in flwr.clauses:
            if isinstance(clause, LetClause):
                raise Unsupported(
                    "let is not supported within return",
                    hint="write it before return",
                    location=self._scanner.location(clause.at),
                )
            conditions += self._iterated(clause)
        if flwr.where is not None:
            conditions.append(self._conditions.sql(flwr.where))
        result = self.part(flwr.result)
        environment.clear()
        environment.update(before)
        if not conditions:
            return result
        return Choice(self._select.output(joined(" AND ", conditions), "if"), result, _NOTHING)

    def _iterated(self, clause: ForClause) -> list[Fragment]:
        binding = None
        if isinstance(clause.path.root, Variable) and clause.window is None:
            binding = self._conditions.variable(clause.path.root)
        if not isinstance(binding, ElementBinding):
            raise Unsupported(
                "a FLWR expression within return can only iterate over elements of an item",
                hint="bind streams and windows in the first for",
                location=self._scanner.location(clause.at),
            )
        element, conditions = self._conditions.descend(binding, clause.path.steps)
        self._conditions.environment[clause.name] = element
        return conditions if element.is_item else [*conditions, element.exists]

    def shape(self, element: Element) -> tuple[Leaf, ...]:
        """The values in a constructed element, by their paths in it; for queries over this one."""
        leaves: list[Leaf] = []
        for part in element.parts:
            match part:
                case Element(name):
                    leaves += (replace(leaf, path=(name, *leaf.path)) for leaf in self.shape(part))
                case Path():
                    leaves += self._shape_of_path(part)
                case _:
                    raise Unsupported(
                        "the elements of a nested query can only have elements and paths in them",
                        location=self._scanner.location(part.at),
                    )
        return tuple(leaves)

    def _shape_of_path(self, path: Path) -> Sequence[Leaf]:
        binding = self._conditions.variable(self._root(path))
        if isinstance(binding, ValueBinding):
            return [Leaf((), self._conditions.value_of(binding, path))]
        if isinstance(binding, WindowBinding):
            raise Unsupported("the items of a window cannot be nested", location=self._scanner.location(path.at))
        element, conditions = self._conditions.descend(binding, path.steps)
        name = self._name(element, path)
        return [
            Leaf((name, *leaf.path), only_if(conditions, leaf.sql), leaf.is_time and not conditions, leaf.kind)
            for leaf in element.leaves
        ]

    def _root(self, path: Path) -> Variable:
        if not isinstance(path.root, Variable):
            raise Unsupported(
                "streams are read by for, before return",
                hint="write for $x in stream(…)/path",
                location=self._scanner.location(path.at),
            )
        return path.root

    def _name(self, element: ElementBinding, path: Path) -> str:
        """The name of an element that is returned, without a selector."""
        if element.name.startswith("@"):
            raise SqlError(
                "an attribute cannot be returned", hint="return its element", location=self._scanner.location(path.at)
            )
        return element.name.partition("[")[0]
