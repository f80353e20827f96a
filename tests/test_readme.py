"""The README's code runs, as it stands there, and prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_code_of_the_readme(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 3
    printed = ""
    # The first two are one program that goes on; the third is a Spark job of somebody else.
    for code in (blocks[0] + blocks[1], blocks[2]):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        printed += done.stdout
    lines = printed.splitlines()
    assert lines[:3] == ["[{'sym': 'IBM', 'price': 120.5}]", "IBM 120.5", "ORCL 181.0"]
    assert lines[3].endswith("rows so far")
    assert "| IBM|130.0|" in printed


def test_the_two_commands_are_there() -> None:
    makefile = (README.parent / "Makefile").read_text()
    for command in re.findall(r"^make (\w+)", README.read_text(), re.MULTILINE):
        assert f"\n{command}:" in makefile
