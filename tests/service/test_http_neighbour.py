"""Two servers that federate over HTTP, without Spark: answers, waiting, what a peer sees, and what it may not do."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import tureen
from tests.federation.servers import connect, peer_token, run_servers
from tests.service.running import RunningServer
from tureen.cli.main import run
from tureen.errors import (
    DuplicateName,
    Forbidden,
    TureenError,
    Unauthorized,
    UnknownPeer,
    UnknownStream,
)
from tureen.federation.frame import FlowFrame, encode_frame
from tureen.federation.neighbour import FLOWS_PATH, PeerInfo
from tureen.position import BEGINNING
from tureen.pot.peers import Peer
from tureen.service.http_neighbour import HttpNeighbour
from tureen.service.routes import flows

BASE = datetime(2026, 1, 1, tzinfo=UTC)
PAGE = Path(__file__).parents[2] / "docs" / "federation.md"


def rows(first: int, end: int) -> list[dict[str, Any]]:
    return [{"k": n % 3, "v": float(n), "ts": BASE + timedelta(seconds=n)} for n in range(first, end)]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningServer]]:
    with run_servers(tmp_path_factory.mktemp("federation"), "alpha", "beta") as servers:
        yield servers


@pytest.fixture(scope="module")
def alpha(servers: list[RunningServer]) -> Iterator[tureen.Client]:
    """The home of the stream `s`, of which it shares nothing else."""
    with connect(servers[0]) as client:
        client.create_stream("s", "k INT, v DOUBLE, ts TIMESTAMP", time="ts", clock="stream")
        client.create_stream("secret", "k INT")
        client.share_stream("beta", "s")
        yield client


@pytest.fixture(scope="module")
def beta(servers: list[RunningServer], alpha: tureen.Client, token: str) -> Iterator[tureen.Client]:
    assert alpha
    with connect(servers[1]) as client:
        client.add_peer("alpha", servers[0].url, token=token)
        yield client


@pytest.fixture(scope="module")
def token(servers: list[RunningServer]) -> str:
    return peer_token(servers[0], "beta")


def test_answers_are_those_of_the_home(alpha: tureen.Client, beta: tureen.Client) -> None:
    alpha.push("s", rows(0, 50))
    sql = "SELECT v FROM s WHERE k = 1 AND v > 3 BEGIN NOW - 20 SECONDS END NOW"
    expected, received = alpha.register(sql, name="twin"), beta.register(sql, name="twin")
    for first in (50, 80):
        position = alpha.push("s", rows(first, first + 30))
        answer = received.invoke(wait_for=f"alpha/{position}", timeout=60)
        assert (answer.complete, answer.note) == (True, None)
        assert answer.table == expected.invoke().table
        assert answer.window == expected.invoke().window
    (link,) = [link for link in beta.status()["links"] if link["stream"] == "s"]
    assert (link["peer"], link["next_id"], link["state"]) == ("alpha", 110, "current")
    assert "`v` > 3.0" in link["flow"]
    matching = [n for n in range(110) if n % 3 == 1 and n > 3]
    assert link["rows"] == len(matching)
    assert link["bytes"] > 0
    assert alpha.status()["sent"]["beta"]["rows"] == len(matching)
    changes = received.changes(since=BEGINNING, timeout=0)
    assert [change.row["v"] for change in changes][:2] == [4.0, 7.0]


def test_templates_derived_streams_and_statements_read_remote_streams(
    alpha: tureen.Client, beta: tureen.Client
) -> None:
    position = alpha.push("s", [{"k": 9, "v": 1e6, "ts": BASE}])
    template = beta.register_many("SELECT v FROM s WHERE k = :k", [{"k": 9}, {"k": 10}])
    beta.create_stream("nines", query="SELECT v, ts FROM s WHERE k = 9")
    beta.wait(f"alpha/{position}", timeout=60)
    assert template[0].invoke().table.to_pylist() == [{"v": 1e6}]
    answer = beta.sql("SELECT max(v) AS most FROM s WHERE k = 9")
    assert isinstance(answer, tureen.Answer)
    assert answer.table.to_pylist() == [{"most": 1e6}]
    derived = beta.register("SELECT v FROM nines")
    assert _until(lambda: derived.invoke().table.to_pylist()) == [{"v": 1e6}]
    beta.drop_stream("nines")
    template.unregister()


def _until(read: Callable[[], list[Any]]) -> list[Any]:
    """What a function returns once it returns something: derived streams follow by themselves."""
    result: list[Any] = []
    while not result:
        result = read()
    return result


def test_peers_are_listed_with_their_state(alpha: tureen.Client, beta: tureen.Client) -> None:
    (peer,) = _until(lambda: [peer for peer in beta.peers() if peer["state"] != "unknown"])
    assert (peer["name"], peer["state"], peer["offers"], peer["shared"]) == ("alpha", "connected", ["s"], [])
    assert "token" not in peer
    (receiver,) = alpha.peers()
    assert (receiver["name"], receiver["url"], receiver["state"], receiver["shared"]) == (
        "beta",
        None,
        "shared with",
        ["s"],
    )
    (stream,) = [stream for stream in beta.streams() if stream["name"] == "s"]
    assert (stream["home"], stream["clock"], stream["time"]) == ("alpha", "stream", "ts")
    with pytest.raises(DuplicateName, match="there is a peer named 'ALPHA' already"):
        beta.add_peer("ALPHA", "http://127.0.0.1:1")
    with pytest.raises(TureenError, match="'nonsense' is not a server URL"):
        beta.add_peer("gamma", "nonsense")
    with pytest.raises(TureenError, match="'beta' is the name of this server"):
        beta.add_peer("beta", "http://127.0.0.1:1")
    with pytest.raises(UnknownPeer, match="there is no peer named 'gamma'"):
        beta.remove_peer("gamma")
    with pytest.raises(UnknownStream, match="there is no stream named 'nothing'"):
        alpha.share_stream("beta", "nothing")
    with pytest.raises(TureenError, match="stream 'secret' is not shared with 'beta'"):
        alpha.unshare_stream("beta", "secret")


def test_statements_about_peers(alpha: tureen.Client) -> None:
    alpha.sql("CREATE PEER gamma URL 'http://127.0.0.1:1' TOKEN 'x'")
    alpha.sql("SHARE STREAM secret WITH gamma")
    shown = alpha.sql("SHOW PEERS")
    assert isinstance(shown, list)
    (gamma,) = [peer for peer in shown if peer["name"] == "gamma"]
    assert (gamma["url"], gamma["shared"]) == ("http://127.0.0.1:1", ["secret"])
    alpha.sql("UNSHARE STREAM secret WITH gamma")
    alpha.sql("DROP PEER gamma")
    alpha.sql("DROP PEER IF EXISTS gamma")
    assert [peer["name"] for peer in alpha.peers()] == ["beta"]


def test_embedded_pots_have_no_peers(tmp_path: Path) -> None:
    with (
        tureen.open(tmp_path / "pot") as soup,
        pytest.raises(TureenError, match="an embedded pot has no peers"),
    ):
        soup.peers()


def flow_of(url: str, token: str | None, flow: str, origin: str = "") -> httpx.Response:
    """The response to a request for a flow, of which nothing is read."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with (
        httpx.Client(base_url=url, headers=headers, timeout=60) as http,
        http.stream("GET", "/v1/federation/flow", params={"flow": flow, "origin": origin}) as response,
    ):
        if response.status_code != 200:
            response.read()
        return response


