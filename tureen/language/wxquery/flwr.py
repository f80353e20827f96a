"""A FLWR expression as one SELECT: its clauses, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tureen.errors import SqlError, TureenError, Unsupported
from tureen.item_path import DEFAULT_ITEM
from tureen.language.binding.scope import Lookup
from tureen.language.wxquery.bindings import ElementBinding, Environment, Leaf, ValueBinding, WindowBinding, leaves_of
from tureen.language.wxquery.fragments import Fragment, fragment, joined, quoted
from tureen.language.wxquery.path_conditions import PathConditions, only_if
from tureen.language.wxquery.returning import Returning
from tureen.language.wxquery.scanner import Scanner
from tureen.language.wxquery.selecting import Selecting
from tureen.language.wxquery.syntax import (
    ChildStep,
    Condition,
    CountWindow,
    DiffWindow,
    Element,
    Expression,
    Flwr,
    ForClause,
    Items,
    Junction,
    LetClause,
    NestedQuery,
    Path,
    StreamCall,
    Text,
    Variable,
)
from tureen.query import NamedRelation
from tureen.xml_template import Part

_DERIVE = "create a derived stream of the inner query, and use its name"


@dataclass
class Inputs:
    """The streams of a query, and their aliases."""

    lookup: Lookup
    count: int = 0

    def alias(self) -> str:
        """An alias that is not used yet."""
        self.count += 1
        return f"i{self.count}"


@dataclass(frozen=True, slots=True)
class IteratedSource:
    """What `for` iterates over: an element of each row, conditions, and whether windows of it can be steps."""

    element: ElementBinding
    conditions: tuple[Fragment, ...]
    is_stream: bool


class FlwrTranslator:
    """Translates one FLWR expression; its SELECT is `select`."""

    def __init__(self, scanner: Scanner, inputs: Inputs) -> None:
        """Read streams that `inputs` finds."""
        self._scanner, self._inputs = scanner, inputs
        self.select = Selecting()
        self.environment: Environment = {}
        self._conditions = PathConditions(scanner, self.select, self.environment)
        self._streams: dict[str, ElementBinding] = {}

    def translate(self, flwr: Flwr) -> Part:
        """Translate the expression, and return the template of a row."""
        self.bind(flwr)
        return Returning(self._scanner, self.select, self._conditions).part(flwr.result)

    def bind(self, flwr: Flwr) -> None:
        """Bind the variables, and add the conditions."""
        for clause in flwr.clauses:
            if isinstance(clause, ForClause):
                self._for(clause)
            else:
                self._let(clause)
        for condition in conjuncts(flwr.where):
            self.select.add_condition(self._conditions.sql(condition))

    # for

    def _for(self, clause: ForClause) -> None:
        if self.select.window is not None or (clause.window is not None and self.select.relations):
            raise Unsupported(
                "a window is only supported where it is the only input",
                hint=_DERIVE.replace("the inner query", "the window"),
                location=self._scanner.location(clause.at),
            )
        if self.select.has_aggregates:
            raise Unsupported("for after let is not supported", location=self._scanner.location(clause.at))
        source = self._source(clause.path)
        self.select.where += source.conditions
        if not source.element.is_item:
            # An element that is missing is not iterated over.
            self.select.where.append(source.element.exists)
        if clause.window is None:
            self.environment[clause.name] = source.element
            return
        self._check_window(clause, source)
        self.select.window = clause.window
        is_filtered = bool(self.select.where) or not source.is_stream
        self.select.counts_matches = isinstance(clause.window, CountWindow) and is_filtered
        self.environment[clause.name] = WindowBinding(source.element)

    def _check_window(self, clause: ForClause, source: IteratedSource) -> None:
        window = clause.window
        if not isinstance(window, DiffWindow):
            return
        location = self._scanner.location(window.at)
        if not source.is_stream:
            raise Unsupported("a window of time is only supported over a stream", hint=_DERIVE, location=location)
        names = window.reference
        if names and names[0] == source.element.name:
            names = names[1:]
        if not names:
            return
        element, _ = self._conditions.descend(source.element, [ChildStep(name, (), window.at) for name in names])
        if element.value is None or not element.value.is_time:
            time = next((leaf for leaf in source.element.leaves if leaf.is_time), None)
            raise SqlError(
                f"a window follows the time of its stream, and '{'/'.join(names)}' is not",
                hint="write |diff …|" if time is None else f"its time is {'/'.join(time.path)}",
                location=location,
            )

    def _source(self, path: Path) -> IteratedSource:
        match path.root:
            case StreamCall():
                return self._stream(path.root, path.steps)
            case Variable() as root:
                binding = self._conditions.variable(root)
                if not isinstance(binding, ElementBinding):
                    raise Unsupported(
                        f"'${root.name}' cannot be iterated over",
                        hint="use its aggregates and lists",
                        location=self._scanner.location(root.at),
                    )
                element, conditions = self._conditions.descend(binding, path.steps)
                return IteratedSource(element, tuple(conditions), is_stream=False)
            case NestedQuery() as root:
                return self._nested(root, path.steps)
        raise SqlError("for needs a stream, a variable or a query", location=self._scanner.location(path.at))

    def _stream(self, call: StreamCall, steps: Sequence[ChildStep], *, once: bool = False) -> IteratedSource:
        """The items of a stream; with `once`, a stream that was read before is not another input."""
        relation = self._relation(call)
        item = tuple((relation.item or DEFAULT_ITEM).split("/"))
        names = tuple(step.name for step in steps)
        if names[: len(item)] != item:
            raise SqlError(
                f"the items of stream '{relation.name}' are not {'/'.join(names) or 'at its root'}",
                hint=f'write stream("{relation.name}")/{"/".join(item)}',
                location=self._scanner.location(steps[0].at if steps else call.at),
            )
        for step in steps[: len(item) - 1]:
            if step.conditions:
                raise Unsupported(
                    "conditions are only supported on items and elements in them",
                    location=self._scanner.location(step.at),
                )
        binding = self._streams.get(relation.name) if once else None
        if binding is None:
            binding = self._streams[relation.name] = self._input(relation, item[-1], call.at)
        at_item = [self._conditions.sql(condition, binding) for condition in steps[len(item) - 1].conditions]
        element, conditions = self._conditions.descend(binding, steps[len(item) :])
        return IteratedSource(element, (*at_item, *conditions), is_stream=len(self.select.relations) == 1)

    def _relation(self, call: StreamCall) -> NamedRelation:
        try:
            return self._inputs.lookup(call.name)
        except TureenError as error:
            error.location = error.location or self._scanner.location(call.at)
            raise

    def _input(self, relation: NamedRelation, item: str, at: int) -> ElementBinding:
        """Add an input, and return its items."""
        alias = self._inputs.alias()
        self.select.relations.append(fragment(f"{quoted(relation.name)} {alias}", at=at))
        return ElementBinding(item, leaves_of(relation.schema, alias), is_item=True)

    # Nested queries

    def _nested(self, nested: NestedQuery, steps: Sequence[ChildStep]) -> IteratedSource:
        flwr, result, steps = self._inner(nested, steps)
        inner = FlwrTranslator(self._scanner, self._inputs)
        inner.bind(flwr)
        returning = Returning(self._scanner, inner.select, inner._conditions)
        shape = returning.shape(result)
        own = steps[0].conditions if isinstance(nested.body, Element) else ()
        below = steps[1:] if isinstance(nested.body, Element) else steps
        is_plain = inner.select.is_plain
        if is_plain:
            is_stream = not self.select.relations and len(inner.select.relations) == 1
            self.select.relations += inner.select.relations
            self.select.where += inner.select.where
            leaves = shape
        else:
            is_stream, leaves = False, self._block(inner.select, shape)
        item = ElementBinding(result.name, leaves, is_item=True)
        conditions = [self._conditions.sql(condition, item) for condition in own]
        element, others = self._conditions.descend(item, below)
        return IteratedSource(element, (*conditions, *others), is_stream)

    def _block(self, inner: Selecting, shape: Sequence[Leaf]) -> tuple[Leaf, ...]:
        """The values of a query in FROM."""
        alias = self._inputs.alias()
        names = [inner.output(leaf.sql, f"c{number}") for number, leaf in enumerate(shape)]
        self.select.relations.append(fragment("(", inner.sql(), f") {alias}"))
        return tuple(
            Leaf(leaf.path, Fragment(f"{alias}.{quoted(name)}")) for leaf, name in zip(shape, names, strict=True)
        )

    def _inner(self, nested: NestedQuery, steps: Sequence[ChildStep]) -> tuple[Flwr, Element, Sequence[ChildStep]]:
        """The FLWR expression of a nested query and the element that it returns."""
        body: Expression | Text = nested.body
        while isinstance(body, Items) and len(body.parts) == 1:
            body = body.parts[0]
        if isinstance(body, Element) and len(body.parts) == 1:
            body = body.parts[0]
        if not isinstance(body, Flwr) or not isinstance(body.result, Element):
            raise Unsupported(
                "a nested query must be a FLWR expression that returns an element",
                hint="write for $x in (for … return <item>…</item>) …",
                location=self._scanner.location(nested.at),
            )
        if isinstance(nested.body, Element) and (not steps or steps[0].name != body.result.name):
            raise SqlError(
                f"the elements in <{nested.body.name}> are {body.result.name}",
                hint=f"continue the path with /{body.result.name}",
                location=self._scanner.location(steps[0].at if steps else nested.at),
            )
        return body, body.result, steps

    # let

    def _let(self, clause: LetClause) -> None:
        self.environment[clause.name] = ValueBinding(clause.name, self._aggregate(clause))

    def _aggregate(self, clause: LetClause) -> Fragment:
        root, at = clause.path.root, clause.path.at
        if isinstance(root, StreamCall):
            element, conditions = self._whole_stream(root, clause.path.steps)
        else:
            assert isinstance(root, Variable)
            binding = self._conditions.variable(root)
            if isinstance(binding, ElementBinding):
                element, conditions = self._conditions.descend(binding, clause.path.steps)
                return self._of_element(clause, element, conditions)
            if isinstance(binding, ValueBinding):
                raise SqlError(
                    f"'${root.name}' is a value, and aggregates are over windows", location=self._scanner.location(at)
                )
            element, conditions = self._conditions.in_window(binding, clause.path.steps)
        return self._of_sequence(clause, element, conditions)

    def _of_sequence(self, clause: LetClause, element: ElementBinding, conditions: list[Fragment]) -> Fragment:
        function, at = clause.function, clause.path.at
        if function == "count":
            if element.is_item and not conditions:
                return self.select.aggregate(fragment("count(*)", at=at))
            present = conditions if element.is_item else [*conditions, element.exists]
            return self.select.aggregate(fragment("count(", only_if(present, Fragment("1")), ")", at=at))
        value = self._conditions.value(element, conditions, at)
        call = self.select.aggregate(fragment(f"{function}(", value, ")", at=at))
        # The sum of nothing is 0.
        return fragment("coalesce(", call, ", 0)") if function == "sum" else call

    def _of_element(self, clause: LetClause, element: ElementBinding, conditions: list[Fragment]) -> Fragment:
        """An aggregate of a single element."""
        if clause.function == "count":
            present = joined(" AND ", [*conditions, element.exists])
            return fragment("CASE WHEN ", present, " THEN 1 ELSE 0 END")
        value = self._conditions.value(element, conditions, clause.path.at)
        match clause.function:
            case "sum":
                return fragment("coalesce(", value, ", 0)")
            case "avg":
                return fragment("CAST(", value, " AS DOUBLE)")
        return value

    def _whole_stream(self, call: StreamCall, steps: Sequence[ChildStep]) -> tuple[ElementBinding, list[Fragment]]:
        """An element of each item of a stream, all of whose items are aggregated."""
        if any(not isinstance(binding, ValueBinding) for binding in self.environment.values()):
            raise Unsupported(
                "an aggregate over a stream is only supported without for",
                hint="bind a window with for, and aggregate its variable",
                location=self._scanner.location(call.at),
            )
        source = self._stream(call, steps, once=True)
        if len(self.select.relations) > 1:
            raise Unsupported(
                "aggregates over several streams are not supported in one query",
                hint="register several queries",
                location=self._scanner.location(call.at),
            )
        return source.element, list(source.conditions)


def conjuncts(condition: Condition | None) -> list[Condition]:
    """The conditions that must all be true."""
    if isinstance(condition, Junction) and condition.operator == "and":
        return [part for operand in condition.parts for part in conjuncts(operand)]
    return [] if condition is None else [condition]
