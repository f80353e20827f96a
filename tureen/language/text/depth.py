"""How deeply a query may be nested: counted here, so that it does not depend on how deep the caller's stack is."""

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
"""How deeply parentheses and CASE may be nested."""

MAX_OPERATORS = 300
"""How many operators, functions and casts may be within each other; those of a chain of + are, those of AND are not."""

ROOM = 8_000
"""More frames than reading and binding a query within these limits takes.

Not many more: what recurses in C, such as reading JSON, has the same limit and a stack that ends.
"""

_OPERATORS = (exp.Binary, exp.Unary, exp.Func, exp.Predicate)


_lock = threading.Lock()
_readers = 0
_usual = 0


@contextmanager
def room() -> Iterator[None]:
    """Let Python's stack grow by as much as reading a query may take, from wherever it is now.

    The limit is that of the whole process: the last of those who read at the same time puts it back.
    """
    global _readers, _usual
    depth = 0
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    with _lock:
        if not _readers:
            _usual = sys.getrecursionlimit()
        _readers += 1
        if sys.getrecursionlimit() < depth + ROOM:
            sys.setrecursionlimit(depth + ROOM)
    try:
        yield
    finally:
        with _lock:
            _readers -= 1
            if not _readers:
                sys.setrecursionlimit(_usual)


def check_operators(source: Source, tree: exp.Expression) -> None:
    """Raise where operators are nested too deeply; no recursion."""
    todo = [(tree, 0)]
    while todo:
        node, depth = todo.pop()
        if depth > MAX_OPERATORS:
            raise too_deep(f"at most {MAX_OPERATORS} operators within each other", source, node)
        for child in node.iter_expressions():
            chained = isinstance(child, exp.Connector) and type(child) is type(node)
            counts = isinstance(child, _OPERATORS) and not isinstance(child, exp.Paren) and not chained
            todo.append((child, depth + counts))


def too_deep(limit: str, source: Source, node: exp.Expression | None = None) -> SqlError:
    """The error that says how deeply a query may be nested."""
    return SqlError("the query is nested too deeply", hint=limit, place=None if node is None else source.node(node))
