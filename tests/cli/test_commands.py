"""Commands as a user gives them, on a real server."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tureen
from tests.cli.conftest import Cli
from tests.service.running import Running

TIMES = "2026-01-01T00:00:00Z"


def lines(stream: str, cli: Cli, *rows: tuple[str, float, int]) -> str:
    """Push rows as lines of JSON and wait for them; gives the position."""
    text = "".join(f'{{"sym":"{a}","price":{b},"qty":{c},"ts":"{TIMES}"}}\n' for a, b, c in rows)
    done = cli("push", stream, "-", "--format", "ndjson", "--wait", stdin=text)
    assert done.code == 0, done.err
    return done.out.strip()


def test_from_a_stream_to_an_answer(cli: Cli, stream: str) -> None:
    handle = cli(
        "query", "register", f"SELECT sym, price FROM {stream} WHERE qty > 1", "--name", f"q_{stream}"
    ).out.strip()
    at = lines(stream, cli, ("A", 1.5, 1), ("B", 2.5, 2))
    table = cli("query", "invoke", f"q_{stream}", "--wait-for", at)
    assert table.out.splitlines() == [
        "+-----+-------+",
        "| sym | price |",
        "+-----+-------+",
        "| B   |   2.5 |",
        "+-----+-------+",
        "(1 row)",
    ]
    told = cli("query", "invoke", handle, "-o", "json").json()
    assert told["rows"] == [{"sym": "B", "price": 2.5}]
    assert told["columns"] == [{"name": "sym", "type": "STRING"}, {"name": "price", "type": "DOUBLE"}]
    assert {"window", "position", "complete"} <= told.keys()
    assert cli("query", "invoke", handle, "--output", "csv").out == "sym,price\nB,2.5\n"
    assert cli("query", "invoke", handle, "--now", "2020-01-01T00:00:00", "-o", "csv").code == 0
    assert handle in [one["id"] for one in cli("query", "list", "-o", "json").json()]
    assert cli("query", "explain", handle, "-o", "json").json()["stream"] == stream
    assert stream in cli("stream", "list").out
    assert cli("stream", "rejected", stream, "-o", "json").json() == []
    status = cli("status", "-o", "json").json()
    assert status["streams"][stream]["rows"] == 2
    assert stream in cli("status").out
    assert cli("query", "drop", handle).code == 0
    assert cli("query", "invoke", handle).code == 1
    assert cli("stream", "drop", stream, "-y").code == 0


def test_followed(cli: Cli, stream: str) -> None:
    handle = cli("query", "register", f"SELECT sym, qty FROM {stream}").out.strip()
    since = cli("query", "invoke", handle, "-o", "json").json()["position"]
    lines(stream, cli, ("A", 1.0, 1), ("B", 2.0, 2))
    both = cli("query", "follow", handle, "--since", since, "--timeout", "0")
    assert both.out.splitlines() == ["sym=A  qty=1", "sym=B  qty=2"]
    one = cli("query", "follow", handle, "--since", since, "-n", "1", "-o", "csv")
    assert one.out == f"query,sym,qty\n{handle},A,1\n"
    after = one.err.strip().rpartition(" ")[2]
    rest = cli("query", "follow", handle, "--since", after, "--timeout", "0", "-o", "json")
    assert rest.json()["row"] == {"sym": "B", "qty": 2}


def test_followed_from_the_beginning(cli: Cli, stream: str) -> None:
    handle = cli("query", "register", f"SELECT qty FROM {stream}").out.strip()
    lines(stream, cli, ("A", 1.0, 1), ("B", 2.0, 2))
    assert cli("query", "follow", handle, "--timeout", "0").out == ""
    assert cli("query", "follow", handle, "--from-beginning", "--timeout", "0").out == "qty=1\nqty=2\n"
    assert cli("query", "follow", handle, "--from-beginning", "--since", "1").code == 2


@pytest.mark.parametrize(("given", "kept"), [((), "auto"), (("yes",), True), (("no",), False), (("auto",), "auto")])
def test_results_are_kept_ready_as_it_was_asked_for(
    cli: Cli, stream: str, given: tuple[str, ...], kept: object
) -> None:
    options = ("--materialize", *given) if given else ()
    handle = cli("query", "register", f"SELECT qty FROM {stream} WHERE qty > 7", *options).out.strip()
    assert cli("query", "explain", handle, "-o", "json").json()["materialize"] == kept


def test_now_is_taken_as_it_is_printed(cli: Cli, stream: str) -> None:
    handle = cli("query", "register", f"SELECT ts FROM {stream} BEGIN NOW - 1 SECOND END NOW").out.strip()
    lines(stream, cli, ("A", 1.0, 1))
    answer = cli("query", "invoke", handle, "--now", TIMES, "-o", "json").json()
    printed = [answer["window"]["end"], answer["rows"][0]["ts"]]
    printed += cli("query", "invoke", handle, "--now", TIMES, "-o", "csv").out.splitlines()[1:]
    printed += [
        cli("query", "invoke", handle, "--now", TIMES).out.splitlines()[3].strip("| "),
        "2026-01-01T00:00:00.25",
    ]
    for text in printed:
        assert len(cli("query", "invoke", handle, "--now", text, "-o", "json").json()["rows"]) == 1, text
    assert cli("query", "invoke", handle, "--now", "noon").code == 2


def test_a_stream_is_not_dropped_where_nobody_can_answer(cli: Cli, stream: str) -> None:
    refused = cli("stream", "drop", stream, stdin="y\n")
    assert (refused.code, "-y" in refused.err) == (2, True)
    assert stream in [one["name"] for one in cli("stream", "list", "-o", "json").json()]


def test_whoever_gives_no_token_is_told_how(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TUREEN_TOKEN")
    for words in (("status",), ("token", "list"), ("sql", "-c", "SHOW STREAMS")):
        done = cli(*words)
        assert (done.code, "TUREEN_TOKEN" in done.err) == (1, True), words


def test_a_query_is_shared_and_listed_by_others(cli: Cli, served_pot: Running, stream: str) -> None:
    other = served_pot.tokens["other"]
    name = f"q_{stream}"
    handle = cli("query", "register", f"SELECT qty FROM {stream}", "--name", name).out.strip()
    assert cli("query", "share", name).out.strip() == handle
    listed = {one["id"]: one for one in cli("query", "list", "-o", "json", "--token", other).json()}
    assert (listed[handle]["owner"], listed[handle]["shared"]) == ("local", True)
    assert f"| {handle} | {name}" in cli("sql", "-c", "SHOW QUERIES", "--token", other).out
    assert cli("query", "invoke", handle, "--token", other).code == 0
    # A name is its owner's own.
    assert cli("query", "invoke", name, "--token", other).code == 1
    assert cli("sql", "-c", f"DESCRIBE QUERY {name}", "--token", other).code == 1
    assert cli("query", "share", handle, "--stop").code == 0
    assert handle not in cli("query", "list", "--token", other).out
    assert cli("query", "share", handle, "--token", other).code == 1


def test_explained_for_people(cli: Cli, stream: str) -> None:
    sql = f"SELECT qty FROM {stream} WHERE price > 100 AND sym IN ('A', 'B') AND ts >= TIMESTAMP '2026-01-01 00:00:00'"
    handle = cli("query", "register", sql).out.strip()
    for done in (cli("query", "explain", handle), cli("sql", "-c", f"EXPLAIN `{handle}`")):
        for part in ("price > 100.0", "sym IN ('A', 'B')", "ts >= TIMESTAMP '2026-01-01 00:00:00'", "access.way"):
            assert part in done.out
        assert not set("{}[]") & set(done.out)


def test_templates(cli: Cli, served_pot: Running, stream: str, tmp_path: Path) -> None:
    params = tmp_path / "rules.csv"
    params.write_text("sym,least\nA,1\nB,2\n")
    sql = f"SELECT sym, qty FROM {stream} WHERE sym = :sym AND qty > :least"
    made = cli("template", "register", sql, str(params), "--name", f"t_{stream}", "-o", "json").json()
    assert made["queries"] == 2
    typed = cli("template", "register", sql, str(params), "--schema", "sym STRING, least INT")
    assert typed.code == 0
    assert made["id"] in [one["id"] for one in cli("template", "list", "-o", "json").json()]
    since = cli("query", "invoke", f"{made['id']}.0", "-o", "json").json()["position"]
    lines(stream, cli, ("B", 1.0, 9))
    assert cli("template", "follow", f"t_{stream}", "--since", since, "-n", "1").out == "#1  sym=B  qty=9\n"
    shown = cli("template", "show", f"t_{stream}", "-o", "json").json()
    assert (shown["id"], shown["queries"], "matching" in shown) == (made["id"], 2, True)
    assert made["id"] in cli("sql", "-c", "SHOW TEMPLATES").out
    assert cli("sql", "-c", f"DESCRIBE t_{stream}", "-o", "json").json()["kind"] == "template"
    everything = cli("template", "follow", f"t_{stream}", "--from-beginning", "--timeout", "0")
    assert everything.out == "#1  sym=B  qty=9\n"
    assert cli("template", "share", f"t_{stream}").out.strip() == made["id"]
    other = served_pot.tokens["other"]
    assert made["id"] in [one["id"] for one in cli("template", "list", "-o", "json", "--token", other).json()]
    assert cli("template", "share", made["id"], "--stop").code == 0
    assert cli("template", "drop", made["id"]).code == 0
    assert cli("template", "follow", made["id"]).code == 1


def test_rows_of_templates(cli: Cli, stream: str, tmp_path: Path) -> None:
    first, more = tmp_path / "rules.csv", tmp_path / "more.csv"
    first.write_text("sym,least,rule\nA,1,one\nB,2,two\n")
    more.write_text("sym,least,rule\nB,3,three\nC,0,four\n")
    sql = f"SELECT sym, qty FROM {stream} WHERE sym = :sym AND qty > :least"
    name = f"t_{stream}"
    assert cli("template", "register", sql, str(first), "--name", name, "--label", "rule").code == 0
    since = cli("query", "invoke", f"{name}.0", "-o", "json").json()["position"]
    assert cli("template", "add", name, str(more)).out == "2 to 3\n"
    assert cli("template", "add", name, str(more), "-o", "json").json() == {"first": 4, "rows": 2}
    assert cli("template", "remove", name, "0", "4", "-o", "json").json() == {"removed": 2}
    assert cli("template", "remove", name, "--where", "least=0", "--where", "rule=four").err == "2 queries removed\n"
    lines(stream, cli, ("B", 1.0, 9))
    followed = cli("template", "follow", name, "--since", since, "-n", "2")
    assert followed.out == "two  sym=B  qty=9\nthree  sym=B  qty=9\n"
    told = cli("template", "follow", name, "--since", since, "-n", "1", "-o", "json").json()
    assert (told["label"], told["query"].rpartition(".")[2]) == ("two", "1")
    assert "no query 0" in cli("template", "remove", name, "0").err
    assert cli("template", "remove", name, "--where", "least").code == 2
    assert cli("template", "remove", name).code == 1


def test_an_admin_lists_explains_and_drops_what_others_have(cli: Cli, stream: str, served_pot: Running) -> None:
    theirs = served_pot.soup.acting_for("somebody else")
    query = theirs.register(f"SELECT qty FROM {stream}", name=f"theirs of {stream}")
    rules = theirs.register_many(f"SELECT qty FROM {stream} WHERE qty = :n", [{"n": 1}])
    for what, handle in (("query", query.id), ("template", rules.id)):
        assert handle not in cli(what, "list", "-o", "json").out
        for owner in ("*", "somebody else"):
            listed = {one["id"]: one["owner"] for one in cli(what, "list", "--owner", owner, "-o", "json").json()}
            assert listed[handle] == "somebody else"
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
    assert cli("table", "drop", name).code == 2, "nobody can answer whether to drop it"
    assert cli("table", "drop", name, "-y").code == 0
    assert cli("table", "create", "x", str(tmp_path / "a.csv")).code == 2


def test_an_error_points_into_the_text(cli: Cli, stream: str) -> None:
    done = cli("query", "register", f"SELECT sym,\n  prize FROM {stream}")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "error: no column 'prize'",
        f"  line 2:   prize FROM {stream}",
        "            ^",
        "hint: did you mean 'price'?",
    ]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("query", "invoke", "nothing"), 1, "no query"),
        (("query", "register"), 2, "give the SQL"),
        (("query", "brew"), 2, "No such command"),
        (("stream", "create", "x"), 2, "Missing argument"),
        (("status", "--url", "http://x", "--pot", "y"), 2, "not on both"),
        (("status", "-o", "xml"), 2, "xml"),
        (("status", "--url", "http://127.0.0.1:1"), 1, "no answer"),
        (("status", "--token", "wrong"), 1, "token"),
        (("push", "nowhere", "no.csv"), 1, "no"),
        (("push", "nowhere", "-"), 2, "does not say its format"),
        (("serve", "--port", "99999"), 2, "no port"),
        (("serve", "--host", "0.0.0.0", "--no-auth"), 2, "loopback"),
        (("token", "create", "x", "--scope", "emperor"), 1, "shape|scope"),
    ],
)
def test_exit_codes(cli: Cli, words: tuple[str, ...], code: int, says: str) -> None:
    done = cli(*words)
    assert (done.code, done.out) == (code, "")
    assert says.split("|")[0] in done.err or says.split("|")[-1] in done.err


def test_tokens_over_http_and_on_the_pot(cli: Cli, served_pot: Running) -> None:
    pot = str(served_pot.soup.path)
    for where in ((), ("--pot", pot)):
        made = cli("token", "create", "ana", "--scope", "read", "--scope", "write", "--expires-in", "1 day", *where)
        token = made.out.strip()
        listed = cli("token", "list", "-o", "json", *where).json()
        assert [one["scopes"] for one in listed if one["id"] in token] == ["read, write"]
        assert cli("query", "list", "--token", token, "-o", "json").json() == []
        number = next(one["id"] for one in listed if one["id"] in token)
        assert cli("token", "revoke", number, *where).code == 0
        assert cli("query", "list", "--token", token).code == 1
        assert cli("token", "revoke", number, *where).code == 1


def test_on_a_pot_of_this_machine(cli: Cli, served_pot: Running, stream: str) -> None:
    lines(stream, cli, ("A", 1.0, 1))
    pot = str(served_pot.soup.path)
    handle = cli("query", "register", f"SELECT sym FROM {stream}").out.strip()
    # Whoever does not hold the pot may read it, and is told who does when it writes.
    assert cli("query", "invoke", handle, "--pot", pot, "-o", "csv").out == "sym\nA\n"
    refused = cli("stream", "create", "x", "n INT", "--pot", pot)
    assert (refused.code, refused.out) == (1, "")
    assert "process" in refused.err


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(
    "words",
    [("status",), ("stream", "list"), ("query", "list"), ("sql", "-c", "SHOW STREAMS"), ("token", "list")],
    ids=" ".join,
)
def test_a_directory_that_is_no_pot(cli: Cli, tmp_path: Path, words: tuple[str, ...], there: bool) -> None:
    directory = tmp_path if there else tmp_path / "nowhere"
    done = cli(*words, "--pot", str(directory))
    says = "there is no pot in" if there else "there is no directory"
    assert (done.code, done.out) == (1, "")
    assert f"{says} '{directory}'" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_pot_without_a_server_from_beginning_to_end(tmp_path: Path) -> None:
    env = {**os.environ, "TUREEN_POT": str(tmp_path / "pot")}
    env.pop("TUREEN_URL", None)

    def tureen_(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "tureen.cli.main", *words], capture_output=True, text=True, env=env, check=False
        )
        # It ends well although Spark is still starting, in a process of its own.
        assert (done.returncode, "Fatal" in done.stderr) == (0, False), done.stderr
        return done.stdout

    tureen_("stream", "create", "s", "n INT")
    handle = tureen_("query", "register", "SELECT n FROM s WHERE n > 1").strip()
    assert handle in tureen_("query", "list", "-o", "csv")
    assert tureen_("query", "invoke", handle, "-o", "csv") == "n\n"


def test_csv_can_be_read_back(cli: Cli, stream: str) -> None:
    handle = cli("query", "register", f"SELECT * FROM {stream}").out.strip()
    lines(stream, cli, ('A, \\"B\\"', 1.0, 1))
    found = list(csv.DictReader(io.StringIO(cli("query", "invoke", handle, "-o", "csv").out)))
    assert found == [{"sym": 'A, "B"', "price": "1.0", "qty": "1", "ts": "2026-01-01 00:00:00Z"}]


def test_help_and_usage_errors_come_without_what_is_heavy() -> None:
    code = (
        "import sys\nfrom tureen.cli.main import run\n"
        "codes = [run(['--help']), run(['query', 'invoke', '--help']), run(['query', 'brew'])]\n"
        "print('::', *sys.modules, *codes)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.rpartition("::")[2].split()
    heavy = {"numba", "duckdb", "pyspark", "pyarrow", "sqlalchemy", "sqlglot", "pandas", "fastapi", "httpx", "numpy"}
    assert heavy & set(loaded) == set()
    assert loaded[-3:] == ["0", "0", "2"]


def test_output_into_a_pipe_that_closes(served_pot: Running) -> None:
    env = {**os.environ, "TUREEN_URL": served_pot.url, "TUREEN_TOKEN": served_pot.tokens["admin"]}
    command = f"{sys.executable} -m tureen.cli.main stream list | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env, check=True)
    assert (done.stdout.count("\n"), "Traceback" in done.stderr) == (1, False)


def test_the_version(cli: Cli) -> None:
    assert cli("--version").out.startswith("tureen ")


def test_a_write_is_seen_by_the_client(served_pot: Running, cli: Cli, stream: str) -> None:
    lines(stream, cli, ("A", 1.0, 1))
    with tureen.connect(served_pot.url, served_pot.tokens["admin"]) as soup:
        assert soup.answer_once(f"SELECT qty FROM {stream}").table.to_pylist() == [{"qty": 1}]
