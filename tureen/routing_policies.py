"""The names of routing policies, which users choose; `tureen.eddy.join_routing` has the policies themselves."""

from __future__ import annotations

from tureen.errors import TureenError

ROUTING_POLICIES = ("tickets", "random", "fixed")
"""The policies of `tureen.eddy.join_routing`; the first is the default."""


def check_routing(name: str) -> str:
    """The name of a routing policy.

    >>> check_routing("tickets")
    'tickets'
    """
    if name not in ROUTING_POLICIES:
        raise TureenError(f"routing must be one of {', '.join(ROUTING_POLICIES)}, got '{name}'")
    return name
