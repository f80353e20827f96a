"""Which Python functions can be stored by their source."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

from tureen.errors import InvalidFunction
from tureen.functions.function_source import defined_function, function_of, source_of
from tureen.functions.function_worker import defined

FACTOR = 3


def plain(text: str, start: int = 2) -> int:
    """A function with an import, a nested function, a class and a comprehension of its own."""
    import math  # noqa: PLC0415 - its source must not need its module

    class Box:
        value = 1

        def get(self) -> int:
            return self.value

    def square(number: float) -> float:
        return math.sqrt(number) ** 2

    return len(text) + start + round(square(4)) + Box().get() + sum(number for number in range(2))


def recursive(number: int) -> int:
    return 1 if number <= 1 else number * recursive(number - 1)


def uses_module(number: int) -> int:
    return number * FACTOR


def generates(number: int) -> Any:
    yield number


async def awaits(number: int) -> int:
    return number


@wraps(plain)
def decorated(*args: Any) -> int:
    return plain(*args)


def default_of_module(number: int, factor: int = FACTOR) -> int:
    return number * factor


def closure() -> Callable[[int], int]:
    factor = 2

    def times(number: int) -> int:
        return number * factor

    return times


def test_source_defines_the_same_function() -> None:
    assert defined(source_of(plain))("abc") == plain("abc")
    assert defined(source_of(recursive))(5) == 120


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda number: number, "a lambda has no source of its own"),
        (len, "'len' is not a plain Python function"),
        (closure(), "'times' is a closure: it uses factor"),
        (uses_module, "'uses_module' uses FACTOR of its module"),
        (generates, "'generates' is a generator function"),
        (awaits, "'awaits' is a coroutine function"),
        (decorated, "has a decorator"),
        (default_of_module, "a default of 'default_of_module' is not a constant: FACTOR"),
    ],
)
def test_functions_that_their_source_does_not_define_are_refused(function: Any, message: str) -> None:
    with pytest.raises(InvalidFunction, match=message):
        function_of("f", function, "INT", "INT")


def test_definitions_are_checked() -> None:
    source = "def f(a, b=1):\n    return a\n"
    assert defined_function("f", source, None, "int", "int, int").signature == "f(INT, INT) RETURNS INT"
    for types, message in (("", "1 to 32 arguments, got 0"), ("INT, INT, INT", "cannot be called with 3 arguments")):
        with pytest.raises(InvalidFunction, match=message):
            defined_function("f", source, None, "INT", types)
    with pytest.raises(InvalidFunction, match="types of a function's arguments are not valid"):
        defined_function("f", source, None, "INT", "NUMBER")
    with pytest.raises(InvalidFunction, match="the return type of 'f' is not valid"):
        defined_function("f", source, None, "ARRAY<INT>", "INT")
    for name in ("", "1f", "a b", "f;", "é", None):
        with pytest.raises(InvalidFunction, match="is not a valid name of a function"):
            function_of(name, "m:f", "INT", "INT")
    for path in ("m", "m:", ":f", "m.py:f()", "os;x:f", "m:f g"):
        with pytest.raises(InvalidFunction, match="is not an import path"):
            function_of("f", path, "INT", "INT")
    with pytest.raises(InvalidFunction, match="must be one def"):
        defined_function("f", "import os\n" + source, None, "INT", "INT")
    with pytest.raises(InvalidFunction, match="at most 16,384 characters"):
        defined_function("f", source + "# " + "x" * 20_000, None, "INT", "INT")
    with pytest.raises(InvalidFunction, match="either a source or an import path"):
        defined_function("f", source, "m:f", "INT", "INT")