def test_a_peer_sees_only_what_is_shared(servers: list[RunningServer], beta: tureen.Client, token: str) -> None:
    assert beta
    url = servers[0].url
    neighbour = HttpNeighbour(Peer("alpha", url, token))
    info = neighbour.info()
    assert [stream.name for stream in info.streams] == ["s"]
    (stream,) = info.streams
    assert flow_of(url, token, "SELECT v FROM s", stream.origin).status_code == 200
    # The same error for a stream that exists as for one that does not.
    texts = [flow_of(url, token, f"SELECT k FROM {name}").json() for name in ("secret", "nothing")]
    messages = [
        text["error"]["message"].replace(name, "") for text, name in zip(texts, ("secret", "nothing"), strict=True)
    ]
    assert messages[0] == messages[1]
    assert "secret" not in str(texts[1])
    for flow in (
        "SELECT v FROM s JOIN s AS t ON s.k = t.k",
        "SELECT count(*) FROM s",
        "SELECT v + 1 FROM s",
        "SELECT v FROM s WHERE sqrt(v) > 1",
        "SELECT v FROM s LIMIT 1",
        "SELECT v FROM s BEGIN NOW - 1 HOUR END NOW",
        "SELECT v FROM s; DROP STREAM s",
        "DROP STREAM s",
    ):
        assert flow_of(url, token, flow, stream.origin).status_code == 400, flow
    assert flow_of(url, token, "SELECT v FROM s", "another").status_code == 404
    neighbour.close()


