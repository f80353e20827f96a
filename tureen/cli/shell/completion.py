"""Completion in the shell: keywords, and the names that there are."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from tureen.cli.target import AnySoup
from tureen.errors import TureenError
from tureen.schema import Schema

FRESH_SECONDS = 10.0
"""For how long names are not looked up again."""

MANY = 2_000
"""More names of queries than this are not offered."""

_LANGUAGE = """
    ALL AND AS ASC AT AVG BEGIN BETWEEN BY CASE CAST CLOCK COUNT CREATE DATE DAY DAYS DESC DESCRIBE DISTINCT DROP ELSE
    END EXISTS EXPLAIN FALSE FROM GROUP HAVING HOP HOUR HOURS IF IN INTERVAL INVOKE IS LIKE LIMIT MAX MIN MINUTE MINUTES
    NOT NOW NULL OFFSET OPTIONS OR ORDER QUERIES QUERY RANGE REGISTER RETAIN ROWS SECOND SECONDS SELECT SHOW SLIDE START
    STREAM STREAMS SUM TABLE TABLES TEMPLATE TEMPLATES THEN TIME TIMESTAMP TRUE TUMBLE WHEN WHERE
"""
KEYWORDS = tuple(_LANGUAGE.split())

_WORD = re.compile(r"[\w.]*$")
_BEFORE = re.compile(r"(\w+|\\\w+)\s+`?[\w.]*$")

_WANTS = {
    "from": ("stream", "table"),
    "stream": ("stream",),
    "table": ("table",),
    "query": ("query",),
    "invoke": ("query",),
    "explain": ("query",),
    "describe": ("stream", "table", "query"),
    "desc": ("stream", "table", "query"),
    "\\d": ("stream", "table", "query"),
    "\\follow": ("query",),
}


@dataclass(frozen=True)
class Name:
    """Something that can be completed."""

    text: str
    kind: str


def names_of(soup: AnySoup) -> list[Name]:
    """The names of streams, tables, their columns, and queries."""
    found: dict[Name, None] = {}
    for kind, listed in (("stream", soup.streams()), ("table", soup.tables())):
        for one in listed:
            found[Name(one["name"], kind)] = None
            for column in Schema.parse(one["schema"]).names:
                found[Name(column, "column")] = None
    for one in soup.describe_queries()[:MANY]:
        if one["name"]:
            found[Name(one["name"], "query")] = None
    return list(found)


class NameCompleter(Completer):
    """Offers what fits at the place: after FROM a stream, after INVOKE a query, elsewhere columns and keywords."""

    def __init__(self, names: Callable[[], list[Name]]) -> None:
        """Look names up by that; they are kept for a while."""
        self._look_up = names
        self._names: list[Name] = []
        self._until = 0.0

    def forget(self) -> None:
        """Look the names up again, as a statement may have changed them."""
        self._until = 0.0

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """What may stand at the cursor."""
        del complete_event
        before = document.text_before_cursor
        match = _WORD.search(before)
        word = match.group() if match else ""
        for name in offered(before, word, self._known()):
            text = name.text if re.fullmatch(r"\w+", name.text) else f"`{name.text}`"
            yield Completion(text, start_position=-len(word), display=name.text, display_meta=name.kind)

    def _known(self) -> list[Name]:
        if time.monotonic() > self._until:
            try:
                self._names = self._look_up()
            except TureenError:
                # Completion is no place to complain; the next statement says what is wrong.
                self._names = []
            self._until = time.monotonic() + FRESH_SECONDS
        return self._names


def offered(before: str, word: str, names: Iterable[Name]) -> list[Name]:
    """The names and keywords that begin with a word, for a text that ends with it.

    >>> [one.text for one in offered("SELECT * FROM tr", "tr", [Name("trades", "stream"), Name("track", "column")])]
    ['trades']
    """
    last = _BEFORE.search(before)
    wanted = _WANTS.get(last.group(1).lower()) if last else None
    some = [one for one in names if wanted is None or one.kind in wanted]
    if wanted is None:
        some = [one for one in some if one.kind != "query"]
        # Keywords come in the case that the word is written in.
        lower = word.islower()
        some += [Name(one.lower() if lower else one, "keyword") for one in KEYWORDS] if word else []
    return [one for one in some if one.text.lower().startswith(word.lower())]
