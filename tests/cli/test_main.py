"""Commands as a user runs them, on a real server."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tureen
from tests.cli.conftest import TIME, Cli, push_rows
from tests.service.running import RunningServer


def test_stream_query_push_and_invoke(cli: Cli, stream: str) -> None:
    handle = cli(
        "query", "register", f"SELECT sym, price FROM {stream} WHERE qty > 1", "--name", f"q_{stream}"
    ).out.strip()
    position = push_rows(stream, cli, ("A", 1.5, 1), ("B", 2.5, 2))
    table = cli("query", "invoke", f"q_{stream}", "--wait-for", position)
    assert table.out.splitlines() == [
        "+-----+-------+",
        "| sym | price |",
        "+-----+-------+",
        "| B   |   2.5 |",
        "+-----+-------+",
        "(1 row)",
    ]
    answer = cli("query", "invoke", handle, "-o", "json").json()
    assert answer["rows"] == [{"sym": "B", "price": 2.5}]
    assert answer["columns"] == [{"name": "sym", "type": "STRING"}, {"name": "price", "type": "DOUBLE"}]
    assert {"window", "position", "complete"} <= answer.keys()
    assert cli("query", "invoke", handle, "--output", "csv").out == "sym,price\nB,2.5\n"
    assert cli("query", "invoke", handle, "--now", "2020-01-01T00:00:00", "-o", "csv").code == 0
    assert handle in [query["id"] for query in cli("query", "list", "-o", "json").json()]
    assert cli("query", "explain", handle, "-o", "json").json()["stream"] == stream
    assert stream in cli("stream", "list").out
    assert cli("stream", "rejected", stream, "-o", "json").json() == []
    status = cli("status", "-o", "json").json()
    assert status["streams"][stream]["rows"] == 2
    assert stream in cli("status").out
    assert cli("query", "drop", handle).code == 0
    assert cli("query", "invoke", handle).code == 1
    assert cli("stream", "drop", stream, "-y").code == 0


def test_query_follow(cli: Cli, stream: str) -> None:
    handle = cli("query", "register", f"SELECT sym, qty FROM {stream}").out.strip()
    since = cli("query", "invoke", handle, "-o", "json").json()["position"]
    push_rows(stream, cli, ("A", 1.0, 1), ("B", 2.0, 2))
    both = cli("query", "follow", handle, "--since", since, "--timeout", "0")
    assert both.out.splitlines() == ["sym=A  qty=1", "sym=B  qty=2"]
    first = cli("query", "follow", handle, "--since", since, "-n", "1", "-o", "csv")
    assert first.out == f"query,sym,qty\n{handle},A,1\n"
    after = first.err.strip().rpartition(" ")[2]
    rest = cli("query", "follow", handle, "--since", after, "--timeout", "0", "-o", "json")
    assert rest.json()["row"] == {"sym": "B", "qty": 2}


def test_query_follow_punctuations(cli: Cli, stream: str) -> None:
    handle = cli("query", "register", f"SELECT sym, qty FROM {stream}").out.strip()
    since = cli("query", "invoke", handle, "-o", "json").json()["position"]
    push_rows(stream, cli, ("A", 1.0, 1))
    assert cli("punctuate", stream, "sym = 'A' AND qty <= 7").code == 0
    follow = ("query", "follow", handle, "--since", since, "--timeout", "0", "--punctuations")
    assert cli(*follow).out.splitlines() == ["sym=A  qty=1", 'punctuation  {"sym": "A", "qty": {"high": 7}}']
    lines = cli(*follow, "-o", "json").out.splitlines()
    assert json.loads(lines[1])["punctuation"] == {"sym": "A", "qty": {"high": 7}}
    assert cli(*follow, "-o", "csv").code == 2


def test_query_follow_groups(cli: Cli, stream: str) -> None:
    handle = cli("query", "register", f"SELECT sym, sum(qty) AS n FROM {stream} GROUP BY sym HAVING n < 9").out.strip()
    since = cli("query", "invoke", handle, "-o", "json").json()["position"]
    push_rows(stream, cli, ("A", 1.0, 1))
    follow = ("query", "follow", handle, "--timeout", "0")
    first = cli(*follow, "--since", since)
    assert first.out == "insert  sym=A  n=1\n"
    after = first.err.split()[-1]
    push_rows(stream, cli, ("A", 1.0, 3))
    assert cli(*follow, "--since", after).out == "update  sym=A  n=4\n"
    assert cli(*follow, "--since", after, "--only-turns").out == ""
    push_rows(stream, cli, ("A", 1.0, 7))
    assert cli(*follow, "--since", after, "--only-turns", "-o", "csv").out == f"query,kind,sym,n\n{handle},delete,A,1\n"
    line = cli(*follow, "--since", after, "-o", "json").json()
    assert (line["kind"], line["before"]) == ("delete", {"sym": "A", "n": 1})
    assert cli(*follow, "--hold", "5 seconds").code != 0


def test_query_follow_from_beginning(cli: Cli, stream: str) -> None:
    handle = cli("query", "register", f"SELECT qty FROM {stream}").out.strip()
    push_rows(stream, cli, ("A", 1.0, 1), ("B", 2.0, 2))
    assert cli("query", "follow", handle, "--timeout", "0").out == ""
    assert cli("query", "follow", handle, "--from-beginning", "--timeout", "0").out == "qty=1\nqty=2\n"
    assert cli("query", "follow", handle, "--from-beginning", "--since", "1").code == 2


@pytest.mark.parametrize(
    ("values", "materialize"), [((), "auto"), (("yes",), True), (("no",), False), (("auto",), "auto")]
)
def test_materialize_option(cli: Cli, stream: str, values: tuple[str, ...], materialize: object) -> None:
    options = ("--materialize", *values) if values else ()
    handle = cli("query", "register", f"SELECT qty FROM {stream} WHERE qty > 7", *options).out.strip()
    assert cli("query", "explain", handle, "-o", "json").json()["materialize"] == materialize


def test_printed_times_are_valid_for_now(cli: Cli, stream: str) -> None:
    handle = cli("query", "register", f"SELECT ts FROM {stream} BEGIN NOW - 1 SECOND END NOW").out.strip()
    push_rows(stream, cli, ("A", 1.0, 1))
    answer = cli("query", "invoke", handle, "--now", TIME, "-o", "json").json()
    printed = [answer["window"]["end"], answer["rows"][0]["ts"]]
    printed += cli("query", "invoke", handle, "--now", TIME, "-o", "csv").out.splitlines()[1:]
    printed += [
        cli("query", "invoke", handle, "--now", TIME).out.splitlines()[3].strip("| "),
        "2026-01-01T00:00:00.25",
    ]
    for text in printed:
        assert len(cli("query", "invoke", handle, "--now", text, "-o", "json").json()["rows"]) == 1, text
    assert cli("query", "invoke", handle, "--now", "noon").code == 2


def test_drop_without_terminal_needs_yes(cli: Cli, stream: str) -> None:
    refused = cli("stream", "drop", stream, stdin="y\n")
    assert (refused.code, "-y" in refused.err) == (2, True)
    assert stream in [entry["name"] for entry in cli("stream", "list", "-o", "json").json()]


def test_missing_token_has_hint(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TUREEN_TOKEN")
    for arguments in (("status",), ("token", "list"), ("sql", "-c", "SHOW STREAMS")):
        result = cli(*arguments)
        assert (result.code, "TUREEN_TOKEN" in result.err) == (1, True), arguments


def test_shared_query_is_listed_for_others(cli: Cli, served_pot: RunningServer, stream: str) -> None:
    other = served_pot.tokens["other"]
    name = f"q_{stream}"
    handle = cli("query", "register", f"SELECT qty FROM {stream}", "--name", name).out.strip()
    assert cli("query", "share", name).out.strip() == handle
    queries = {query["id"]: query for query in cli("query", "list", "-o", "json", "--token", other).json()}
    assert (queries[handle]["owner"], queries[handle]["shared"]) == ("local", True)
    assert f"| {handle} | {name}" in cli("sql", "-c", "SHOW QUERIES", "--token", other).out
    assert cli("query", "invoke", handle, "--token", other).code == 0
    # Names are per owner.
    assert cli("query", "invoke", name, "--token", other).code == 1
    assert cli("sql", "-c", f"DESCRIBE QUERY {name}", "--token", other).code == 1
    assert cli("query", "share", handle, "--stop").code == 0
    assert handle not in cli("query", "list", "--token", other).out
    assert cli("query", "share", handle, "--token", other).code == 1


def test_explain_as_table(cli: Cli, stream: str) -> None:
    sql = f"SELECT qty FROM {stream} WHERE price > 100 AND sym IN ('A', 'B') AND ts >= TIMESTAMP '2026-01-01 00:00:00'"
    handle = cli("query", "register", sql).out.strip()
    for result in (cli("query", "explain", handle), cli("sql", "-c", f"EXPLAIN `{handle}`")):
        for part in ("price > 100.0", "sym IN ('A', 'B')", "ts >= TIMESTAMP '2026-01-01 00:00:00'", "access.way"):
            assert part in result.out
        assert not set("{}[]") & set(result.out)


def test_why(cli: Cli, stream: str) -> None:
    handle = cli("query", "register", f"SELECT qty FROM {stream} WHERE price > 100").out.strip()
    rows = "sym,price,qty,ts\nA,99,1,2026-01-01T00:00:00Z\nA,101,2,2026-01-01T00:00:01Z\n"
    assert cli("push", stream, "-", "--format", "csv", stdin=rows).code == 0
    for result in (
        cli("query", "why", handle, "sym = 'A'"),
        cli("sql", "-c", f"EXPLAIN ROW `{handle}` WHERE sym = 'A'"),
    ):
        for part in ("| in_answer |", "price = 99.0", "price > 100.0 is false (price = 99.0)", "| true "):
            assert part in result.out, result.err
    limited = cli("query", "why", handle, "sym = 'A'", "--limit", "1")
    assert limited.out.splitlines()[-1] == "the latest 1 of 2 tuples that satisfy the condition"
    body = cli("query", "why", handle, "qty = 1", "--now", "2026-01-01T00:00:05Z", "-o", "json").json()
    assert (body["total"], body["tuples"][0]["in_answer"], body["types"]["price"]) == (1, False, "DOUBLE")
    assert cli("query", "why", handle, "qty = 1", "-o", "csv").out.splitlines()[0] == "input,tuple,in_answer,reasons"
    failed = cli("query", "why", handle, "qty = 1 AND prize > 2")
    assert failed.code == 1
    assert failed.err.splitlines()[1:3] == ["  qty = 1 AND prize > 2", "              ^"]
    assert cli("query", "why", handle, "qty = 1", "--limit", "0").code == 2


def test_admin_manages_queries_of_others(cli: Cli, stream: str, served_pot: RunningServer) -> None:
    other = served_pot.soup.acting_for("somebody else")
    query = other.register(f"SELECT qty FROM {stream}", name=f"other's query of {stream}")
    rules = other.register_many(f"SELECT qty FROM {stream} WHERE qty = :n", [{"n": 1}])
    for group, handle in (("query", query.id), ("template", rules.id)):
        assert handle not in cli(group, "list", "-o", "json").out
        for owner in ("*", "somebody else"):
            entries = cli(group, "list", "--owner", owner, "-o", "json").json()
            assert {entry["id"]: entry["owner"] for entry in entries}[handle] == "somebody else"
    assert cli("query", "explain", query.id, "-o", "json").json()["stream"] == stream
    assert cli("query", "drop", query.id).code == cli("template", "drop", rules.id).code == 0
    assert query.id not in cli("query", "list", "--owner", "*", "-o", "json").out


def test_tables(cli: Cli, stream: str, tmp_path: Path) -> None:
    name = f"t_{stream}"
    (tmp_path / "a.csv").write_text('sym,text\nA,"x, y"\nB,\nC,""\n')
    (tmp_path / "b.json").write_text('[{"sym": "D", "text": "z"}]')
    assert cli("table", "create", name, str(tmp_path / "a.csv"), "--schema", "sym STRING, text STRING").code == 0
    assert cli("table", "show", name, "-o", "csv").out == (tmp_path / "a.csv").read_text()
    assert cli("table", "replace", name, str(tmp_path / "b.json")).code == 0
    assert cli("table", "show", name, "-o", "json").json() == [{"sym": "D", "text": "z"}]
    assert name in cli("table", "list").out
    assert cli("table", "drop", name).code == 2, "there is no terminal to confirm"
    assert cli("table", "drop", name, "-y").code == 0
    assert cli("table", "create", "x", str(tmp_path / "a.csv")).code == 2


def test_error_points_into_sql(cli: Cli, stream: str) -> None:
    result = cli("query", "register", f"SELECT sym,\n  prize FROM {stream}")
    assert (result.code, result.out) == (1, "")
    assert result.err.splitlines() == [
        "error: no column 'prize'",
        f"  line 2:   prize FROM {stream}",
        "            ^",
        "hint: did you mean 'price'?",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("query", "invoke", "nothing"), 1, "no query"),
        (("query", "register"), 2, "either the SQL or --file"),
        (("query", "brew"), 2, "No such command"),
        (("stream", "create", "x"), 2, "--query"),
        (("status", "--url", "http://x", "--pot", "y"), 2, "exclude each other"),
        (("status", "-o", "yaml"), 2, "yaml"),
        (("status", "--url", "http://127.0.0.1:1"), 1, "no answer"),
        (("status", "--token", "wrong"), 1, "token"),
        (("push", "nowhere", "no.csv"), 1, "no"),
        (("push", "nowhere", "-"), 2, "unknown format of standard input"),
        (("serve", "--port", "99999"), 2, "port must be"),
        (("serve", "--host", "0.0.0.0", "--no-auth"), 2, "loopback"),
        (("token", "create", "x", "--scope", "emperor"), 1, "shape|scope"),
    ],
)
def test_exit_codes(cli: Cli, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = cli(*arguments)
    assert (result.code, result.out) == (code, "")
    assert message.split("|")[0] in result.err or message.split("|")[-1] in result.err


def test_tokens_over_http_and_on_pot(cli: Cli, served_pot: RunningServer) -> None:
    pot = str(served_pot.soup.path)
    for target in ((), ("--pot", pot)):
        created = cli("token", "create", "ana", "--scope", "read", "--scope", "write", "--expires-in", "1 day", *target)
        token = created.out.strip()
        entries = cli("token", "list", "-o", "json", *target).json()
        assert [entry["scopes"] for entry in entries if entry["id"] in token] == ["read, write"]
        assert cli("query", "list", "--token", token, "-o", "json").json() == []
        token_id = next(entry["id"] for entry in entries if entry["id"] in token)
        revoked = cli("token", "revoke", token_id, *target)
        assert (revoked.code, revoked.err) == (0, f"token {token_id} revoked\n")
        assert cli("query", "list", "--token", token).code == 1
        assert cli("token", "revoke", token_id, *target).code == 1


def test_local_pot_is_read_while_served(cli: Cli, served_pot: RunningServer, stream: str) -> None:
    push_rows(stream, cli, ("A", 1.0, 1))
    pot = str(served_pot.soup.path)
    handle = cli("query", "register", f"SELECT sym FROM {stream}").out.strip()
    # Another process may read the pot; a write fails and names the process that holds it.
    assert cli("query", "invoke", handle, "--pot", pot, "-o", "csv").out == "sym\nA\n"
    refused = cli("stream", "create", "x", "n INT", "--pot", pot)
    assert (refused.code, refused.out) == (1, "")
    assert "process" in refused.err


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize(
    "arguments",
    [("status",), ("stream", "list"), ("query", "list"), ("sql", "-c", "SHOW STREAMS"), ("token", "list")],
    ids=" ".join,
)
def test_directory_without_pot_fails(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], exists: bool) -> None:
    directory = tmp_path if exists else tmp_path / "nowhere"
    result = cli(*arguments, "--pot", str(directory))
    message = "there is no pot in" if exists else "there is no directory"
    assert (result.code, result.out) == (1, "")
    assert f"{message} '{directory}'" in result.err
    assert list(tmp_path.iterdir()) == []


def test_local_pot_without_server(tmp_path: Path) -> None:
    env = {**os.environ, "TUREEN_POT": str(tmp_path / "pot")}
    env.pop("TUREEN_URL", None)

    def run_command(*arguments: str) -> str:
        command = [sys.executable, "-m", "tureen.cli.main", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        # The process exits cleanly although Spark is still starting in a process of its own.
        assert (result.returncode, "Fatal" in result.stderr) == (0, False), result.stderr
        return result.stdout

    run_command("stream", "create", "s", "n INT")
    handle = run_command("query", "register", "SELECT n FROM s WHERE n > 1").strip()
    assert handle in run_command("query", "list", "-o", "csv")
    assert run_command("query", "invoke", handle, "-o", "csv") == "n\n"


def test_csv_output_is_valid(cli: Cli, stream: str) -> None:
    handle = cli("query", "register", f"SELECT * FROM {stream}").out.strip()
    push_rows(stream, cli, ('A, \\"B\\"', 1.0, 1))
    rows = list(csv.DictReader(io.StringIO(cli("query", "invoke", handle, "-o", "csv").out)))
    assert rows == [{"sym": 'A, "B"', "price": "1.0", "qty": "1", "ts": "2026-01-01 00:00:00Z"}]


def test_help_does_not_import_heavy_packages() -> None:
    code = (
        "import sys\nfrom tureen.cli.main import run\n"
        "codes = [run(['--help']), run(['query', 'invoke', '--help']), run(['query', 'brew'])]\n"
        "print('::', *sys.modules, *codes)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = result.stdout.rpartition("::")[2].split()
    heavy = {"numba", "duckdb", "pyspark", "pyarrow", "sqlalchemy", "sqlglot", "pandas", "fastapi", "httpx", "numpy"}
    assert heavy & set(loaded) == set()
    assert loaded[-3:] == ["0", "0", "2"]


def test_closed_pipe_has_no_traceback(served_pot: RunningServer) -> None:
    env = {**os.environ, "TUREEN_URL": served_pot.url, "TUREEN_TOKEN": served_pot.tokens["admin"]}
    command = f"{sys.executable} -m tureen.cli.main stream list | head -1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env, check=True)
    assert (result.stdout.count("\n"), "Traceback" in result.stderr) == (1, False)


def test_version(cli: Cli) -> None:
    assert cli("--version").out.startswith("tureen ")


def test_pushed_rows_are_visible_to_client(served_pot: RunningServer, cli: Cli, stream: str) -> None:
    push_rows(stream, cli, ("A", 1.0, 1))
    with tureen.connect(served_pot.url, served_pot.tokens["admin"]) as soup:
        assert soup.answer_once(f"SELECT qty FROM {stream}").table.to_pylist() == [{"qty": 1}]
