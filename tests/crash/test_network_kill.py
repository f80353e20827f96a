"""Four servers, the queries of "Data Stream Sharing" at all of them, and SIGKILL of each under load.

Photons are pushed at one server while each is killed in turn: every answer, and what a follower has seen, is that of a
single server, with nothing lost and nothing twice.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tureen
from tests.federation.server_processes import ServerProcesses
from tureen.errors import TureenError
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.files import make_private_directory
from tureen.pot.peers import Peer, add_peer
from tureen.pot.tokens import create_token
from tureen.testing.manual_engine import ManualEngine
from tureen.testing.photons import ITEM, QUERIES, SCHEMA, TIME, photons

LINKS = [("A", "B"), ("B", "C"), ("B", "D")]
PLACES = {"Q1": "C", "Q2": "D", "Q3": "B", "Q4": "A"}
BATCH = 40
AROUND_A_KILL = 60
"""The batches that are pushed around a kill, at most: fewer if it takes less time."""


class Network:
    """The servers, and a client of each."""

    def __init__(self, root: Path) -> None:
        names = "ABCD"
        self.processes = ServerProcesses(root, *names)
        self.tokens = {}
        for name in names:
            make_private_directory(root / name)
            with Catalog(root / name, create=True) as catalog, catalog.write() as tx:
                self.tokens[name] = create_token(tx, "local", ["admin"], now=micros_now())[1]
        for sender, receiver in [*LINKS, *((right, left) for left, right in LINKS)]:
            with Catalog(root / sender) as catalog, catalog.write() as tx:
                token = create_token(tx, receiver, ["peer"], now=micros_now())[1]
            with Catalog(root / receiver) as catalog, catalog.write() as tx:
                add_peer(tx, Peer(sender, self.processes.urls[sender], token))
        for name in names:
            self.processes.start(name)
        self.clients = {name: tureen.connect(self.processes.urls[name], self.tokens[name]) for name in names}

    def close(self) -> None:
        """Kill all servers."""
        for client in self.clients.values():
            client.close()
        self.processes.close()

    def links(self) -> list[dict[str, Any]]:
        """The links of all servers."""
        return [link for client in self.clients.values() for link in client.status()["links"]]

    def wait(self, rows: int) -> None:
        """Wait until all links have received everything up to a number of rows of the home."""
        for _ in range(2400):
            try:
                if all(link["next_id"] >= rows and link["state"] == "current" for link in self.links()):
                    return
            except TureenError:
                pass
            threading.Event().wait(0.05)
        raise AssertionError(f"{rows} rows have not arrived: {self.links()}")


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    network = Network(tmp_path)
    yield network
    network.close()


class Pusher:
    """Pushes batches of photons, each until it is acknowledged, up to a number of rows."""

    def __init__(self, url: str, token: str, rows: list[dict[str, Any]]) -> None:
        self._client, self._rows = tureen.connect(url, token), rows
        self.pushed = self.allowed = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self.pushed < self.allowed:
                self.push()
            # The load of a sensor, not all that a machine can do.
            self._stopping.wait(0.02)

    def push(self) -> None:
        """Push the next batch."""
        batch = self._rows[self.pushed : self.pushed + BATCH]
        try:
            self._client.push("photons", batch, key=f"batch {self.pushed}")
        except TureenError:
            return  # it may be there or not: the key tells
        self.pushed += len(batch)

    def stop(self) -> None:
        """Stop after the current batch."""
        self._stopping.set()
        self._thread.join()
        self._client.close()


class Follower:
    """Reads the changes of Query 1 from where it stopped before."""

    def __init__(self, client: tureen.Client) -> None:
        self._client, self._position = client, "0"
        self.rows: list[Any] = []

    def read(self) -> None:
        """Read what is there."""
        try:
            for change in self._client.query("Q1").changes(since=self._position, timeout=0.1):
                self.rows.append(change.row)
                self._position = change.position
        except TureenError:
            return  # its server was killed


def test_each_server_is_killed_under_load(network: Network, tmp_path: Path) -> None:
    home = network.clients["A"]
    home.create_stream("photons", SCHEMA, time=TIME, clock="stream", item=ITEM)
    home.share_stream("B", "photons")
    for peer in "CD":
        network.clients["B"].share_stream(peer, "photons")
    for name, peer in PLACES.items():
        network.clients[peer].register(QUERIES[name], name=name, language="wxquery")
    rows = list(photons(4 * AROUND_A_KILL * BATCH))
    pusher = Pusher(network.processes.urls["A"], network.tokens["A"], rows)
    follower = Follower(network.clients["C"])
    for victim in "ABCD":
        before = pusher.pushed
        pusher.allowed = before + AROUND_A_KILL * BATCH
        while pusher.pushed < before + 3 * BATCH:
            threading.Event().wait(0.01)
        network.processes.kill(victim)
        network.processes.start(victim)
        follower.read()
    pusher.stop()
    network.wait(pusher.pushed)
    follower.read()
    twin = ManualEngine(tmp_path / "twin")
    twin.create_stream("photons", SCHEMA, TIME, clock="stream", item=ITEM)
    twin.append("photons", rows[: pusher.pushed])
    for name, peer in PLACES.items():
        answer = network.clients[peer].query(name).invoke()
        expected = twin.invoke(twin.register(QUERIES[name], language="wxquery"))
        assert answer.table.to_pylist() == expected.table.to_pylist(), name
        assert (answer.complete, answer.note) == (True, None)
    assert follower.rows == twin.invoke(twin.register(QUERIES["Q1"], language="wxquery")).table.to_pylist()
    twin.close()
