"""Settings of a server's federation."""

from __future__ import annotations

from dataclasses import dataclass, field

from tureen.federation.peer_quota import PeerQuota


@dataclass(frozen=True)
class FederationSettings:
    """What an operator decides about the federation of a server."""

    quota: PeerQuota = field(default_factory=PeerQuota)
    away_seconds: float = 60.0
    """How long a peer is away before another one is asked for what it sends."""
    narrow_seconds: float = 300.0
    """How long a flow has more than queries need before it is narrowed."""


DEFAULT_SETTINGS = FederationSettings()