def test_a_peer_has_no_more_flows_than_it_may(tmp_path: Path) -> None:
    with (
        run_servers(tmp_path, "epsilon", "zeta", max_peer_flows=1) as (epsilon, zeta),
        connect(epsilon) as home,
        connect(zeta) as receiver,
    ):
        home.create_stream("s", "k INT")
        home.share_stream("zeta", "s")
        receiver.add_peer("epsilon", epsilon.url, token=peer_token(epsilon, "zeta"))
        first = receiver.register("SELECT k FROM s WHERE k = 1")
        receiver.wait(f"epsilon/{home.push('s', [{'k': 1}, {'k': 2}])}", timeout=60)
        second = receiver.register("SELECT k FROM s WHERE k = 2")
        (note,) = _until(lambda: [note for note in [second.invoke().note] if note and "refused" in note])
        assert "a peer may have at most 1 flows at a time" in note
        assert (first.invoke().complete, second.invoke().complete) == (True, False)
        (peer,) = home.peers()
        assert (peer["name"], peer["flows"], peer["kept"]) == ("zeta", 1, 0)
        assert peer["refused"] >= 1
        assert peer["bytes"] > 0
        assert home.status()["sent"]["zeta"]["refused"] >= 1
        with epsilon.client() as admin:
            metrics = admin.get("/metrics").text
        assert re.search(r"^tureen_flows_refused [1-9]", metrics, re.MULTILINE)
        assert re.search(r"^tureen_flows_kept 0", metrics, re.MULTILINE)


