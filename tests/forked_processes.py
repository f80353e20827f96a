"""A plugin of pytest that runs test files in processes forked from the one that has collected the tests.

Importing and collecting all tests takes 20 seconds of processor time. Here one process does it once for all, where the
processes of pytest-xdist would each do it again. A process that has run a file receives the next one. Its reports go
back to the first process, which prints and counts them, so a run ends with the same lines as in one process.
"""

from __future__ import annotations

import atexit
import gc
import io
import multiprocessing
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TextIO, cast

import pytest
from _pytest.config import create_terminal_writer

_FORKING = multiprocessing.get_context("fork")

SPARK_PROCESSES = 2
"""The number of processes that run files whose tests use Spark's session, because each of them starts one."""

_Message = dict[str, Any] | str | None
"""What a process sends: a report, the id of the test that it begins, or None to ask for a file."""


class ProcessHooks:
    """The hooks that this plugin adds."""

    def pytest_process_started(self) -> None:
        """Prepare a process that runs test files, while it has a single thread."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hooks of this plugin."""
    pluginmanager.add_hookspecs(ProcessHooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    group = parser.getgroup("processes")
    group.addoption("--processes", type=int, default=1, help="the number of processes that run test files")
    group.addoption("--meanwhile", help="a command that runs while tests are collected, and must succeed")


class _Meanwhile:
    """A command that runs while tests are collected."""

    def __init__(self, command: str) -> None:
        """Start the command."""
        self._command, self._output = command, tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed at the end
        self._process = subprocess.Popen(command, shell=True, stdout=self._output, stderr=subprocess.STDOUT)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Wait until the command ends; the tests run only if it succeeds."""
        if self._process.wait() != 0:
            self._output.seek(0)
            raise session.Interrupted(f"the command failed: {self._command}\n{self._output.read()}")

    def pytest_unconfigure(self) -> None:
        """End the command, if the tests could not be collected."""
        self._process.terminate()
        self._process.wait()
        self._output.close()


def pytest_configure(config: pytest.Config) -> None:
    """Start the command that runs while tests are collected."""
    if command := config.option.meanwhile:
        config.pluginmanager.register(_Meanwhile(command))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in several processes, if so requested."""
    option = session.config.option
    if option.processes == 1 or option.collectonly or session.testsfailed:
        return None
    assert threading.active_count() == 1, f"forking would lose the threads {threading.enumerate()}"
    # Collections of garbage skip what all tests share, and do not write to its memory.
    gc.collect()
    gc.freeze()
    # With Python's own thresholds, collections took about 8 % of the processor time in a sample of a run.
    gc.set_threshold(50_000, 20, 50)
    try:
        _Workers(session).run()
    finally:
        gc.unfreeze()
    return True


class _Workers:
    """The processes that run tests, and the files that they have not yet begun."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._files = [list(items) for _, items in groupby(session.items, lambda item: item.path)]
        self._left = list(range(len(self._files)))
        self._processes: dict[Connection, BaseProcess] = {}
        self._running: dict[Connection, str] = {}
        """The test that each process runs."""
        self._numbers: dict[Connection, int] = {}
        """The number of each process."""

    def run(self) -> None:
        """Run all files."""
        try:
            for number in range(self._session.config.option.processes):
                self._start(number)
            while self._processes:
                for connection in wait(list(self._processes)):
                    assert isinstance(connection, Connection)
                    self._serve(connection)
            for file in self._left:
                self._fail(self._files[file][0].nodeid, "no process ran the tests of this file")
        finally:
            for process in self._processes.values():
                process.terminate()

    def _start(self, number: int) -> None:
        ours, theirs = _FORKING.Pipe()
        inherited = [ours, *self._processes]
        process = _FORKING.Process(target=_run_files, args=(self._session, self._files, number, theirs, inherited))
        process.start()
        theirs.close()
        self._processes[ours] = process
        self._numbers[ours] = number

    def _serve(self, connection: Connection) -> None:
        """Handle a message of a process."""
        try:
            message: _Message = connection.recv()
        except EOFError:
            self._end(connection)
            return
        match message:
            case None:
                connection.send(self._next_file(self._numbers[connection]))
            case str():
                self._running[connection] = message
            case _:
                self._report(message)

    def _next_file(self, number: int) -> int | None:
        """The next file for a process: the first processes begin with those that use Spark, others never run them."""
        with_spark = [file for file in self._left if _uses_spark(self._files[file])]
        others = [file for file in self._left if file not in with_spark]
        candidates = with_spark + others if number < SPARK_PROCESSES else others
        if not candidates:
            return None
        self._left.remove(candidates[0])
        return candidates[0]

    def _report(self, message: dict[str, Any]) -> None:
        config = self._session.config
        report = config.hook.pytest_report_from_serializable(config=config, data=message)
        config.hook.pytest_runtest_logreport(report=report)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)

    def _end(self, connection: Connection) -> None:
        """Handle the end of a process, which must have had no more files to run."""
        process = self._processes.pop(connection)
        process.join()
        if process.exitcode != 0:
            code = process.exitcode
            self._fail(
                self._running.get(connection, ""),
                f"the process of this test ended with exit code {code}; it ran no more tests",
            )

    def _fail(self, test: str, message: str) -> None:
        report = pytest.TestReport(test, (test, None, test), {}, "failed", message, "call")
        self._session.config.hook.pytest_runtest_logreport(report=report)


def _uses_spark(items: Sequence[pytest.Item]) -> bool:
    """Whether a test of a file uses the session of its process."""
    return any("spark" in getattr(item, "fixturenames", ()) for item in items)


def _run_files(
    session: pytest.Session,
    files: Sequence[Sequence[pytest.Item]],
    number: int,
    connection: Connection,
    inherited: Sequence[Connection],
) -> None:
    """Run files until there are no more: the main function of a process."""
    atexit._clear()
    for other in inherited:
        other.close()
    config = session.config
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(_Reporter(config, connection), "terminalreporter")
    # Not the files that capture the output of the first process.
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    directories = config._tmp_path_factory  # type: ignore[attr-defined]
    directories._basetemp = directories.mktemp(f"process-{number}", numbered=False)
    config.hook.pytest_process_started()
    for items in _assigned(files, connection):
        # After the last test of a file, only fixtures of the session stay.
        for item, following in zip(items, (*items[1:], session), strict=True):
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    session._setupstate.teardown_exact(None)
    atexit._run_exitfuncs()


def _assigned(files: Sequence[Sequence[pytest.Item]], connection: Connection) -> Iterator[Sequence[pytest.Item]]:
    """The files that the first process assigns to this one."""
    while True:
        connection.send(None)
        number: int | None = connection.recv()
        if number is None:
            return
        yield files[number]


class _StandardError(io.TextIOBase):
    """The standard error that is captured for the test that runs now."""

    def write(self, text: str) -> int:
        """Write to it."""
        return sys.stderr.write(text)


class _Reporter:
    """Sends the reports of a process to the first one, in the place of the one that would print them."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config, self._connection = config, connection
        self._tw = create_terminal_writer(config, cast(TextIO, _StandardError()))
        """Where pytest-timeout writes the stacks of threads."""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Tell which test begins."""
        self._connection.send(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(data)
