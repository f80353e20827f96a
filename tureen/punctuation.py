"""Punctuations: promises that no later tuple of a stream matches a pattern (PWJoin; Tucker et al.).

A pattern has a value, a list of values or a range for each of some columns; a tuple matches if all of these columns do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tureen.errors import InvalidPunctuation

MARK = "$punctuation"
"""The only key of a JSON object that is a punctuation and not a row."""

_ENDS = ("low", "high", "low_open", "high_open")


@dataclass(frozen=True, slots=True)
class Range:
    """The values between two ends, which are included unless they are open; an end of None does not limit it.

    >>> Range(high=5)
    Range(low=None, high=5, low_open=False, high_open=False)
    """

    low: Any = None
    high: Any = None
    low_open: bool = False
    high_open: bool = False

    def __post_init__(self) -> None:
        """Raise if there is no end, or an end is open that is not there."""
        if self.low is None and self.high is None:
            raise InvalidPunctuation(
                "a range needs a low or a high end", hint="leave the column out to match any value"
            )
        for name in ("low_open", "high_open"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidPunctuation(f"{name} must be True or False, got {getattr(self, name)!r}")


class Punctuation:
    """A pattern that no later tuple of its stream matches: by column a value, a list of values or a `Range`.

    >>> Punctuation(item=180, region=["north", "south"])
    Punctuation(item=180, region=['north', 'south'])
    """

    __slots__ = ("where",)

    where: dict[str, Any]

    def __init__(self, /, **where: Any) -> None:
        """Match any value of the columns that are left out."""
        self.where = where

    @classmethod
    def of(cls, where: Punctuation | Mapping[str, Any]) -> Punctuation:
        """The punctuation of a mapping; a range may also be a mapping with `low` and `high`, as in JSON.

        >>> Punctuation.of({"ts": {"high": "2026-01-31"}})
        Punctuation(ts=Range(low=None, high='2026-01-31', low_open=False, high_open=False))
        """
        if isinstance(where, Punctuation):
            return where
        if not isinstance(where, Mapping) or not all(isinstance(name, str) for name in where):
            raise InvalidPunctuation(
                f"a punctuation must be a mapping from columns to patterns, got {type(where).__name__}",
                hint='such as {"item": 180}',
            )
        punctuation = cls()
        punctuation.where = {
            name: _range(name, pattern) if isinstance(pattern, Mapping) else pattern for name, pattern in where.items()
        }
        return punctuation

    def as_json(self) -> dict[str, Any]:
        """The mapping with ranges as mappings too; the values are those of the punctuation."""
        return {name: _as_json(pattern) for name, pattern in self.where.items()}

    def __eq__(self, other: object) -> bool:
        """Whether both have the same patterns."""
        return isinstance(other, Punctuation) and self.where == other.where

    def __hash__(self) -> int:
        """The same for equal punctuations."""
        return hash(frozenset(self.where))

    def __repr__(self) -> str:
        """The call that creates it."""
        return f"Punctuation({', '.join(f'{name}={pattern!r}' for name, pattern in self.where.items())})"


def punctuation_in(row: object) -> Punctuation | None:
    """The punctuation that stands among rows: itself, or a JSON object with the one key `$punctuation`."""
    if isinstance(row, Punctuation):
        return row
    if isinstance(row, Mapping) and len(row) == 1 and isinstance(row.get(MARK), Mapping):
        return Punctuation.of(row[MARK])
    return None


def _as_json(pattern: Any) -> Any:
    if isinstance(pattern, Range):
        ends = {end: getattr(pattern, end) for end in _ENDS}
        return {end: value for end, value in ends.items() if value is not None and value is not False}
    values = listed(pattern)
    return pattern if len(values) == 1 and values[0] is pattern else values


def listed(values: Any) -> list[Any]:
    """The values of a pattern that is a list, an array or a Series; or a single value as a list.

    >>> listed((1, 2)), listed("ab")
    ([1, 2], ['ab'])
    """
    if isinstance(values, list | tuple | set | frozenset | range):
        return list(values)
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    # Scalars of numpy have no length.
    return list(values.tolist()) if hasattr(values, "tolist") and hasattr(values, "__len__") else [values]


def _range(column: str, ends: Mapping[str, Any]) -> Range:
    unknown = [name for name in ends if name not in _ENDS]
    if unknown:
        raise InvalidPunctuation(
            f"column '{column}': a range has no '{unknown[0]}'", hint=f"its keys are {', '.join(_ENDS)}"
        )
    return Range(**ends)
