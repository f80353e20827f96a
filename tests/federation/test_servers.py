"""Two servers that federate over HTTP: peers, shares, answers, and what a peer does not see."""

from __future__ import annotations
