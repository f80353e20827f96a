"""Loading what tasks need, in the process that they are forked from."""

from __future__ import annotations

import tureen.pipeline.arrival
from tureen.matching import warm_up

assert tureen.pipeline.arrival  # imported for what it loads


def preload() -> None:
    """Load the kernels' compiled code."""
    warm_up()
