"""Writes the table of decisions into ARCHITECTURE.md, from the titles of their pages; `make reference` runs it."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ARCHITECTURE = ROOT / "ARCHITECTURE.md"

_TITLE = re.compile(r"# (\d{4}) (.+)")
_TABLE = re.compile(r"(?<=## Decisions\n\n\| \| \|\n\|---\|---\|\n)(?:\|.*\n)*")


def rows() -> str:
    """A row for each page, in the order of their numbers."""
    lines = []
    for page in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        title = _TITLE.fullmatch(page.read_text().partition("\n")[0])
        if title is None or title[1] != page.name[:4]:
            raise ValueError(f"{page.name}: the first line must be '# {page.name[:4]} ' and a title")
        lines.append(f"| [{title[1]}]({page.relative_to(ROOT).as_posix()}) | {title[2]} |\n")
    return "".join(lines)


def with_decisions(page: str) -> str:
    """A page with the rows of all decisions in its table."""
    return _TABLE.sub(lambda _: rows(), page, count=1)


if __name__ == "__main__":
    ARCHITECTURE.write_text(with_decisions(ARCHITECTURE.read_text()))
