"""The syntax tree of a query in WXQuery ("Data Stream Sharing", Definition 1); `at` is an offset in the text."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class StreamCall:
    """`stream("name")`: the root of a stream."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class NestedQuery:
    """An expression in parentheses, or a constructor, whose elements are the items of another query."""

    body: Expression
    at: int


@dataclass(frozen=True, slots=True)
class ContextElement:
    """The element that a condition in a path is about."""

    at: int


Root = Variable | StreamCall | NestedQuery | ContextElement


@dataclass(frozen=True, slots=True)
class ChildStep:
    """A child element, which may have conditions; its name can end in `[1]` or `[last()]`, or be `@attribute`."""

    name: str
    conditions: tuple[Condition, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Path:
    """A root and steps down from it."""

    root: Root
    steps: tuple[ChildStep, ...]
    at: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the steps."""
        return tuple(step.name for step in self.steps)


@dataclass(frozen=True, slots=True)
class Constant:
    """A number or a text."""

    value: Decimal | float | str
    at: int


@dataclass(frozen=True, slots=True)
class Operand:
    """A sum of paths and constants, each with its sign."""

    terms: tuple[tuple[str, Path | Constant], ...]
    at: int


@dataclass(frozen=True, slots=True)
class PathComparison:
    """Two operands and an operator: =, !=, <, <=, > or >=."""

    left: Operand
    operator: str
    right: Operand
    at: int


@dataclass(frozen=True, slots=True)
class Junction:
    """Conditions that are all true (`and`), or of which one is (`or`)."""

    operator: str
    parts: tuple[Condition, ...]
    at: int


Condition = PathComparison | Junction


@dataclass(frozen=True, slots=True)
class CountWindow:
    """`|count size step step|`: a number of items."""

    size: int
    step: int
    at: int


@dataclass(frozen=True, slots=True)
class DiffWindow:
    """`|path diff size step step|`: a length of the reference element, in its unit; an empty path is the time."""

    reference: tuple[str, ...]
    size: Decimal
    step: Decimal
    at: int


DataWindow = CountWindow | DiffWindow


@dataclass(frozen=True, slots=True)
class ForClause:
    """`for $name in path |window|`."""

    name: str
    path: Path
    window: DataWindow | None
    at: int


@dataclass(frozen=True, slots=True)
class LetClause:
    """`let $name := function(path)`."""

    name: str
    function: str
    path: Path
    at: int


@dataclass(frozen=True, slots=True)
class Flwr:
    """`for …, let … where … return …`."""

    clauses: tuple[ForClause | LetClause, ...]
    where: Condition | None
    result: Expression
    at: int


@dataclass(frozen=True, slots=True)
class Conditional:
    """`if condition then … else …`."""

    condition: Condition
    then: Expression
    otherwise: Expression
    at: int


@dataclass(frozen=True, slots=True)
class Element:
    """A direct element constructor."""

    name: str
    parts: tuple[Expression | Text, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Text:
    """Text within a constructor."""

    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Items:
    """Expressions with commas between them; none is the empty sequence."""

    parts: tuple[Expression, ...]
    at: int


Expression = Element | Flwr | Conditional | Path | Items
