"""How many random examples a test runs: a few, the same in every run; with `make explore` many, and new ones."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

_FACTOR = int(os.environ.get("TUREEN_EXPLORE", "0"))
"""If not zero: examples are new in every run, and there are that many times as many."""

if not _FACTOR:
    # Hypothesis also draws constants of the modules imported so far, which depend on the tests that ran before in the
    # process. Without them, the examples of a test are the same in every run.
    vars(providers)["_get_local_constants"] = Constants


def explores() -> bool:
    """Whether tests may run all that a run of all tests has no time for."""
    return _FACTOR > 0


def example_settings(examples: int, *, explored: int | None = None, shrink: bool = True) -> settings:
    """Settings of a test with that many examples in every run.

    With `make explore` it has many times as many, or many times `explored`: that is for a test whose examples take
    long, which every run therefore has fewer of.

    A failing example is reported as it is: searching for a smaller one may take minutes, and the timeout of the test
    would hide the failure. With `make explore` smaller ones are searched for, unless `shrink` is False.
    """
    return settings(
        max_examples=(explored or examples) * _FACTOR if _FACTOR else examples,
        derandomize=not _FACTOR,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate, *([Phase.shrink] if shrink and _FACTOR else [])),
    )
