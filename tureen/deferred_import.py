"""Modules that are imported when they are first used, because the first answer of a process does not need them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class DeferredModule:
    """A module by its name; an attribute's first use imports it.

    A file that uses it imports the module for type checkers:

        if TYPE_CHECKING:
            import duckdb
        else:
            duckdb = DeferredModule("duckdb")
    """

    def __init__(self, name: str) -> None:
        """Import nothing yet."""
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Look the attribute up in the module, and keep it: the next use does not come here."""
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value
