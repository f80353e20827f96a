"""The language reference as HTML, from the Markdown files that are installed with the package."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from markdown_it import MarkdownIt

TITLES = {"language": "The language", "statements": "Statements", "glossary": "Glossary", "wxquery": "WXQuery"}
"""The documents of the manual, by the names of their files."""

_HEADING = re.compile(r"^(#{1,3}) +(.+)$")


@dataclass(frozen=True)
class ManualSection:
    """A section of a document."""

    document: str
    heading: str
    text: str
    """Markdown, which a search looks through."""
    html: str


@cache
def manual() -> tuple[ManualSection, ...]:
    """All sections of all documents."""
    # Raw HTML is shown as text; links are not followed from the page.
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"])
    return tuple(
        ManualSection(title, heading, text, markdown.render(text))
        for name, title in TITLES.items()
        if (document := _document(name)) is not None
        for heading, text in _sections(document)
    )


def _document(name: str) -> str | None:
    """The text of a document: of an installed package from its own folder, of a checkout from `docs/`."""
    folders = (Path(str(files("tureen"))) / "manual", Path(str(files("tureen"))).parent / "docs")
    path = next((path for folder in folders if (path := folder / f"{name}.md").is_file()), None)
    return None if path is None else path.read_text(encoding="utf-8")


def _sections(document: str) -> list[tuple[str, str]]:
    """The headings of a document, and the text below each."""
    sections: list[tuple[str, list[str]]] = []
    in_code = False
    for line in document.splitlines():
        in_code ^= line.startswith("```")
        heading = None if in_code else _HEADING.match(line)
        if heading is not None:
            sections.append((heading.group(2).replace("`", ""), []))
        elif sections:
            sections[-1][1].append(line)
    return [(heading, "\n".join(lines).strip()) for heading, lines in sections]
