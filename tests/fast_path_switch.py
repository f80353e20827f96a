"""Fast paths turned off for a part of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tureen.fast_paths import VARIABLE, FastPath, disabled_fast_paths


@contextmanager
def without_fast_paths(*names: FastPath) -> Iterator[None]:
    """Turn fast paths off for the objects and processes that the block creates; without names, all of them."""
    disabled = disabled_fast_paths().union(names or FastPath)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, ",".join(disabled))
        disabled_fast_paths.cache_clear()
        try:
            yield
        finally:
            disabled_fast_paths.cache_clear()
