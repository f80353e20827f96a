"""Parses WXQuery: text → syntax tree.

The expressions of Definition 1 of "Data Stream Sharing", and beyond it `or` and parentheses in conditions, sums of any
length, `!=`, texts in constructors, sequences with commas, and nested queries.
"""

from __future__ import annotations

import re
from decimal import Decimal

from tureen.errors import SqlError, Unsupported, nearest
from tureen.language.wxquery.scanner import Scanner
from tureen.language.wxquery.syntax import (
    ChildStep,
    Condition,
    Conditional,
    Constant,
    ContextElement,
    CountWindow,
    DataWindow,
    DiffWindow,
    Element,
    Expression,
    Flwr,
    ForClause,
    Items,
    Junction,
    LetClause,
    NestedQuery,
    Operand,
    Path,
    PathComparison,
    Root,
    StreamCall,
    Text,
    Variable,
)

FUNCTIONS = ("min", "max", "sum", "count", "avg")

MAX_DEPTH = 64
"""The maximum depth of expressions within each other."""

_OPERATORS = ("!=", "<=", ">=", "=", "<", ">")
_SELECTOR = re.compile(r"\[\s*([1-9]\d*|last\s*\(\s*\))\s*\]", re.ASCII)
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_ENTITY = re.compile(r"&(?:#(\d+)|#x([0-9a-fA-F]+)|(\w+));", re.ASCII)
_WINDOW = "write |count 20 step 10| or |/photon/det_time diff 60 step 40|"
_FLWR = 'write for $x in stream("name")/path … return …'


def parse(text: str) -> Expression:
    """The syntax tree of a query."""
    parser = _Parser(Scanner(text))
    if parser.scanner.ended():
        raise SqlError("the text contains no query", hint=_FLWR)
    expression = parser.expression()
    if not parser.scanner.ended():
        parser.scanner.fail("the end of the query")
    return expression


