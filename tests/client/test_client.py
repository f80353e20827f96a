"""`tureen.connect`: its arguments, and what it imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tureen
from tureen.errors import TureenError


@pytest.mark.parametrize("url", ["", "nowhere", "ftp://x", "http://"])
def test_invalid_url_raises(url: str) -> None:
    with pytest.raises(TureenError, match="is not a server URL"):
        tureen.connect(url)


def test_client_does_not_import_engine() -> None:
    code = "import sys, tureen; tureen.connect('http://127.0.0.1:1'); print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numba", "duckdb", "pyspark", "sqlalchemy", "sqlglot", "pandas", "fastapi", "uvicorn"}
    assert heavy & set(result.stdout.split()) == set()
