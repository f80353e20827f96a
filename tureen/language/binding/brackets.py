"""The window in brackets after a stream: `[RANGE 5 MINUTES]`, `[ROWS 100]`, with or without steps.

```
[RANGE length]                          a duration up to NOW
[ROWS n]                                the last n tuples up to NOW
[RANGE length SLIDE length]             steps of a length, a slide apart; also [HOP length SLIDE length]
[TUMBLE length]                         adjacent steps
[ROWS n SLIDE m]                        steps of n tuples, m apart
… [START AT time] [EMIT PARTIAL]        the alignment of steps, and whether to include partial steps
… [ON column]                           the column that must be the stream's time
```
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot.tokens import Token

from tureen.errors import SqlError, nearest
from tureen.language.binding.steps import fixed_length, step
from tureen.language.durations import DurationReader
from tureen.language.source import Source
from tureen.language.text.split import QueryParts
from tureen.language.text.window_bounds import read_constant, read_rows
from tureen.window import Now, RowsBack, Steps, Window

_FORMS = "[RANGE 5 MINUTES], [ROWS 100], [RANGE 5 MINUTES SLIDE 1 MINUTE] or [TUMBLE 5 MINUTES]"
_KINDS = ("RANGE", "ROWS", "TUMBLE", "HOP")
_OPTIONS = ("SLIDE", "START", "EMIT", "BY", "ON")


@dataclass(frozen=True, slots=True)
class BracketWindow:
    """The window or the steps of the stream whose name or alias ends at an offset."""

    window: Window | None
    steps: Steps | None
    time: Token | None
    """The column that must be the stream's time, if the bracket names one."""
    after: int
    at: int


def read_brackets(source: Source, parts: QueryParts) -> list[BracketWindow]:
    """The windows in brackets."""
    return [
        BracketWindow(*_Bracket(source, bracket.tokens).read(), bracket.after, bracket.tokens[0].start)
        for bracket in parts.brackets
    ]


class _Bracket:
    """Reads a window in brackets."""

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens[1:-1]
        self.at = tokens[0].start
        self.reader = DurationReader(source, self.tokens)

    def read(self) -> tuple[Window | None, Steps | None, Token | None]:
        kind = self.reader.word()
        if kind not in _KINDS:
            hint = f"write {_FORMS} after the stream"
            if not self.tokens:
                raise SqlError("the window's brackets are empty", hint=hint, location=self.source.location(self.at))
            word = self.tokens[0].text
            raise SqlError(
                f"'{word}' is not a window",
                hint=nearest(word, _KINDS) or hint,
                location=self.source.token(self.tokens[0]),
            )
        self.reader.take()
        self._skip("BY")
        window, steps = self._rows() if kind == "ROWS" else self._lengths(kind)
        steps = self._options(steps)
        time = self.reader.take() if self._accept("ON") else None
        rest = self.reader.peek()
        if rest is not None:
            raise SqlError(
                f"'{rest.text}' is not expected here",
                hint=nearest(rest.text, _OPTIONS) or "close the bracket",
                location=self.source.token(rest),
            )
        return window, steps, time

    def _rows(self) -> tuple[Window | None, Steps | None]:
        rows = read_rows(self.reader, least=1)
        if not self._accept("SLIDE"):
            return Window(RowsBack(rows), Now()), None
        self._skip("BY")
        slide = read_rows(self.reader, least=1)
        if self.reader.word() in ("ROWS", "ROW"):
            self.reader.take()
        return None, step(self.source, rows, slide, 0, self.at, rows=True)

    def _lengths(self, kind: str) -> tuple[Window | None, Steps | None]:
        first = self.reader.peek()
        at = first.start if first else self.at
        length = self.reader.duration()
        if length.micros < 0 or length.months < 0:
            raise SqlError("the length of a window must not be negative", location=self.source.location(at))
        if kind == "TUMBLE":
            fixed = fixed_length(self.source, length, at)
            return None, step(self.source, fixed, fixed, 0, at)
        if self._accept("SLIDE") or (kind == "HOP" and self._accept("BY")):
            self._skip("BY")
            following = self.reader.peek()
            slide_at = following.start if following else at
            slide = fixed_length(self.source, self.reader.duration(), slide_at)
            return None, step(self.source, fixed_length(self.source, length, at), slide, 0, slide_at)
        if kind == "HOP":
            raise SqlError(
                "HOP requires SLIDE",
                hint="write [HOP 5 MINUTES SLIDE 1 MINUTE]",
                location=self.source.location(at),
            )
        return Window(Now(-length.micros, -length.months), Now()), None

    def _options(self, steps: Steps | None) -> Steps | None:
        while (word := self.reader.word()) in ("START", "EMIT"):
            token = self.reader.take()
            if steps is None:
                raise SqlError(
                    f"{word} requires a step window",
                    hint=f"write SLIDE before {word}",
                    location=self.source.token(token),
                )
            self._expect({"START": "AT", "EMIT": "PARTIAL"}[word], token)
            if word == "EMIT":
                steps = replace(steps, partial=True)
            elif steps.rows:
                raise SqlError(
                    "START AT is not supported for steps of rows",
                    hint="leave it out: steps of rows start at the stream's first tuple",
                    location=self.source.token(token),
                )
            else:
                steps = replace(steps, origin=read_constant(self.reader).micros % steps.slide)
        return steps

    def _accept(self, word: str) -> bool:
        if self.reader.word() != word:
            return False
        self.reader.take()
        return True

    def _skip(self, word: str) -> None:
        """Skip an optional word: TelegraphCQ's syntax is RANGE BY and SLIDE BY."""
        self._accept(word)

    def _expect(self, word: str, after: Token) -> None:
        if not self._accept(word):
            raise SqlError(
                f"{after.text.upper()} must be followed by {word}",
                hint="write START AT and a time, or EMIT PARTIAL",
                location=self.source.token(after),
            )
