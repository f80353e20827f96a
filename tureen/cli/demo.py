"""`tureen demo`: a guided tour on a live server, with the commands and calls that a user would make."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tureen.cli.demo_data import (
    ALERTS,
    BLOCK_TRADES,
    BY_SECTOR,
    COMPANIES,
    LATE_COMER,
    ROWS_PER_BATCH,
    RULES,
    SCHEMA,
    rules,
    trades,
)
from tureen.cli.output import csv_lines
from tureen.client.client import Client, connect
from tureen.errors import EngineFailed, TureenError

EVERY = 0.25
"""The number of seconds between two batches of trades."""

PAUSE = 0.8
"""The number of seconds for which a reader can look at a step."""

Run = Callable[[list[str]], int]
"""Runs a command line in this process and returns its exit code."""


def tour(run: Run, *, quick: bool) -> int:
    """Take the tour in a temporary directory."""
    root = Path(tempfile.mkdtemp(prefix="tureen-demo-"))
    try:
        with demo_server(root) as (url, token):
            os.environ |= {"TUREEN_URL": url, "TUREEN_TOKEN": token}
            with connect(url, token) as soup, _working_in(root):
                _Tour(run, soup, 0.0 if quick else PAUSE).take(url)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


class _Tour:
    """The steps of the tour."""

    def __init__(self, run: Run, soup: Client, pause: float) -> None:
        self._run, self._soup, self._pause = run, soup, pause
        self._names: dict[str, Any] = {"tureen": sys.modules["tureen"]}

    def take(self, url: str) -> None:
        """Run all steps in order."""
        self._say("Create a stream and register a query over it, before there is any data.")
        self._command("stream", "create", "trades", SCHEMA, "--time", "ts", "--retain", "1 day")
        self._command("query", "register", BLOCK_TRADES, "--name", "block_trades")
        self._say(f"Trades now arrive in batches of {ROWS_PER_BATCH:,}. Follow the query's changes:")
        with self._feeding():
            self._while_feeding()
        self._say("A query that is registered after the data sees the data as well:")
        self._command("query", "register", LATE_COMER, "--name", "late_comer")
        self._command("query", "invoke", "late_comer")
        self._say("Join the stream with a table. A company that is not in it has a row of NULLs:")
        Path("companies.csv").write_text("".join(csv_lines(["sym", "sector"], COMPANIES)))
        self._command("sql", "-c", "CREATE TABLE companies (sym STRING, sector STRING) FROM 'companies.csv'")
        self._command("query", "register", BY_SECTOR, "--name", "by_sector")
        self._command("query", "invoke", "by_sector")
        self._say("An error points into the SQL text:")
        self._command("sql", "-c", "SELECT sym, prize FROM trades", fails=True)
        self._say("The same in Python:")
        self._python(f"soup = tureen.connect({url!r}, token)", token=os.environ["TUREEN_TOKEN"])
        self._python("answer = soup.query('block_trades').invoke()")
        self._python("len(answer), answer.table.column_names")
        self._time_invocations()
        self._command("status")
        self._print_next_steps(url)

    def _while_feeding(self) -> None:
        """The steps that run while trades arrive."""
        self._command("query", "follow", "block_trades", "--count", "4")
        self._say(f"Meanwhile, register {RULES:,} alert rules from a file: one query for each row.")
        generator = random.Random(3)
        Path("rules.csv").write_text("".join(csv_lines(["sym", "low", "high", "qty"], list(rules(generator)))))
        self._command("template", "register", ALERTS, "rules.csv", "--name", "alerts")
        self._command("template", "follow", "alerts", "--count", "4")

    @contextmanager
    def _feeding(self) -> Iterator[None]:
        """Push trades during the block."""
        stopped = threading.Event()

        def feed() -> None:
            batches = trades(random.Random(7))
            while not stopped.wait(EVERY):
                self._soup.push("trades", next(batches))

        feeding = threading.Thread(target=feed, daemon=True)
        feeding.start()
        try:
            yield
        finally:
            stopped.set()
            feeding.join()

    def _time_invocations(self) -> None:
        query = self._soup.query("block_trades")
        times = []
        for _ in range(100):
            began = time.perf_counter()
            query.invoke()
            times.append(time.perf_counter() - began)
        print(f"An invocation over HTTP took {sorted(times)[50] * 1000:.1f} ms (median of 100).\n")

    def _say(self, text: str) -> None:
        time.sleep(self._pause)
        print(f"\n{_bold(text)}\n", flush=True)

    def _command(self, *words: str, fails: bool = False) -> None:
        print(_cyan(f"$ tureen {shlex.join(words)}"), flush=True)
        code = self._run(list(words))
        sys.stdout.flush()
        if bool(code) != fails:
            raise TureenError(f"the tour stops: the command exited with code {code}")

    def _python(self, code: str, **names: Any) -> None:
        print(_cyan(f">>> {code}"))
        self._names |= names
        try:
            print(eval(code, self._names))
        except SyntaxError:
            exec(code, self._names)

    def _print_next_steps(self, url: str) -> None:
        print(
            f"""{_bold("End of the tour.")} Its server stops now. To continue with a server of your own:

  tureen serve --pot ./pot                      starts it, and shows a token once
  export TUREEN_TOKEN=…                         for all commands
  tureen sql                                    a shell: \\? shows help, Tab completes
  tureen push trades trades.csv                 pushes the rows of a file
  curl -H "Authorization: Bearer $TUREEN_TOKEN" {url.rpartition(":")[0]}:7707/v1/queries

See docs/cli.md, docs/client.md and docs/http.md."""
        )


@contextmanager
def demo_server(root: Path) -> Iterator[tuple[str, str]]:
    """Run a server on a free port with a new pot; yields its URL and its first token."""
    print(_cyan(f"$ tureen serve --pot {root / 'pot'} --port 0"), flush=True)
    command = [sys.executable, "-m", "tureen.cli.main", "serve", "--pot", str(root / "pot"), "--port", "0"]
    command += ["--no-log-requests"]
    with (root / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        url = token = ""
        for line in process.stdout:
            print(f"  {line.rstrip()}", flush=True)
            if " on http" in line:
                url = line.rpartition(" on ")[2].strip()
            if line.startswith("tureen_"):
                token = line.strip()
                break
        if not url or not token:
            raise EngineFailed("the server did not start", detail=(root / "log").read_text()[-1000:])
        print("  Spark starts in the background; rows are in answers before it has started.")
        yield url, token
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def _working_in(root: Path) -> Iterator[None]:
    previous = Path.cwd()
    os.chdir(root)
    try:
        yield
    finally:
        os.chdir(previous)


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else text


def _cyan(text: str) -> str:
    return f"\x1b[36m{text}\x1b[0m" if sys.stdout.isatty() else text
