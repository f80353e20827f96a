"""Limits of nesting, counted explicitly so that they do not depend on the depth of the caller's stack."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from sqlglot import exp

from tureen.errors import SqlError
from tureen.language.source import Source

MAX_DEPTH = 100
"""Maximum nesting of parentheses and CASE."""

MAX_OPERATORS = 300
"""Maximum nesting of operators, functions and casts. Each + of a chain nests one level deeper, an AND does not."""

PARSER_FRAMES = 8_000
"""Stack frames that parsing and binding a query within these limits needs at most.

Kept low: C code that recurses, such as the JSON decoder, obeys the same limit on a smaller stack.
"""

_OPERATORS = (exp.Binary, exp.Unary, exp.Func, exp.Predicate)


_lock = threading.Lock()
_readers = 0
_original_limit = 0


@contextmanager
def parser_stack() -> Iterator[None]:
    """Raise Python's recursion limit, relative to the current depth, by what parsing a query may need.

    The limit is global to the process: the last of concurrent readers restores it.
    """
    global _readers, _original_limit
    depth = 0
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    with _lock:
        if not _readers:
            _original_limit = sys.getrecursionlimit()
        _readers += 1
        if sys.getrecursionlimit() < depth + PARSER_FRAMES:
            sys.setrecursionlimit(depth + PARSER_FRAMES)
    try:
        yield
    finally:
        with _lock:
            _readers -= 1
            if not _readers:
                sys.setrecursionlimit(_original_limit)


def check_operators(source: Source, tree: exp.Expression) -> None:
    """Raise if operators are nested too deeply. Iterative, so that it cannot overflow the stack itself."""
    todo = [(tree, 0)]
    while todo:
        node, depth = todo.pop()
        if depth > MAX_OPERATORS:
            raise too_deep(f"at most {MAX_OPERATORS} nested operators", source, node)
        for child in node.iter_expressions():
            chained = isinstance(child, exp.Connector) and type(child) is type(node)
            counts = isinstance(child, _OPERATORS) and not isinstance(child, exp.Paren) and not chained
            todo.append((child, depth + counts))


def too_deep(limit: str, source: Source, node: exp.Expression | None = None) -> SqlError:
    """The error for a query that exceeds a nesting limit."""
    return SqlError("the query is nested too deeply", hint=limit, location=None if node is None else source.node(node))
