"""Spark's Python processes import the installed pyspark where they can, and the zip file where they must."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tureen.pipeline.spark_home import home_without_zip

LOCAL = {"spark.master": "local[2]"}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)


def test_home_of_a_local_spark_has_no_zip_file() -> None:
    with home_without_zip(LOCAL):
        home = Path(os.environ["SPARK_HOME"])
        assert {path.name for path in home.iterdir()} >= {"bin", "jars", "sbin"}
        assert (home / "bin" / "spark-submit").exists()
        assert not (home / "python").exists()
    assert "SPARK_HOME" not in os.environ
    with home_without_zip(LOCAL):
        assert os.environ["SPARK_HOME"] == str(home), "one for the whole process"


@pytest.mark.parametrize("config", [{"spark.master": "local-cluster[2,1,1024]"}, {"spark.master": "yarn"}])
def test_other_machines_need_the_zip_file(config: dict[str, str]) -> None:
    with home_without_zip(config):
        assert "SPARK_HOME" not in os.environ


def test_another_python_needs_the_zip_file(monkeypatch: pytest.MonkeyPatch) -> None:
    with home_without_zip({**LOCAL, "spark.pyspark.python": "/other/python"}):
        assert "SPARK_HOME" not in os.environ
    monkeypatch.setenv("PYSPARK_PYTHON", "/other/python")
    with home_without_zip(LOCAL):
        assert "SPARK_HOME" not in os.environ


def test_a_configured_home_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/other/spark")
    with home_without_zip(LOCAL):
        assert os.environ["SPARK_HOME"] == "/other/spark"
    assert os.environ["SPARK_HOME"] == "/other/spark"
