"""Paths and conditions of WXQuery as SQL over the columns of items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tureen.errors import SqlError, Unsupported, nearest
from tureen.language.wxquery.bindings import Binding, ElementBinding, Environment, ValueBinding, WindowBinding
from tureen.language.wxquery.fragments import Fragment, constant_sql, fragment, joined
from tureen.language.wxquery.scanner import Scanner
from tureen.language.wxquery.selecting import Selecting
from tureen.language.wxquery.syntax import (
    ChildStep,
    Condition,
    Constant,
    ContextElement,
    Junction,
    Operand,
    Path,
    PathComparison,
    Variable,
)


class PathConditions:
    """The conditions of one FLWR expression; `select` gets the aggregates of conditions over windows."""

    def __init__(self, scanner: Scanner, select: Selecting, environment: Environment) -> None:
        """Use the variables of an environment, which may grow."""
        self._scanner, self._select, self.environment = scanner, select, environment

    def variable(self, root: Variable) -> Binding:
        """What a variable is bound to."""
        binding = self.environment.get(root.name)
        if binding is None:
            raise SqlError(
                f"there is no variable '${root.name}'",
                hint=nearest(root.name, [name for name in self.environment if name]),
                location=self._scanner.location(root.at),
            )
        return binding

    def descend(self, element: ElementBinding, steps: Iterable[ChildStep]) -> tuple[ElementBinding, list[Fragment]]:
        """The element at the end of a path, and the conditions on the way."""
        conditions: list[Fragment] = []
        for step in steps:
            element = element.below(step.name, self._scanner, step.at)
            conditions += [self.sql(condition, element) for condition in step.conditions]
        return element, conditions

    def in_window(self, window: WindowBinding, steps: Sequence[ChildStep]) -> tuple[ElementBinding, list[Fragment]]:
        """The element of each item of a window; the path may begin with the name of the items."""
        item, conditions = window.item, list[Fragment]()
        has_child = any(leaf.path[:1] == (item.name,) for leaf in item.leaves)
        if steps and steps[0].name == item.name and not has_child:
            conditions = [self.sql(condition, item) for condition in steps[0].conditions]
            steps = steps[1:]
        element, others = self.descend(item, steps)
        return element, conditions + others

    def sql(self, condition: Condition, context: ElementBinding | None = None) -> Fragment:
        """A condition; `context` is the element that a condition in a path is about."""
        if isinstance(condition, Junction):
            parts = [self.sql(part, context) for part in condition.parts]
            return fragment("(", joined(f" {condition.operator.upper()} ", parts), ")")
        return self._comparison(condition, context)

    def _comparison(self, comparison: PathComparison, context: ElementBinding | None) -> Fragment:
        operator = "<>" if comparison.operator == "!=" else comparison.operator
        sides = [self._operand(side, context) for side in (comparison.left, comparison.right)]
        sql = fragment(sides[0], f" {operator} ", sides[1], at=comparison.at)
        paths = [term for side in (comparison.left, comparison.right) for _, term in side.terms]
        in_windows = [path for path in paths if isinstance(path, Path) and self._is_in_window(path)]
        if not in_windows:
            return sql
        if len(in_windows) > 1 or any(isinstance(path, Path) and path not in in_windows for path in paths):
            raise Unsupported(
                "a path of a window can only be compared with constants",
                hint="write the condition in brackets after the path of for, or use let",
                location=self._scanner.location(comparison.at),
            )
        # As in XQuery, a comparison of a sequence is true if it is for one of its values.
        call = fragment("max(CASE WHEN ", sql, " THEN 1 ELSE 0 END)")
        return fragment(self._select.aggregate(call), " = 1")

    def _is_in_window(self, path: Path) -> bool:
        return isinstance(path.root, Variable) and isinstance(self.variable(path.root), WindowBinding)

    def _operand(self, operand: Operand, context: ElementBinding | None) -> Fragment:
        pieces: list[str | Fragment] = []
        for number, (sign, term) in enumerate(operand.terms):
            pieces += [f" {sign} "] if number else ["-"] if sign == "-" else []
            pieces.append(self._term(term, context))
        return fragment(*pieces)

    def _term(self, term: Path | Constant, context: ElementBinding | None) -> Fragment:
        if isinstance(term, Constant):
            return fragment(constant_sql(term.value), at=term.at)
        if isinstance(term.root, ContextElement):
            if context is None:
                raise SqlError(
                    f"'{'/'.join(term.names)}' does not begin with a variable",
                    hint=f"write $x/{'/'.join(term.names)}",
                    location=self._scanner.location(term.at),
                )
            return self.value(*self.descend(context, term.steps), term.at)
        assert isinstance(term.root, Variable)
        binding = self.variable(term.root)
        if isinstance(binding, ValueBinding):
            return self.value_of(binding, term)
        if isinstance(binding, WindowBinding):
            return self.value(*self.in_window(binding, term.steps), term.at)
        element, conditions = self.descend(binding, term.steps)
        return self.value(element, conditions, term.at)

    def value_of(self, binding: ValueBinding, path: Path) -> Fragment:
        """The value of a variable, which has no elements."""
        if path.steps:
            raise SqlError(
                f"'${binding.name}' is a value and has no elements", location=self._scanner.location(path.steps[0].at)
            )
        return fragment(binding.sql, at=path.at)

    def value(self, element: ElementBinding, conditions: Sequence[Fragment], at: int) -> Fragment:
        """The value of an element; NULL unless the conditions are true."""
        if element.value is None:
            names = dict.fromkeys(leaf.path[0] for leaf in element.leaves if leaf.path)
            raise SqlError(
                f"<{element.name}> is not a value: it has elements in it",
                hint=f"continue the path with {', '.join(names)}" if names else None,
                location=self._scanner.location(at),
            )
        return only_if(conditions, fragment(element.value.sql, at=at))


def only_if(conditions: Sequence[Fragment], value: Fragment) -> Fragment:
    """A value where conditions are true, and NULL elsewhere."""
    if not conditions:
        return value
    return fragment("CASE WHEN ", joined(" AND ", conditions), " THEN ", value, " END")
