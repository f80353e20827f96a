"""Connections to a catalog: each is used by one transaction at a time, and used again."""

from __future__ import annotations

import os
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import pytest

from tureen.pot.catalog import CATALOG_FILE, Catalog
from tureen.pot.connecting import Connections


@pytest.fixture
def connections(tmp_path: Path) -> Connections:
    """Connections to a new catalog."""
    Catalog(tmp_path, create=True).close()
    return Connections(tmp_path / CATALOG_FILE)


def test_an_idle_connection_is_used_again(connections: Connections) -> None:
    with connections.transaction("BEGIN") as first, connections.transaction("BEGIN") as second:
        assert first is not second
    with connections.transaction("BEGIN") as again:
        assert again in (first, second)


def test_transactions_are_rolled_back_unless_they_are_committed(connections: Connections) -> None:
    with connections.transaction("BEGIN IMMEDIATE") as connection:
        connection.execute("UPDATE counter SET seq = 1")
        connection.commit()
    with pytest.raises(RuntimeError), connections.transaction("BEGIN IMMEDIATE") as connection:
        connection.execute("UPDATE counter SET seq = 2")
        raise RuntimeError
    with connections.transaction("BEGIN") as connection:
        assert connection.execute("SELECT seq FROM counter").fetchone() == (1,)


def test_a_read_transaction_sees_one_commit(connections: Connections) -> None:
    with connections.transaction("BEGIN") as reader:
        assert reader.execute("SELECT seq FROM counter").fetchone() == (0,)
        with connections.transaction("BEGIN IMMEDIATE") as writer:
            writer.execute("UPDATE counter SET seq = 1")
            writer.commit()
        assert reader.execute("SELECT seq FROM counter").fetchone() == (0,)


def test_connections_in_use_are_closed_after_their_transactions(connections: Connections) -> None:
    with connections.transaction("BEGIN") as connection:
        connections.close()
        connection.execute("SELECT seq FROM counter")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_few_idle_connections_are_kept(connections: Connections) -> None:
    with ExitStack() as stack:
        used = [stack.enter_context(connections.transaction("BEGIN")) for _ in range(20)]
    still_open = []
    for connection in used:
        try:
            connection.execute("SELECT 1")
        except sqlite3.ProgrammingError:
            continue
        still_open.append(connection)
    assert len(still_open) == 5


def test_a_forked_process_uses_connections_of_its_own(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connections.transaction("BEGIN") as first:
        pass
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    with connections.transaction("BEGIN") as second:
        assert second is not first
    first.execute("SELECT 1")
