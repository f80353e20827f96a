"""`tureen function …`: create, list, drop, and errors."""

from __future__ import annotations

import itertools

from tests.cli.conftest import Cli

_numbers = itertools.count()


def test_functions_of_the_command_line(cli: Cli, stream: str) -> None:
    name = f"base_of_cli_{next(_numbers)}"
    created = cli("function", "create", name, "posixpath:basename", "--returns", "STRING", "--arguments", "STRING")
    assert (created.code, created.err) == (0, f"function {name} created\n")
    assert cli("push", stream, "-", "--format", "csv", stdin="sym,price,qty,ts\n/a/b,1.5,1,2026-01-01\n").code == 0
    answer = cli("sql", "-c", f"SELECT {name}(sym) AS x FROM {stream}", "--output", "csv")
    assert answer.out.splitlines() == ["x", "b"]
    listed = cli("function", "list", "--output", "json").json()
    assert [(entry["arguments"], entry["path"]) for entry in listed if entry["name"] == name] == [
        ("STRING", "posixpath:basename")
    ]
    again = cli("function", "create", name, "posixpath:dirname", "--returns", "STRING", "--arguments", "STRING")
    assert again.code == 1
    assert f"function '{name}' exists already" in again.err
    query = cli("sql", "-c", f"REGISTER QUERY {name}_q AS SELECT {name}(sym) AS x FROM {stream}")
    assert query.code == 0
    used = cli("function", "drop", name)
    assert used.code == 1
    assert f"it is called by query '{name}_q'" in used.err
    assert cli("sql", "-c", f"DROP QUERY {name}_q").code == 0
    assert cli("function", "drop", name).code == 0
    assert cli("function", "drop", name).code == 1