class _Parser:
    def __init__(self, scanner: Scanner) -> None:
        self.scanner, self.depth = scanner, 0

    def expression(self) -> Expression:
        scanner, at = self.scanner, self.scanner.at
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SqlError("the query is nested too deeply", location=scanner.location(at))
        result: Expression
        if scanner.looks_at("<"):
            result = self._element()
            scanner.skip()
            if scanner.looks_at("/"):
                result = self._path_after(NestedQuery(result, at))
        elif scanner.word() in ("for", "let"):
            result = self._flwr()
        elif scanner.word() == "if":
            result = self._conditional()
        elif scanner.looks_at("("):
            result = self._parentheses()
        else:
            result = self._path()
        self.depth -= 1
        return result

    def _parentheses(self) -> Expression:
        scanner, at = self.scanner, self.scanner.at
        items = self._items(")")
        if scanner.looks_at("/"):
            return self._path_after(NestedQuery(items, at))
        return items.parts[0] if len(items.parts) == 1 else items

    def _items(self, end: str) -> Items:
        """Expressions from an opening bracket to the closing one; after a brace, blanks are text and not skipped."""
        scanner, at = self.scanner, self.scanner.at
        scanner.at += 1
        scanner.skip()
        parts: list[Expression] = []
        if not scanner.looks_at(end):
            parts.append(self.expression())
            while scanner.accept(","):
                parts.append(self.expression())
        if not scanner.looks_at(end):
            scanner.fail(f"'{end}'")
        scanner.at += 1
        if end != "}":
            scanner.skip()
        return Items(tuple(parts), at)

    # FLWR

    def _flwr(self) -> Flwr:
        scanner, at = self.scanner, self.scanner.at
        clauses: list[ForClause | LetClause] = []
        while scanner.word() in ("for", "let"):
            read = self._for if scanner.word() == "for" else self._let
            scanner.accept_word(scanner.word())
            clauses.append(read())
            while scanner.accept(","):
                clauses.append(read())
        where = self._condition() if scanner.accept_word("where") else None
        scanner.expect_word("return", "after for, let and where comes return")
        return Flwr(tuple(clauses), where, self.expression(), at)

    def _variable(self) -> str:
        self.scanner.expect("$", "a variable begins with a dollar sign")
        return self.scanner.name("the name of a variable")

    def _for(self) -> ForClause:
        at, name = self.scanner.at, self._variable()
        self.scanner.expect_word("in", _FLWR)
        path = self._source()
        window = self._window() if self.scanner.looks_at("|") else None
        return ForClause(name, path, window, at)

    def _source(self) -> Path:
        """What `for` iterates over: a path, or another query."""
        at = self.scanner.at
        expression = self.expression()
        return expression if isinstance(expression, Path) else Path(NestedQuery(expression, at), (), at)

    def _let(self) -> LetClause:
        scanner = self.scanner
        at, name = scanner.at, self._variable()
        scanner.expect(":=")
        function_at, function = scanner.at, scanner.name("an aggregate", f"one of {', '.join(FUNCTIONS)}")
        if function not in FUNCTIONS:
            raise SqlError(
                f"'{function}' is not an aggregate",
                hint=nearest(function, FUNCTIONS) or f"use one of {', '.join(FUNCTIONS)}",
                location=scanner.location(function_at),
            )
        scanner.expect("(")
        path = self._path()
        scanner.expect(")")
        return LetClause(name, function, path, at)

    def _window(self) -> DataWindow:
        scanner, at = self.scanner, self.scanner.at
        scanner.expect("|")
        if scanner.accept_word("count"):
            size = self._length()
            step = self._length() if scanner.accept_word("step") else size
            if size != int(size) or step != int(step):
                raise SqlError("a window counts whole items", hint=_WINDOW, location=scanner.location(at))
            scanner.expect("|", _WINDOW)
            return CountWindow(int(size), int(step), at)
        names: list[str] = []
        if scanner.accept("/") or scanner.word() != "diff":
            names.append(scanner.name("a path, count or diff", _WINDOW))
            while scanner.accept("/"):
                names.append(scanner.name("a step of the path", _WINDOW))
        scanner.expect_word("diff", _WINDOW)
        size = self._length()
        step = self._length() if scanner.accept_word("step") else size
        scanner.expect("|", _WINDOW)
        return DiffWindow(tuple(names), size, step, at)

    def _length(self) -> Decimal:
        at, number = self.scanner.at, self.scanner.number()
        if number is None:
            self.scanner.fail("a number", _WINDOW)
        length = Decimal(str(number))
        if not 0 < length < 10**12:
            raise SqlError("the length of a window must be above zero", location=self.scanner.location(at))
        return length

    def _conditional(self) -> Conditional:
        at = self.scanner.at
        self.scanner.accept_word("if")
        condition = self._condition()
        self.scanner.expect_word("then")
        then = self.expression()
        self.scanner.expect_word("else", "every if has an else; write else () for nothing")
        return Conditional(condition, then, self.expression(), at)

    # Conditions

    def _condition(self) -> Condition:
        return self._junction("or", lambda: self._junction("and", self._comparison))

    def _junction(self, operator: str, part: object) -> Condition:
        assert callable(part)
        at = self.scanner.at
        parts: list[Condition] = [part()]
        while self.scanner.accept_word(operator):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(operator, tuple(parts), at)

    def _comparison(self) -> Condition:
        scanner, at = self.scanner, self.scanner.at
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SqlError("the condition is nested too deeply", location=scanner.location(at))
        try:
            if scanner.accept("("):
                condition = self._condition()
                scanner.expect(")")
                return condition
            left = self._operand()
            operator = next((symbol for symbol in _OPERATORS if scanner.looks_at(symbol)), None)
            if operator is None:
                scanner.fail("a comparison", "compare with =, !=, <, <=, > or >=")
            scanner.accept(operator)
            return PathComparison(left, operator, self._operand(), at)
        finally:
            self.depth -= 1

    def _operand(self) -> Operand:
        scanner, at = self.scanner, self.scanner.at
        terms = [self._signed_term("+")]
        while scanner.looks_at("+") or scanner.looks_at("-"):
            sign = "+" if scanner.accept("+") else "-"
            if sign == "-":
                scanner.accept("-")
            terms.append(self._signed_term(sign))
        return Operand(tuple(terms), at)

    def _signed_term(self, sign: str) -> tuple[str, Path | Constant]:
        """A term, which may have a minus of its own."""
        if self.scanner.accept("-"):
            sign = "-" if sign == "+" else "+"
        return sign, self._term()

    def _term(self) -> Path | Constant:
        scanner, at = self.scanner, self.scanner.at
        for value in (scanner.number(), scanner.string()):
            if value is not None:
                return Constant(value, at)
        return self._path(in_condition=True)

    # Paths

    def _path(self, *, in_condition: bool = False) -> Path:
        scanner, at = self.scanner, self.scanner.at
        root: Root
        if scanner.looks_at("$"):
            scanner.at += 1
            root = Variable(scanner.name("the name of a variable"), at)
        elif scanner.word() == "stream" and not in_condition:
            root = self._stream()
        elif in_condition and (scanner.word() or scanner.looks_at("@")):
            return Path(ContextElement(at), (self._step(), *self._steps()), at)
        else:
            scanner.fail("an expression", _FLWR)
        return Path(root, self._steps(), at)

    def _path_after(self, root: Root) -> Path:
        return Path(root, self._steps(), root.at)

    def _stream(self) -> StreamCall:
        scanner, at = self.scanner, self.scanner.at
        scanner.accept_word("stream")
        scanner.expect("(", 'write stream("name")')
        name = scanner.string()
        if name is None:
            scanner.fail("the name of a stream in quotes", 'write stream("name")')
        scanner.expect(")")
        return StreamCall(name, at)

    def _steps(self) -> tuple[ChildStep, ...]:
        steps: list[ChildStep] = []
        while self.scanner.looks_at("/"):
            if self.scanner.looks_at("//"):
                raise Unsupported(
                    "paths have only the child axis",
                    hint="write each step",
                    location=self.scanner.location(self.scanner.at),
                )
            self.scanner.accept("/")
            steps.append(self._step())
        return tuple(steps)

    def _step(self) -> ChildStep:
        scanner, at = self.scanner, self.scanner.at
        for symbol, what in (("*", "wildcards"), ("..", "parents"), (".", "self")):
            if scanner.looks_at(symbol):
                raise Unsupported(f"{what} are not supported in paths", location=scanner.location(at))
        mark = "@" if scanner.accept("@") else ""
        name = mark + scanner.name("the name of an element")
        selector = _SELECTOR.match(scanner.text, scanner.at)
        if selector is not None:
            scanner.at = selector.end()
            scanner.skip()
            name += f"[{''.join(selector.group(1).split())}]"
        conditions: list[Condition] = []
        while scanner.accept("["):
            conditions.append(self._condition())
            scanner.expect("]")
        return ChildStep(name, tuple(conditions), at)

    # Constructors

    def _element(self) -> Element:
        scanner, at = self.scanner, self.scanner.at
        scanner.at += 1
        name = scanner.name("the name of an element", skip=False)
        scanner.skip()
        if scanner.looks_at("/>"):
            scanner.at += 2
            return Element(name, (), at)
        if scanner.word():
            raise Unsupported(
                "attributes of constructors are not supported",
                hint="write an element instead",
                location=scanner.location(scanner.at),
            )
        if not scanner.looks_at(">"):
            scanner.fail("'>'")
        scanner.at += 1
        parts = self._content(name, at)
        return Element(name, parts, at)

    def _content(self, name: str, start: int) -> tuple[Expression | Text, ...]:
        """The parts up to the closing tag; text of blanks only is not content."""
        scanner, parts = self.scanner, list[Expression | Text]()
        while True:
            parts += self._text()
            if scanner.ended():
                raise SqlError(
                    f"<{name}> is not closed", hint=f"close it with </{name}>", location=scanner.location(start)
                )
            if scanner.looks_at("</"):
                at = scanner.at
                scanner.at += 2
                closing = scanner.name("the name of an element")
                if not scanner.looks_at(">"):
                    scanner.fail("'>'")
                scanner.at += 1
                if closing != name:
                    raise SqlError(
                        f"<{name}> is closed by </{closing}>",
                        hint=f"close it with </{name}>",
                        location=scanner.location(at),
                    )
                return tuple(parts)
            if scanner.looks_at("<"):
                self.depth += 1
                if self.depth > MAX_DEPTH:
                    raise SqlError("the query is nested too deeply", location=scanner.location(scanner.at))
                parts.append(self._element())
                self.depth -= 1
            else:
                items = self._items("}")
                parts.append(items.parts[0] if len(items.parts) == 1 else items)

    def _text(self) -> list[Text]:
        scanner, start = self.scanner, self.scanner.at
        pieces: list[str] = []
        text = scanner.text
        while not scanner.ended() and text[scanner.at] != "<":
            character = text[scanner.at]
            if text[scanner.at : scanner.at + 2] in ("{{", "}}"):
                scanner.at += 1
            elif character == "{":
                break
            elif character == "}":
                scanner.fail("an element, text or '{'", "write }} for a brace")
            elif character == "&":
                pieces.append(self._entity())
                continue
            pieces.append(character)
            scanner.at += 1
        content = "".join(pieces)
        is_blank = not content.strip() and "&" not in text[start : scanner.at]
        return [] if is_blank else [Text(content, start)]

    def _entity(self) -> str:
        match = _ENTITY.match(self.scanner.text, self.scanner.at)
        number, digits, name = match.groups() if match else (None, None, None)
        code = int(number) if number else int(digits, 16) if digits else None
        if match is None or (name and name not in _ENTITIES) or (code is not None and not 0 < code < 0x110000):
            self.scanner.fail("an entity such as &amp;", "write &amp; for &")
        self.scanner.at = match.end()
        return chr(code) if code is not None else _ENTITIES[str(name)]
