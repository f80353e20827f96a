"""Tokens of peers: where they come from, and where they must not be."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

import tureen
from tests.federation.servers import connect, peer_token, run_servers
from tureen.cli.main import run
from tureen.errors import TureenError
from tureen.federation import peering
from tureen.pot.peers import Peer
from tureen.service.peer_tokens import with_token


def test_a_stored_token_is_used_before_others(tmp_path: Path) -> None:
    (tmp_path / "alpha").write_text("from a file\n")
    environ = {"TUREEN_PEER_TOKEN_ALPHA": "from the environment"}
    peer = Peer("alpha", "http://nowhere")
    assert with_token(Peer("alpha", "http://nowhere", "stored"), str(tmp_path), environ).token == "stored"
    assert with_token(peer, str(tmp_path), environ).token == "from the environment"
    assert with_token(peer, str(tmp_path), {}).token == "from a file"
    assert with_token(peer, "", {}).token is None


def test_only_files_are_read(tmp_path: Path) -> None:
    for name in ("..", ".", "other"):
        assert with_token(Peer(name, ""), str(tmp_path / "tokens"), {}).token is None
    (tmp_path / "alpha").write_bytes(b"\xff\xfe")
    with pytest.raises(TureenError, match="the token of a peer cannot be read"):
        with_token(Peer("alpha", ""), str(tmp_path), {})


def until_state(client: tureen.Client, state: str) -> None:
    while client.peers()[0]["state"] != state:
        threading.Event().wait(0.02)


def test_a_token_from_a_file_is_not_stored_and_can_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peering, "ASK_EVERY", 0.05)
    tokens = tmp_path / "tokens"
    tokens.mkdir()
    pots = tmp_path / "pots"
    with run_servers(pots, "alpha", "beta", peer_tokens=str(tokens)) as (alpha, beta), connect(beta) as client:
        (tokens / "alpha").write_text("wrong")
        client.add_peer("alpha", alpha.url)
        until_state(client, "refused")
        token = peer_token(alpha, "beta")
        (tokens / "alpha").write_text(f"{token}\n")
        until_state(client, "connected")
    assert token.encode() not in b"".join(path.read_bytes() for path in pots.rglob("*") if path.is_file())


SECRET = "tureen_secret_of_a_peer"


def test_a_stored_token_is_in_the_catalog_alone(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    (tmp_path / "token").write_text(f"{SECRET}\n")
    with run_servers(tmp_path / "pots", "beta") as (beta,), connect(beta) as client:
        monkeypatch.setenv("TUREEN_URL", beta.url)
        monkeypatch.setenv("TUREEN_TOKEN", beta.tokens["admin"])
        added = ["peer", "add", "alpha", "http://127.0.0.1:1", "--peer-token-file", str(tmp_path / "token")]
        assert run([*added, "--peer-token", "x"]) != 0
        assert run(added) == 0
        shown = [client.peers(), client.status(), client.network(), client.sql("SHOW PEERS"), client.streams()]
        assert run(["peer", "list", "-o", "json"]) == 0
        with pytest.raises(TureenError) as error:
            client.add_peer("alpha", "http://127.0.0.1:1", token=SECRET)
        with pytest.raises(TureenError) as invalid:
            client.sql(f"CREATE PEER gamma URL 'nonsense' TOKEN '{SECRET}'")
    pot = tmp_path / "pots" / "beta"
    tureen.backup(pot, tmp_path / "copy")
    output = capsys.readouterr()
    for text in (str(shown), str(error.value), str(invalid.value), caplog.text, output.out, output.err):
        assert SECRET not in text
    files = [path for path in pot.rglob("*") if path.is_file()]
    assert {path.name for path in files if SECRET.encode() in path.read_bytes()} <= {
        "catalog.sqlite",
        "catalog.sqlite-wal",
    }
    assert {path.stat().st_mode & 0o077 for path in [pot, *files]} == {0}
    copied = b"".join(path.read_bytes() for path in (tmp_path / "copy").rglob("*") if path.is_file())
    assert SECRET.encode() not in copied
    assert b"http://127.0.0.1:1" in copied, "the peer itself is part of the copy"
