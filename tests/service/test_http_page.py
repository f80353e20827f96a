"""The examples of docs/http.md: the curl commands run, in order, and print the responses below them."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.running import RunningServer

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
EXPORT = BLOCKS[0][1]


def examples() -> list[tuple[str, str, str]]:
    """Each command with the language and the text of the block after it, which is its output."""
    return [(command, *output) for (language, command), output in itertools.pairwise(BLOCKS[1:]) if language == "sh"]


@pytest.fixture
def server(served_pot: RunningServer) -> Iterator[RunningServer]:
    """A server without the objects that the page creates."""
    yield served_pot
    served_pot.soup.drop_stream("trades")
    served_pot.soup.drop_table("companies")


def test_every_block_is_an_example() -> None:
    commands = [text for language, text in BLOCKS if language == "sh"]
    assert EXPORT.startswith("export URL=")
    assert len(BLOCKS) - 1 == 2 * (len(commands) - 1) == 2 * len(examples())
    assert all("curl " in command for command in commands[1:])


def test_examples_print_what_the_page_shows(server: RunningServer) -> None:
    environment = EXPORT.replace("http://127.0.0.1:7707", server.url).replace("tureen_…", server.tokens["admin"])
    position = ""
    for command, language, expected in examples():
        script = f"{environment}POSITION={position}\n{command}"
        output = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=True).stdout
        if language != "json":
            assert matches(expected.strip(), output.strip()), (command, output)
            continue
        body = json.loads(output)
        assert matches(json.loads(expected), body), (command, output)
        if "added" in body:
            position = body["position"]


def matches(expected: Any, actual: Any) -> bool:
    """Whether a value is as the page shows it; `…` stands for any text, and "…" for any value."""
    if expected == "…":
        return True
    match expected, actual:
        case dict(), dict():
            return expected.keys() == actual.keys() and all(matches(expected[key], actual[key]) for key in expected)
        case list(), list():
            return len(expected) == len(actual) and all(map(matches, expected, actual))
        case str(), str():
            return re.fullmatch(re.escape(expected).replace("…", "[^\n]+"), actual) is not None
    return bool(expected == actual)
