"""Completion of keywords and names in the shell."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from tureen.cli.target import AnySoup
from tureen.errors import TureenError
from tureen.keywords import KEYWORDS
from tureen.schema import Schema

CACHE_SECONDS = 10.0
"""The number of seconds for which looked-up names are cached."""

QUERY_LIMIT = 2_000
"""The largest number of queries whose names are completed."""

_WORD = re.compile(r"[\w.]*$")
_INPUT = re.compile(r"(?:\bfrom|\bjoin|,)\s+(\w+)(?:\s*\[[^]]*\])?\s+(?:as\s+)?(\w+)", re.IGNORECASE)
"""A relation in FROM and its alias."""
_PREVIOUS_WORD = re.compile(r"(\w+|\\\w+)\s+`?[\w.]*$")

_KINDS_AFTER = {
    "from": ("stream", "table"),
    "join": ("stream", "table"),
    "stream": ("stream",),
    "punctuate": ("stream",),
    "table": ("table",),
    "query": ("query",),
    "invoke": ("query",),
    "explain": ("query",),
    "row": ("query",),
    "describe": ("stream", "table", "query"),
    "desc": ("stream", "table", "query"),
    "\\d": ("stream", "table", "query"),
    "\\follow": ("query",),
}


@dataclass(frozen=True)
class Name:
    """A completion and its kind."""

    text: str
    kind: str
    relation: str = ""
    """The stream or table of a column."""


def names_of(soup: AnySoup) -> list[Name]:
    """The distinct names of streams, tables, their columns, and queries."""
    names: dict[Name, None] = {}
    for kind, entries in (("stream", soup.streams()), ("table", soup.tables())):
        for entry in entries:
            names[Name(entry["name"], kind)] = None
            for column in Schema.parse(entry["schema"]).names:
                names[Name(column, "column", entry["name"])] = None
    for query in soup.describe_queries()[:QUERY_LIMIT]:
        if query["name"]:
            names[Name(query["name"], "query")] = None
    return list(names)


class NameCompleter(Completer):
    """Completes streams after FROM, queries after INVOKE, columns of an alias, and columns and keywords elsewhere."""

    def __init__(self, names: Callable[[], list[Name]]) -> None:
        """Cache the result of `names`."""
        self._look_up = names
        self._names: list[Name] = []
        self._expires = 0.0

    def forget(self) -> None:
        """Invalidate the cache, as a statement may have changed names."""
        self._expires = 0.0

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """The completions of the word before the cursor."""
        del complete_event
        before = document.text_before_cursor
        match = _WORD.search(before)
        word = match.group() if match else ""
        for name in completions(before, word, self._cached_names(), document.text):
            text = name.text if re.fullmatch(r"\w+", name.text) else f"`{name.text}`"
            start = -len(word.rpartition(".")[2])
            yield Completion(text, start_position=start, display=name.text, display_meta=name.kind)

    def _cached_names(self) -> list[Name]:
        if time.monotonic() > self._expires:
            try:
                self._names = self._look_up()
            except TureenError:
                # Completion stays silent; the next statement reports the error.
                self._names = []
            self._expires = time.monotonic() + CACHE_SECONDS
        return self._names


def completions(before: str, word: str, names: Iterable[Name], text: str = "") -> list[Name]:
    """The names and keywords that start with a word, where the part of `text` before the cursor ends with it.

    >>> names = [Name("trades", "stream"), Name("track", "column", "trades")]
    >>> [name.text for name in completions("SELECT * FROM tr", "tr", names)]
    ['trades']
    >>> [name.text for name in completions("SELECT t.", "t.", names, "SELECT t. FROM trades t")]
    ['track']
    """
    if "." in word:
        alias, _, start = word.partition(".")
        return _columns_of(alias, start, names, text or before)
    previous = _PREVIOUS_WORD.search(before)
    kinds = _KINDS_AFTER.get(previous.group(1).lower()) if previous else None
    candidates = [name for name in names if (name.kind != "query" if kinds is None else name.kind in kinds)]
    if kinds is None and word:
        # Keywords take the case of the word.
        candidates += [Name(keyword.lower() if word.islower() else keyword, "keyword") for keyword in KEYWORDS]
    # Columns of several relations may have the same name.
    unique = {(name.text, name.kind): name for name in candidates}
    return [name for name in unique.values() if name.text.lower().startswith(word.lower())]


def _columns_of(alias: str, word: str, names: Iterable[Name], text: str) -> list[Name]:
    """The columns that start with a word, of a relation that a statement names by its alias or its name."""
    aliases = {match.group(2).lower(): match.group(1).lower() for match in _INPUT.finditer(text)}
    relation = aliases.get(alias.lower(), alias.lower())
    columns = [name for name in names if name.kind == "column" and name.relation.lower() == relation]
    return [name for name in columns if name.text.lower().startswith(word.lower())]
