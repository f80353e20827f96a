"""Pushes of files in every format, in chunks that can be retried."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.cli.conftest import Cli
from tests.service.running import RunningServer

ROWS: list[dict[str, Any]] = [
    {"sym": f"s{number}", "price": number / 2, "qty": number, "ts": f"2026-01-01T00:00:{number:02}Z"}
    for number in range(10)
]


def _table() -> pa.Table:
    return pa.Table.from_pylist(ROWS).set_column(
        3, "ts", pa.array([row["ts"] for row in ROWS]).cast(pa.timestamp("us", "UTC"))
    )


def _csv(path: Path) -> None:
    path.write_text("sym,price,qty,ts\n" + "".join(",".join(map(str, row.values())) + "\n" for row in ROWS))


def _json(path: Path) -> None:
    path.write_text(pa_json(ROWS))


def pa_json(rows: list[dict[str, Any]]) -> str:
    return "[" + ",\n".join(str(row).replace("'", '"') for row in rows) + "]"


def _lines(path: Path) -> None:
    path.write_text("\n".join(str(row).replace("'", '"') for row in ROWS))


def _arrow_file(path: Path) -> None:
    with pa.ipc.new_file(str(path), _table().schema) as writer:
        writer.write_table(_table(), max_chunksize=4)


def _arrow_stream(path: Path) -> None:
    with pa.ipc.new_stream(str(path), _table().schema) as writer:
        writer.write_table(_table())


def _parquet(path: Path) -> None:
    parquet.write_table(_table(), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.csv", _csv),
        ("a.json", _json),
        ("a.ndjson", _lines),
        ("a.jsonl", _lines),
        ("a.parquet", _parquet),
        ("a.arrow", _arrow_file),
        ("a.arrows", _arrow_stream),
    ],
)
def test_every_format_is_pushed_once(
    cli: Cli, stream: str, tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    path = tmp_path / name
    write(path)
    query = cli("query", "register", f"SELECT * FROM {stream}").out.strip()
    for added in (10, 0):
        # The second push adds nothing: its chunks have the same keys.
        result = cli("push", stream, str(path), "--chunk", "3", "--wait", "-o", "json")
        assert result.code == 0, result.err
        assert (result.json()["rows"], result.json()["added"]) == (10, added)
    rows = cli("query", "invoke", query, "-o", "json").json()["rows"]
    assert [row["qty"] for row in rows] == list(range(10))
    assert rows[9]["ts"] == "2026-01-01T00:00:09+00:00"


def test_failed_push_is_repeated_with_fixed_file(cli: Cli, stream: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    _csv(path)
    good = path.read_text()
    path.write_text(good.replace("3.0,6", "3.0,many"))
    query = cli("query", "register", f"SELECT qty FROM {stream}").out.strip()
    failed = cli("push", stream, str(path), "--chunk", "4")
    assert failed.code == 1
    assert failed.err.splitlines() == [
        "error: 'a.csv' line 8: column 'qty' is INT, not 'many'",
        "rows 1 to 4 of the file were added, and none from row 5 on",
        "fix the file if necessary and repeat the command: rows that were added are not added again",
    ]
    path.write_text(good)
    fixed = cli("push", stream, str(path), "--chunk", "4", "--wait")
    assert fixed.err.startswith(f"6 rows pushed to {stream} in ")
    assert fixed.err.endswith("; 4 rows were pushed before\n")
    assert cli("query", "invoke", query, "-o", "csv").out == "qty\n" + "".join(f"{number}\n" for number in range(10))
    again = cli("push", stream, str(path), "--chunk", "4")
    assert again.err.startswith("no rows added: 10 rows of ")
    first = cli("push", stream, "-", "--format", "csv", stdin=good.replace("0.0,0", "0.0,none"))
    assert first.err.splitlines()[1] == "no rows of the file were added"


def test_csv_with_write_only_token(cli: Cli, served_pot: RunningServer, stream: str, tmp_path: Path) -> None:
    path, token = tmp_path / "a.csv", ("--token", served_pot.tokens["write"])
    _csv(path)
    good = path.read_text()
    query = cli("query", "register", f"SELECT qty FROM {stream}").out.strip()
    path.write_text(good.replace("3.0,6", "3.0,many"))
    failed = cli("push", stream, str(path), "--chunk", "4", *token)
    assert failed.err.splitlines()[:2] == [
        "error: 'a.csv' line 8: column 'qty' is INT, not 'many'",
        "rows 1 to 4 of the file were added, and none from row 5 on",
    ]
    path.write_text(good)
    result = cli("push", stream, str(path), "--chunk", "4", "--wait", "-o", "json", *token)
    assert (result.code, result.json()["rows"], result.json()["added"]) == (0, 10, 6), result.err
    assert cli("query", "invoke", query, "-o", "csv").out == "qty\n" + "".join(f"{number}\n" for number in range(10))
    assert cli("push", "nowhere", str(path), *token).code == 1


def test_file_is_added_again_with_again_or_new_content(cli: Cli, stream: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    _csv(path)
    query = cli("query", "register", f"SELECT count(*) AS n FROM {stream}").out.strip()

    def count() -> int:
        return int(cli("query", "invoke", query, "-o", "json").json()["rows"][0]["n"])

    cli("push", stream, str(path), "--wait")
    cli("push", stream, str(path), "--wait", "--again")
    assert count() == 20
    os.utime(path, ns=(1, 1))
    cli("push", stream, str(path), "--wait")
    assert count() == 20, "the rows are unchanged"
    path.write_text(path.read_text().replace("s9", "s10"))
    cli("push", stream, str(path), "--wait")
    assert count() == 30
    cli("push", stream, str(path), "--wait", "--key", "my-key")
    cli("push", stream, str(path), "--wait", "--key", "my-key")
    assert count() == 40
    path.write_text(path.read_text().replace("s8", "s11"))
    refused = cli("push", stream, str(path), "--key", "my-key")
    assert (refused.code, "used with other rows" in refused.err) == (1, True)


def test_standard_input_gets_new_keys(cli: Cli, stream: str) -> None:
    text = "sym,qty,ts\nA,1,2026-01-01 00:00:00\n"
    for _ in range(2):
        assert cli("push", stream, "-", "--format", "csv", "--wait", stdin=text).code == 0
    query = cli("query", "register", f"SELECT sym FROM {stream}").out.strip()
    assert cli("query", "invoke", query, "-o", "csv").out == "sym\nA\nA\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sym,qty,ts\n" + "A,1,2026-01-01\n" * 5 + '"B\nC",x,2026-01-01\n', "line 7: column 'qty' is INT, not 'x'"),
        ("sym,qty,ts\n" + "A,1,2026-01-01\n" * 5 + "A,1\n", "line 7: 2 fields"),
        ("sym,prize\nA,1\n", "did you mean 'price'?"),
        ("sym,qty,ts\nA,1,\n", "ts"),
        ("", "is empty"),
    ],
)
def test_csv_error_has_its_line(cli: Cli, stream: str, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    result = cli("push", stream, str(path), "--chunk", "2")
    assert result.code == 1
    assert message in result.err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "[{", "cannot be read"),
        ("a.ndjson", '{"sym": "A"}\n{\n', "line 2 is not valid JSON"),
        ("a.parquet", "text", "cannot be read"),
        ("a.arrow", "text", "cannot be read"),
    ],
)
def test_unreadable_file_fails(cli: Cli, stream: str, tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    result = cli("push", stream, str(tmp_path / name))
    assert result.code == 1
    assert message in result.err


def test_unknown_format_is_usage_error(cli: Cli, stream: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("sym\n")
    result = cli("push", stream, str(tmp_path / "a.txt"))
    assert result.code == 2
    assert "--format" in result.err


def test_punctuations_in_a_file_and_by_a_command(cli: Cli, stream: str, tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    lines = [*map(str, ROWS[:2]), "{'$punctuation': {'sym': 's0'}}", str(ROWS[0]), str(ROWS[2])]
    path.write_text("\n".join(lines).replace("'", '"'))
    for added in (3, 0):
        pushed = cli("push", stream, str(path), "--chunk", "1", "--key", f"{stream}-file", "-o", "json")
        assert pushed.code == 0, pushed.err
        assert {**pushed.json(), "position": ""} == {
            "stream": stream,
            "rows": 4,
            "added": added,
            "rejected": 1,
            "position": "",
        }
    punctuated = cli("punctuate", stream, "qty BETWEEN 3 AND 4")
    assert (punctuated.code, len(punctuated.out.splitlines())) == (0, 1)
    again = cli("push", stream, "-", "--format", "json", stdin=pa_json(ROWS[3:]))
    assert again.err.startswith(f"5 rows pushed to {stream} in ")
    assert again.err.endswith(f"; 2 rows rejected: see tureen stream rejected {stream}\n")
    assert [row["row"]["qty"] for row in cli("stream", "rejected", stream, "-o", "json").json()] == [0, 3, 4]
    wrong = cli("punctuate", stream, "quantity = 3")
    assert (wrong.code, wrong.err.splitlines()[0]) == (
        1,
        "error: unknown column 'quantity' in a punctuation (line 1, column 1)",
    )
