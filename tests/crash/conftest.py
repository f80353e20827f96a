"""Forks the process that killed processes are forked from, while the process of the tests has no other threads."""

from __future__ import annotations

import pytest

from tests.crash.processes import fork_server


@pytest.hookimpl(optionalhook=True)
def pytest_process_started() -> None:
    """Fork it."""
    fork_server()
