"""A real pot on real Spark, shared by the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tureen
from tureen.testing.manual_engine import ManualEngine


@pytest.fixture(scope="module")
def soup(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tureen.Soup]:
    """An open pot; each test creates its own streams in it."""
    assert spark
    root: Path = tmp_path_factory.mktemp("engine")
    with tureen.open(root / "pot", mode="write") as opened:
        yield opened


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ManualEngine]:
    """A pot of the test's own, without Spark and threads."""
    engine = ManualEngine(tmp_path)
    yield engine
    engine.close()


@pytest.fixture
def engineless(tmp_path: Path) -> Iterator[tureen.Soup]:
    """A pot of the test's own, which must never start an engine."""
    with tureen.open(tmp_path / "pot") as opened:
        yield opened
        assert opened.status()["engine"] == "none", "this needs no engine"
