"""The counts at the end of docs/life-of-a-*.md are those of the files that the pages list."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"

_FILES = re.compile(r"^Files: (.*?)\n\n", re.MULTILINE | re.DOTALL)
_COUNTS = re.compile(r"(\d+)\s+steps\s+through\s+(\d+)\s+files\s+in\s+(\d+)\s+folders,\s+and\s+(\d+)\s+changes")


@pytest.mark.parametrize("page", sorted(DOCS.glob("life-of-a-*.md")), ids=lambda path: path.stem)
def test_counts_match_the_listed_files(page: Path) -> None:
    text = page.read_text()
    files = [file for section in _FILES.findall(text) for file in re.findall(r"`([\w/]+\.py)`", section)]
    folders = [file.rpartition("/")[0] for file in files]
    changes = sum(before != after for before, after in pairwise(folders))
    (counts,) = _COUNTS.findall(text)
    assert [int(count) for count in counts] == [len(files), len(set(files)), len(set(folders)), changes]
