"""Tureen: thousands of standing SQL queries over live streams, on one shared Spark pipeline."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tureen.errors import TureenError, needs_extra

if TYPE_CHECKING:
    from tureen.client.client import Client, connect
    from tureen.punctuation import Punctuation, Range
    from tureen.results.answer import Answer, Change
    from tureen.soup.embedded import Soup
    from tureen.soup.integrity import Verification, backup, verify
    from tureen.soup.interface import AnySoup
    from tureen.soup.opening import open
    from tureen.soup.standing import QueryTemplate, StandingQuery
    from tureen.why.explanation import ExplainedTuple, Explanation, Reason

    __version__: str

__all__ = [
    "Answer",
    "AnySoup",
    "Change",
    "Client",
    "ExplainedTuple",
    "Explanation",
    "Punctuation",
    "QueryTemplate",
    "Range",
    "Reason",
    "Soup",
    "StandingQuery",
    "TureenError",
    "Verification",
    "__version__",
    "backup",
    "connect",
    "open",
    "verify",
]

_MODULES = {
    "Answer": "tureen.results.answer",
    "AnySoup": "tureen.soup.interface",
    "Change": "tureen.results.answer",
    "Client": "tureen.client.client",
    "ExplainedTuple": "tureen.why.explanation",
    "Explanation": "tureen.why.explanation",
    "Punctuation": "tureen.punctuation",
    "QueryTemplate": "tureen.soup.standing",
    "Range": "tureen.punctuation",
    "Reason": "tureen.why.explanation",
    "Soup": "tureen.soup.embedded",
    "StandingQuery": "tureen.soup.standing",
    "Verification": "tureen.soup.integrity",
    "backup": "tureen.soup.integrity",
    "connect": "tureen.client.client",
    "open": "tureen.soup.opening",
    "verify": "tureen.soup.integrity",
}


_ENGINE = ("tureen.soup.embedded", "tureen.soup.integrity", "tureen.soup.opening")
"""The modules that need the extra `engine`."""


def __getattr__(name: str) -> Any:
    """Import a name's module on first use: clients and Spark's workers do not need the engine."""
    if name == "__version__":
        return import_module("importlib.metadata").version("tureen")
    if name not in _MODULES:
        raise AttributeError(f"module 'tureen' has no attribute '{name}'")
    module = _MODULES[name]
    with needs_extra("engine", f"tureen.{name}") if module in _ENGINE else nullcontext():
        return getattr(import_module(module), name)
