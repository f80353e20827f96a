"""The progress of a replica: the tuple id at the home up to which it has everything, and the home's highest time.

It is stored in the key of each push to the replica, as the position of a derived stream is, so rows and progress are
stored by one write. Texts compare by age.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_PREFIX = "home."
_SHIFT = 1 << 62
_TEXT = re.compile(r"home\.([0-9]{19})\.([0-9]{19})")
DERIVED_KEY = "derived to "
"""The beginning of the keys of pushes to derived streams and replicas; nobody else can push to these."""

LARGEST_ID = 10**18
"""No stream has as many tuples."""


class HomeProgress(NamedTuple):
    """All tuples with smaller ids than `next_id` are stored, as far as they are selected.

    >>> HomeProgress.parse(str(HomeProgress(7, -5)))
    HomeProgress(next_id=7, last_time=-5)
    >>> str(HomeProgress(7)) < str(HomeProgress(7, -5)) < str(HomeProgress(8))
    True
    """

    next_id: int = 0
    last_time: int | None = None
    """The highest time of all tuples up to there, selected or not; None before the first."""

    def __str__(self) -> str:
        """The text within the key of a push."""
        shifted = 0 if self.last_time is None else self.last_time + _SHIFT
        return f"{_PREFIX}{self.next_id:019d}.{shifted:019d}"

    @classmethod
    def parse(cls, text: str | None) -> HomeProgress:
        """The progress in a text; that of a replica without tuples if there is none."""
        match = None if text is None else _TEXT.fullmatch(text)
        if match is None:
            return cls()
        next_id, shifted = map(int, match.groups())
        return cls(next_id, shifted - _SHIFT if shifted else None)


def home_time(text: str | None) -> int | None:
    """The highest time at the home, from the text of a progress; None of any other text."""
    return HomeProgress.parse(text).last_time


def progress_in(key: str) -> str | None:
    """The progress in the key of a push to a replica; None for any other key.

    >>> progress_in(DERIVED_KEY + str(HomeProgress(7))) == str(HomeProgress(7))
    True
    """
    return key.removeprefix(DERIVED_KEY) if key.startswith(DERIVED_KEY + _PREFIX) else None


def latest(*times: int | None) -> int | None:
    """The latest of several times, each of which may be unknown."""
    return max((time for time in times if time is not None), default=None)
