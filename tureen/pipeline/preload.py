"""What a task needs in memory before it starts."""

from __future__ import annotations

import importlib


def preload() -> None:
    """Load the kernels' compiled code."""
    importlib.import_module("tureen.pipeline.arrival")
