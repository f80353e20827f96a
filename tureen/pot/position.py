"""Positions: opaque strings that compare by age.

An answer's position is the seq it reflects, with the stream and the tuple id that comes next in it: changes go on from
there. A push's position is the seq that was current, the stream and the place in its inbox: it compares later than
every answer that cannot hold it yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tureen.errors import TureenError

_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the life of the pot; `end` is set for a push, `ids` for an answer and for a change.

    `member` is set for a change of a template that is not the last of its tuple: the number of the query that is next.

    >>> str(Position(7, 1, 0, 90)) < str(Position(7, 1, 400)) < str(Position(8, 1, 0, 95))
    True
    """

    seq: int
    stream: int | None = None
    end: int = 0
    ids: int | None = None
    member: int = 0

    def __str__(self) -> str:
        """The form that users see."""
        text = f"{self.seq:015d}"
        if self.stream is None:
            return text
        text += f".{self.stream:06d}.{self.end:015d}"
        if self.ids is not None:
            text += f".{self.ids:015d}"
        return f"{text}.{self.member:015d}" if self.member else text

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read a position that a push or an answer gave."""
        parts = str(text).split(".")
        if len(parts) not in (1, 3, 4, 5) or not all(map(_NUMBER.fullmatch, parts)):
            raise TureenError(f"'{text}' is not a position", hint="take the one that a push or an answer gave")
        numbers = [int(part) for part in parts]
        return cls(*numbers)


BEGINNING = str(Position(0))
"""The position before everything."""


class Pushed(str):
    """The position of a push; `added` is how many rows it added: none where its key had brought the same ones before.

    >>> at = Pushed("000000000000007.000001.000000000000400", 3)
    >>> at.added, Position.parse(at).end
    (3, 400)
    """

    added: int

    def __new__(cls, position: str, added: int = 0) -> Pushed:
        """The position as a text, with the number beside it."""
        pushed = super().__new__(cls, position)
        pushed.added = added
        return pushed
