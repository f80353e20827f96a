"""The pages about XML and WXQuery: their examples run, and print what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("name", ["xml.md", "wxquery.md"])
def test_examples(name: str, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert spark
    blocks = re.findall(r"```(python|text)\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)
    names: dict[str, object] = {}
    code = "\n".join(text for kind, text in blocks if kind == "python")
    exec(compile(code.replace('"./pot"', repr(str(tmp_path / "pot"))) + "\nsoup.close()", name, "exec"), names)
    assert capsys.readouterr().out == "".join(text for kind, text in blocks if kind == "text")
