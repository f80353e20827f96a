"""Forks the process that killed processes are forked from, while the process of the tests has no other threads."""

from __future__ import annotations

import pytest

from tests.crash.processes import fork_server

collect_ignore = ["preloaded.py"]
"""It compiles the kernels when it is imported, and has no doctests."""


@pytest.hookimpl(optionalhook=True)
def pytest_process_started() -> None:
    """Fork it."""
    fork_server()