def test_a_flow_that_is_too_fast_pauses_and_tells_that_it_goes_on(
    servers: list[RunningServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "HEARTBEAT", 0.01)
    frame = FlowFrame(7, 5, pa.record_batch({"v": [1.0]}), current=True)

    async def pauses(seconds: float) -> list[bytes]:
        return [content async for content in flows._pause(seconds, frame, servers[0].service.watcher)]

    assert asyncio.run(pauses(0.0)) == []
    assert asyncio.run(pauses(0.005)) == []
    assert asyncio.run(pauses(0.025)) == [encode_frame(FlowFrame(7, 5, None, current=True))] * 2


def test_requests_of_later_versions_are_understood(servers: list[RunningServer], token: str) -> None:
    with closing(HttpNeighbour(Peer("alpha", servers[0].url, token))) as neighbour:
        assert neighbour.request("PUT", FLOWS_PATH, {"flows": [], "rank": 7}) == {"missing": []}


def info_of(server: RunningServer, token: str | None) -> PeerInfo:
    with closing(HttpNeighbour(Peer("alpha", server.url, token))) as neighbour:
        return neighbour.info()


def test_only_peers_do_what_peers_do(servers: list[RunningServer], beta: tureen.Client, token: str) -> None:
    assert beta
    server = servers[0]
    for name in ("read", "write", "both"):
        assert flow_of(server.url, server.tokens[name], "SELECT v FROM s").status_code == 403
        with pytest.raises(Forbidden):
            info_of(server, server.tokens[name])
    with pytest.raises(Unauthorized):
        info_of(server, None)
    # An admin may call the route, and has no shares.
    assert info_of(server, server.tokens["admin"]).streams == ()
    with tureen.connect(server.url, token) as peer:
        for call in (peer.streams, peer.peers, peer.status, peer.queries, lambda: peer.push("s", rows(0, 1))):
            with pytest.raises(Forbidden):
                call()
    with tureen.connect(server.url, server.tokens["both"]) as analyst:
        with pytest.raises(Forbidden):
            analyst.share_stream("beta", "secret")
        assert not {"peers", "links", "sent"} & analyst.status().keys()


def test_withdrawn_tokens_and_shares_end_flows(
    servers: list[RunningServer], alpha: tureen.Client, beta: tureen.Client
) -> None:
    alpha.create_stream("passing", "k INT")
    alpha.share_stream("beta", "passing")
    query = beta.register("SELECT k FROM passing", name="passing")
    beta.wait(f"alpha/{alpha.push('passing', [{'k': 1}])}", timeout=60)
    assert query.invoke().complete
    alpha.unshare_stream("beta", "passing")
    alpha.push("passing", [{"k": 2}])
    (note,) = _until(lambda: [note for note in [query.invoke().note] if note is not None])
    assert "'alpha' has refused to send it since" in note
    assert query.invoke().table.to_pylist() == [{"k": 1}]
    alpha.share_stream("beta", "passing")
    assert servers
    query.unregister()
    assert _until(lambda: [1] if all(link["stream"] != "passing" for link in beta.status()["links"]) else [])


def test_a_removed_peer_sends_nothing_more(
    servers: list[RunningServer], alpha: tureen.Client, beta: tureen.Client, token: str
) -> None:
    query = beta.register("SELECT v FROM s WHERE v < 0")
    beta.wait(f"alpha/{alpha.push('s', [])}", timeout=60)
    assert query.invoke().complete
    beta.remove_peer("alpha")
    (note,) = _until(lambda: [note for note in [query.invoke().note] if note is not None])
    assert "there is no peer named 'alpha' any more" in note
    query.unregister()
    beta.add_peer("alpha", servers[0].url, token=token)


def test_everything_survives_a_restart(tmp_path: Path) -> None:
    with run_servers(tmp_path, "gamma", "delta") as (gamma, delta), connect(gamma) as home, connect(delta) as receiver:
        home.create_stream("s", "k INT, v DOUBLE, ts TIMESTAMP", time="ts", clock="stream")
        home.share_stream("delta", "s")
        home.push("s", rows(0, 10))
        receiver.add_peer("gamma", gamma.url, token=peer_token(gamma, "delta"))
        receiver.register("SELECT v FROM s WHERE v > 4", name="big")
    with run_servers(tmp_path, "delta") as (delta,), connect(delta) as receiver:
        # Its peer is away: the answer has what is there, and says so.
        assert not receiver.query("big").invoke().complete
        assert receiver.peers()[0]["name"] == "gamma"
        receiver.remove_peer("gamma")
        with run_servers(tmp_path, "gamma") as (gamma,), connect(gamma) as home:
            receiver.add_peer("gamma", gamma.url, token=peer_token(gamma, "delta"))
            position = home.push("s", rows(10, 15))
            answer = receiver.query("big").invoke(wait_for=f"gamma/{position}", timeout=120)
            assert [row["v"] for row in answer] == [float(n) for n in range(5, 15)]
            assert answer.complete


def test_the_page_about_federation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = PAGE.read_text()
    (content,) = re.findall(r"```csv\n(.*?)```", page, re.DOTALL)
    (tmp_path / "trades.csv").write_text(content)
    monkeypatch.chdir(tmp_path)
    with run_servers(tmp_path / "pots", "alpha", "beta") as (alpha, beta):
        values = {"ALPHA": alpha.tokens["admin"], "BETA": beta.tokens["admin"]}
        lines = [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
        commands = [line for line in lines if not line.startswith(("tureen serve", "export ALPHA"))]
        assert len(commands) == len(lines) - 3
        outputs = []
        for line in commands:
            text = line.replace("http://127.0.0.1:7707", alpha.url).replace("http://127.0.0.1:7708", beta.url)
            for name, value in values.items():
                text = text.replace(f"${name}", value)
            if "query invoke" in text:
                with connect(beta) as client, connect(alpha) as home:
                    client.wait(f"alpha/{home.push('trades', [])}", timeout=60)
            if match := re.fullmatch(r"export (\w+)=\$\((.*)\)", text):
                assert run(shlex.split(match[2])[1:]) == 0
                values[match[1]] = capsys.readouterr().out.strip()
            elif text.startswith("export "):
                for name, value in (pair.split("=") for pair in text.removeprefix("export ").split()):
                    monkeypatch.setenv(name, value)
            else:
                assert run(shlex.split(text)[1:]) == 0, text
                outputs.append(capsys.readouterr().out)
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert outputs[-3] == shown
    assert "alpha" in outputs[-2]
