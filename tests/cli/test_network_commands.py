"""`tureen network simulate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tureen.cli.main import run

SMALL = ["network", "simulate", "--queries", "6", "--photons", "500"]


def test_every_strategy_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "-o", "json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [result["strategy"] for result in results] == ["data-shipping", "query-shipping", "sharing"]
    for result in results:
        assert len(result["links"]) == 24
        assert len(result["peers"]) == 16
        assert result["bytes_per_second"] == pytest.approx(sum(result["links"].values()), abs=5)


def test_table_csv_and_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "network.svg"
    assert run([*SMALL, "--strategy", "sharing", "--picture", str(picture)]) == 0
    assert "SP00-SP01" in capsys.readouterr().out
    assert picture.read_text().startswith("<svg ")
    assert run([*SMALL, "--topology", "random:5", "--streams", "1", "-o", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "kind,name,data-shipping,query-shipping,sharing"
    assert len(lines) == 1 + 7 + 5


def test_topology_and_queries_of_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    topology, queries = tmp_path / "topology.json", tmp_path / "queries.json"
    topology.write_text('{"links": [["a", "b"], ["b", "c"]]}')
    queries.write_text('[{"sql": "SELECT en FROM photons0 WHERE en > 1", "peer": "c"}]')
    arguments = ["network", "simulate", "--photons", "500", "--streams", "1", "-o", "json"]
    assert run([*arguments, "--topology", str(topology), "--queries", str(queries), "--subnets", "2"]) == 0
    assert set(json.loads(capsys.readouterr().out)["results"][0]["links"]) == {"a-b", "b-c"}
    queries.write_text('[{"sql": "SELECT nothing FROM photons0", "peer": "c"}]')
    assert run([*arguments, "--topology", str(topology), "--queries", str(queries)]) == 1
    assert "nothing" in capsys.readouterr().err
    queries.write_text('[{"sql": "SELECT en FROM photons0", "peer": "z"}]')
    assert run([*arguments, "--topology", str(topology), "--queries", str(queries)]) == 1
    assert "there is no peer 'z'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topology", "grid:0x4"], "1 to 10,000 peers"),
        (["--topology", "nowhere.json"], "unknown topology"),
        (["--queries", "nowhere.json"], "a number or a JSON file"),
        (["--picture", "/nowhere/network.svg"], "cannot write the picture"),
        (["--strategy", "magic"], "unknown strategy 'magic'"),
        (["--subnets", "99", "--strategy", "sharing"], "from 1 to 16, got 99"),
    ],
)
def test_bad_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["network", "simulate", "--photons", "100", "--queries", "2", *arguments]) == 1
    assert message in capsys.readouterr().err
