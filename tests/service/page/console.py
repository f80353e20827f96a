"""A page of the browser, and what it has logged.

A screenshot of each view is kept in `.artefacts/page/` of the checkout, which is not under version control.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.service.running import RunningServer

SCREENSHOTS = Path(__file__).parents[3] / ".artefacts" / "page"


class Console:
    """A page of the browser, and what it has logged."""

    def __init__(self, page: Any, served: RunningServer) -> None:
        self.page, self.served = page, served
        self.messages: list[str] = []
        page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.messages.append(f"error: dialog {dialog.message}"))

    def sign_in(self, token: str = "admin") -> None:
        """Sign in with a token of `PRINCIPALS`."""
        self.page.goto(self.served.url + "/")
        self.page.get_by_label("Token").fill(self.served.tokens[token])
        self.page.get_by_role("button", name="Sign in").click()
        self.page.locator("#who").get_by_text("local").wait_for()

    def open(self, address: str) -> None:
        """Show a view."""
        self.page.goto(f"{self.served.url}/#/{address}")

    def shoot(self, name: str) -> None:
        """Keep a screenshot."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")

    def check(self, *expected: str) -> None:
        """Fail if the console has an error that is not expected."""
        unexpected = [
            message
            for message in self.messages
            if message.startswith(("error", "warning")) and not any(text in message for text in expected)
        ]
        assert not unexpected, unexpected
