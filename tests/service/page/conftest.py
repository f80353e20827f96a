"""A real browser: Debian's Chromium, driven by Playwright. Without it, the tests that need it are skipped."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.service.page.console import Console
from tests.service.running import RunningServer

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")

# Without these, Chromium looks up hosts of its maker at every start.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A running browser; it ends with its file, because Playwright runs an event loop in this thread."""
    if BROWSER is None:
        pytest.skip("there is no Chromium; `scripts/ensure-chromium` installs it with apt-get, as root")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def new_console(chromium: Any, served: RunningServer) -> Iterator[Callable[..., Console]]:
    """A function that opens a page in a session of its own."""
    contexts = []

    def open_page(**settings: Any) -> Console:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        context.set_default_timeout(20_000)
        return Console(context.new_page(), served)

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def console(new_console: Callable[..., Console]) -> Console:
    """A page in which an admin is signed in."""
    opened = new_console()
    opened.sign_in()
    return opened


_numbers = itertools.count()


@pytest.fixture
def trades(served: RunningServer) -> str:
    """A stream with a row per second of the last minute."""
    name = f"trades{next(_numbers)}"
    served.soup.create_stream(name, "sym STRING, price DOUBLE, ts TIMESTAMP", time="ts")
    now = datetime.now(UTC)
    rows = [{"sym": "AB"[n % 2], "price": float(n), "ts": now - timedelta(seconds=60 - n)} for n in range(60)]
    served.soup.push(name, rows)
    return name
