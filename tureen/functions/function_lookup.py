"""Looking up user functions by the names that queries call them by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from tureen.functions.user_function import UserFunction, function_key


class FunctionLookup(Protocol):
    """The user functions that a query can call."""

    def __call__(self, name: str, /) -> UserFunction | None:
        """The function of a name; None if there is none."""

    def names(self) -> Iterable[str]:
        """The names of all functions, for the hint of an unknown one."""


class NamedFunctions:
    """Functions in memory."""

    def __init__(self, functions: Mapping[str, UserFunction]) -> None:
        """Look up functions in a mapping by `function_key`, which may change."""
        self._functions = functions

    def __call__(self, name: str, /) -> UserFunction | None:
        """The function of a name; None if there is none."""
        return self._functions.get(function_key(name))

    def names(self) -> Iterable[str]:
        """The names of all functions."""
        return [function.name for function in self._functions.values()]


no_functions = NamedFunctions({})
"""A look-up where there are no user functions."""


class RecordedFunctions:
    """Looks up functions, and remembers which were found."""

    def __init__(self, lookup: FunctionLookup) -> None:
        """Look up functions with another look-up."""
        self._lookup = lookup
        self.called: dict[str, UserFunction] = {}
        """The functions that were found, by their digests."""
        self.names = lookup.names

    def __call__(self, name: str, /) -> UserFunction | None:
        """The function of a name; None if there is none."""
        function = self._lookup(name)
        if function is not None:
            self.called[function.digest] = function
        return function
