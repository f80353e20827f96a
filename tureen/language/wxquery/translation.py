"""Translates a query in WXQuery: syntax tree → SQL, and a template of its answers.

A FLWR expression over streams is one SELECT: `for` is FROM, conditions are WHERE, windows are steps, `let` are
aggregates, conditions over these are HAVING. What `return` needs is the select list, and its elements are the template.
"""

from __future__ import annotations

from dataclasses import dataclass

from tureen.errors import SqlError, Unsupported
from tureen.language.binding.scope import Lookup
from tureen.language.wxquery.flwr import FlwrTranslator, Inputs
from tureen.language.wxquery.fragments import Fragment
from tureen.language.wxquery.scanner import Scanner
from tureen.language.wxquery.syntax import (
    Conditional,
    Element,
    Expression,
    Flwr,
    ForClause,
    Items,
    NestedQuery,
    Path,
    StreamCall,
    Text,
    Variable,
)
from tureen.xml_template import Constructor, Listing, Literal, Part, Rows

_ONE_FLWR = "combine the streams in one FLWR expression, or register several queries"


@dataclass(frozen=True, slots=True)
class Translation:
    """The SQL that a query means, and how its rows become XML."""

    sql: Fragment
    template: Part


def translate(expression: Expression, scanner: Scanner, lookup: Lookup) -> Translation:
    """Translate a query over the streams that `lookup` finds."""
    query = _Query(scanner, lookup)
    template = query.part(expression)
    if query.sql is None:
        raise SqlError("the query reads no stream", hint='write for $x in stream("name")/path … return …')
    return Translation(query.sql, template)


class _Query:
    """The elements around the FLWR expression of a query."""

    def __init__(self, scanner: Scanner, lookup: Lookup) -> None:
        self._scanner, self._lookup = scanner, lookup
        self.sql: Fragment | None = None

    def part(self, expression: Expression | Text) -> Part:
        """The template of an expression outside of the FLWR expression."""
        match expression:
            case Text(text):
                return Literal(text)
            case Element(name, parts):
                return Constructor(name, tuple(map(self.part, parts)))
            case Items(parts):
                return Listing(tuple(map(self.part, parts)))
            case Flwr():
                return self._rows(expression)
            case Path(StreamCall() | NestedQuery(), _, at):
                # A path of a stream stands for all its elements.
                element = Path(Variable("", at), (), at)
                return self._rows(Flwr((ForClause("", expression, None, at),), None, element, at))
            case Path(root, _, at):
                name = root.name if isinstance(root, Variable) else ""
                raise SqlError(f"there is no variable '${name}'", location=self._scanner.location(at))
            case Conditional():
                raise Unsupported(
                    "if is only supported after return",
                    hint="write for … return if … then … else …",
                    location=self._scanner.location(expression.at),
                )

    def _rows(self, flwr: Flwr) -> Part:
        if self.sql is not None:
            raise Unsupported(
                "a query reads its streams in one FLWR expression",
                hint=_ONE_FLWR,
                location=self._scanner.location(flwr.at),
            )
        translator = FlwrTranslator(self._scanner, Inputs(self._lookup))
        row_part = translator.translate(flwr)
        self.sql = translator.select.sql()
        return Rows(row_part)
