"""What all tests share: one Spark session per process, the one that the engine itself would start, and open pots."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from tests.temporary_files import temporary_directory

os.environ["TMPDIR"] = temporary_directory()

from tests.class_archive import java_options
from tests.forked_python import forked_python
from tests.spark_home import spark_home

os.environ.setdefault("SPARK_HOME", spark_home())
os.environ.setdefault("SPARK_SUBMIT_OPTS", java_options())

from pyspark.sql import SparkSession

import tureen
from tests.service.running import RunningServer, serve_new_pot
from tureen import matching
from tureen.aggregates import aggregate_warming
from tureen.faults import use_crash_directory
from tureen.pipeline.session import make_active, spark_session
from tureen.stems.key_index import KeyIndex
from tureen.testing.manual_engine import ManualEngine

LONGEST = (
    "tests/service/test_server.py",
    "tests/cases/test_cases.py",
    "tests/cases/test_against_spark.py",
    "tests/crash/test_spark_kill.py",
    "tests/crash/test_pending_kill.py",
    "tests/service/page/test_browser.py",
    "tests/behaviour/test_interfaces.py",
    "tests/pipeline/test_session.py",
    "tests/behaviour/test_functions.py",
    "tests/oracle/test_kept_joins.py",
    "tests/cluster/test_cluster.py",
    "tests/behaviour/test_following.py",
    "tests/oracle/test_why.py",
    "tests/test_install.py",
    "tests/cli/test_main.py",
    "tests/language/test_functions.py",
    "tests/crash/test_derived_kill.py",
    "tests/oracle/test_joins.py",
    "tests/language/test_member.py",
    "tests/crash/test_kill.py",
    "tests/cli/test_shell.py",
    "tests/soup/test_feed.py",
    "tests/crash/test_derived_graph_kill.py",
    "tests/oracle/test_engine.py",
    "tests/behaviour/test_punctuations.py",
    "tests/behaviour/test_wxquery.py",
    "tests/behaviour/test_queries.py",
    "tests/language/test_predicates.py",
    "tests/pipeline/test_footprint.py",
    "tests/functions/test_function_calls.py",
    "tests/flights/test_flights.py",
    "tests/pipeline/test_join_keeping.py",
    "tests/oracle/test_predicates_against_spark.py",
    "tests/evaluation/test_limits.py",
    "tests/service/test_fuzz.py",
    "tests/test_readme.py",
    "tests/pipeline/test_function_arrival.py",
    "tests/test_fast_paths.py",
    "tests/testing/test_strategies.py",
    "tests/test_style.py",
)
"""The files that take longest, which start first, so that no process of `make test` is left with one at the end.

Those that often wait for new processes are between those that compute, so that few of them wait at the same time.
"""


_forked_python = ExitStack()
"""Ends the server that forks Spark's Python processes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the longest files to the front."""
    rank = {path: number for number, path in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.nodeid.partition("::")[0], len(LONGEST)))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Load the compiled loops, and start the server that forks Spark's Python processes, before tests are forked."""
    option = session.config.option
    if getattr(option, "processes", 1) > 1 and not option.collectonly:
        session.config.add_cleanup(_forked_python.close)
        _forked_python.enter_context(forked_python())
        matching.warm_up()
        aggregate_warming.warm_up()


@pytest.fixture(scope="session", autouse=True)
def crash_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tests of this process arm crash points, set before it starts Spark's workers and other processes.

    Its pots, which stay open for all tests, reach crash points too; they do not kill it.
    """
    directory = tmp_path_factory.mktemp("crash")
    use_crash_directory(directory)
    return directory


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Start a small local Spark, in ANSI mode (its default) and in UTC."""
    session = spark_session("local[2]")
    session.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def active_session(request: pytest.FixtureRequest) -> None:
    """Make Spark's session active in the thread of the test.

    Spark resolves data sources in the active session of the calling thread of the JVM, which an earlier test may have
    left without one.
    """
    if "spark" in request.fixturenames:
        make_active(request.getfixturevalue("spark"))


@pytest.fixture(scope="session")
def fast_pot(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A pot that is open in this process and served on a free port, with all fast paths."""
    assert spark
    with serve_new_pot(tmp_path_factory.mktemp("served") / "pot") as server:
        yield server


@pytest.fixture(scope="session")
def served_pot(fast_pot: RunningServer) -> RunningServer:
    """The pot for tests of those who use a server.

    The parameters of a fixture that overrides this one are its parameters too: pytest sets it up again for each. The
    pot is therefore a fixture of its own.
    """
    return fast_pot


@pytest.fixture(scope="session")
def shared_pot(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tureen.Soup]:
    """A pot on real Spark; with one for each module, as many streaming queries would start."""
    assert spark
    with tureen.open(tmp_path_factory.mktemp("shared") / "pot", mode="write") as opened:
        yield opened


@pytest.fixture(scope="module")
def soup(shared_pot: tureen.Soup) -> Iterator[tureen.Soup]:
    """The pot on real Spark for the tests of a module, which create their own streams in it."""
    yield shared_pot
    for query in shared_pot.queries(owner="*"):
        query.unregister()
    for template in shared_pot.templates(owner="*"):
        shared_pot.template(template["id"]).unregister()
    # Streams after those that are derived from them.
    for stream in reversed(shared_pot.streams()):
        shared_pot.drop_stream(stream["name"])
    for table in shared_pot.tables():
        shared_pot.drop_table(table["name"])
    for function in shared_pot.functions():
        shared_pot.drop_function(function["name"])


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


@pytest.fixture
def crash_dir(crash_directory: Path) -> Iterator[Path]:
    """Where a test arms a crash: by making a file with the name of the place."""
    yield crash_directory
    for armed in crash_directory.iterdir():
        armed.unlink()


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each key index that is built during the test."""
    built: list[int] = []
    build = KeyIndex.of

    def counting_build(columns: Sequence[tuple[pa.Array, str]]) -> KeyIndex:
        built.append(len(columns[0][0]))
        return build(columns)

    monkeypatch.setattr(KeyIndex, "of", counting_build)
    return built
