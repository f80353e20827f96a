"""A real browser: Debian's Chromium, driven by Playwright. Without it, the tests that need it are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

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
