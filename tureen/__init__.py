"""Tureen: thousands of standing SQL queries over live streams, on one shared Spark pipeline."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tureen.errors import TureenError

if TYPE_CHECKING:
    from tureen.client.client import Client, connect
    from tureen.results.answer import Answer, Change
    from tureen.soup.embedded import Soup, open
    from tureen.soup.integrity import Verification, backup, verify
    from tureen.soup.standing import QueryTemplate, StandingQuery

    __version__: str

__all__ = [
    "Answer",
    "Change",
    "Client",
    "QueryTemplate",
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

_WHERE = {
    "Answer": "tureen.results.answer",
    "Change": "tureen.results.answer",
    "Client": "tureen.client.client",
    "QueryTemplate": "tureen.soup.standing",
    "Soup": "tureen.soup.embedded",
    "StandingQuery": "tureen.soup.standing",
    "Verification": "tureen.soup.integrity",
    "backup": "tureen.soup.integrity",
    "connect": "tureen.client.client",
    "open": "tureen.soup.embedded",
    "verify": "tureen.soup.integrity",
}


def __getattr__(name: str) -> Any:
    """Import what a name stands for when it is first used: Spark's workers need no engine, a client no kernels."""
    if name == "__version__":
        return import_module("importlib.metadata").version("tureen")
    if name not in _WHERE:
        raise AttributeError(f"module 'tureen' has no attribute '{name}'")
    return getattr(import_module(_WHERE[name]), name)
