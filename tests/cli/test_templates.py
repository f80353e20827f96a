"""Templates on the command line: registered, followed, their queries added and removed."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli, push_rows
from tests.service.running import RunningServer


def test_templates(cli: Cli, served_pot: RunningServer, stream: str, tmp_path: Path) -> None:
    params = tmp_path / "rules.csv"
    params.write_text("sym,least\nA,1\nB,2\n")
    sql = f"SELECT sym, qty FROM {stream} WHERE sym = :sym AND qty > :least"
    created = cli("template", "register", sql, str(params), "--name", f"t_{stream}", "-o", "json").json()
    assert created["queries"] == 2
    typed = cli("template", "register", sql, str(params), "--schema", "sym STRING, least INT")
    assert typed.code == 0
    assert created["id"] in [template["id"] for template in cli("template", "list", "-o", "json").json()]
    since = cli("query", "invoke", f"{created['id']}.0", "-o", "json").json()["position"]
    push_rows(stream, cli, ("B", 1.0, 9))
    assert cli("template", "follow", f"t_{stream}", "--since", since, "-n", "1").out == "#1  sym=B  qty=9\n"
    shown = cli("template", "show", f"t_{stream}", "-o", "json").json()
    assert (shown["id"], shown["queries"], "matching" in shown) == (created["id"], 2, True)
    assert created["id"] in cli("sql", "-c", "SHOW TEMPLATES").out
    assert cli("sql", "-c", f"DESCRIBE t_{stream}", "-o", "json").json()["kind"] == "template"
    changes = cli("template", "follow", f"t_{stream}", "--from-beginning", "--timeout", "0")
    assert changes.out == "#1  sym=B  qty=9\n"
    assert cli("template", "share", f"t_{stream}").out.strip() == created["id"]
    other = served_pot.tokens["other"]
    shared = cli("template", "list", "-o", "json", "--token", other).json()
    assert created["id"] in [template["id"] for template in shared]
    assert cli("template", "share", created["id"], "--stop").code == 0
    assert cli("template", "drop", created["id"]).code == 0
    assert cli("template", "follow", created["id"]).code == 1


def test_template_rows(cli: Cli, stream: str, tmp_path: Path) -> None:
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
    assert (
        cli("template", "remove", name, "--where", "least=0", "--where", "rule=four").err == "2 queries unregistered\n"
    )
    push_rows(stream, cli, ("B", 1.0, 9))
    changes = cli("template", "follow", name, "--since", since, "-n", "2")
    assert changes.out == "two  sym=B  qty=9\nthree  sym=B  qty=9\n"
    change = cli("template", "follow", name, "--since", since, "-n", "1", "-o", "json").json()
    assert (change["label"], change["query"].rpartition(".")[2]) == ("two", "1")
    assert "no query 0" in cli("template", "remove", name, "0").err
    assert cli("template", "remove", name, "--where", "least").code == 2
    assert cli("template", "remove", name).code == 1
