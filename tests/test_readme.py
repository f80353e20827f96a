"""The README's code runs and prints the documented output."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

README = Path(__file__).parent.parent / "README.md"


def test_code_blocks_of_the_readme(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert spark
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        # Spark's processes stay in the directory where Spark was started, so the pot needs an absolute path.
        exec(compile(block.replace('"./pot"', repr(str(tmp_path / "pot"))), "README.md", "exec"), {})
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[:3] == ["[{'sym': 'IBM', 'price': 120.5}]", "IBM 120.5", "ORCL 181.0"]
    assert lines[3] == "[{'sym': 'IBM', 'volume': 460.5}, {'sym': 'ORCL', 'volume': 362.0}]"
    changes = [ast.literal_eval(line)["value"] for line in lines[4:7]]
    assert (len(set(changes)), [value % 2 for value in changes], lines[7]) == (3, [0, 0, 0], "True")
    assert "| IBM|130.0|" in printed


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (README.parent / "Makefile").read_text()
    for command in re.findall(r"^make (\w+)", README.read_text(), re.MULTILINE):
        assert f"\n{command}:" in makefile
