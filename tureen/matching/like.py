"""LIKE as in Spark: `%` matches any text, `_` one character, both including line ends."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from tureen.errors import QueryFailed
from tureen.stems.index import codes_of, truths_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from tureen.predicate import Like
    from tureen.stems.index import Block


def like(predicate: Like, block: Block) -> npt.NDArray[np.bool_]:
    """Which rows match (or, negated, do not match); undefined for NULL."""
    pattern = regex(predicate.pattern, predicate.escape)
    # Each distinct value is matched once; the distinct values are cached for all patterns.
    coded = block.distinct(predicate.column)
    if len(coded.dictionary) == 0:
        return np.zeros(block.rows, np.bool_)
    answers = truths_of(pc.match_substring_regex(coded.dictionary, pattern))
    matches: npt.NDArray[np.bool_] = answers[codes_of(coded)]
    return ~matches if predicate.negated else matches


@lru_cache(maxsize=4096)
def regex(pattern: str, escape: str) -> str:
    r"""A LIKE pattern as a regular expression over the whole text.

    >>> regex("a_b%", "\\")
    '(?s)\\Aa.b.*\\z'
    """
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None or escaped not in ("%", "_", escape):
                raise QueryFailed(
                    f"in the LIKE pattern '{pattern}' the escape character '{escape}' must precede %, _ or {escape}",
                )
            parts.append(_literal(escaped))
        elif character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        else:
            parts.append(_literal(character))
    return r"(?s)\A" + "".join(parts) + r"\z"


def _literal(character: str) -> str:
    return character if character.isalnum() else rf"\x{{{ord(character):X}}}"
