"""Opening a pot in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from tureen.arguments import check_path, check_positive
from tureen.joining.join_limits import DEFAULT_LIMITS, JoinLimits
from tureen.pipeline.priority import check_nice
from tureen.pipeline.spark_settings import check_spark
from tureen.pot.catalog import micros_now
from tureen.routing_policies import ROUTING_POLICIES, check_routing
from tureen.soup.embedded import Soup
from tureen.soup.open_pot import OpenPot


def open(  # noqa: A001 - the name people expect
    path: str | os.PathLike[str],
    *,
    mode: str = "auto",
    master: str = "local[*]",
    nice: int = 0,
    spark: Mapping[str, Any] | None = None,
    max_joined_rows: int = DEFAULT_LIMITS.rows,
    max_join_pairs: int = DEFAULT_LIMITS.candidates,
    routing: str = ROUTING_POLICIES[0],
    clock: Callable[[], int] = micros_now,
) -> Soup:
    """Open a pot: a directory, which is created if it does not exist.

    `mode="auto"` opens the pot for reading, and for writing at the first call that needs it; `"write"` acquires the
    lease and starts Spark immediately, in the background; `"read"` never writes. `nice` lowers the scheduling priority
    of Spark, as the command `nice` does. `spark` is configuration of Spark, such as the packages of a source; if this
    process already has a Spark session, that session must have the same settings. An answer fails if it would have more
    than `max_joined_rows` rows of a join, or examine more than `max_join_pairs` pairs of rows. `routing` decides in
    which order new tuples of followed joins are joined: by "tickets", which adapts to the data, "random" or "fixed".
    `clock` returns NOW in microseconds, for tests.
    """
    settings, location = check_spark(spark), check_path(path).absolute()
    limits = JoinLimits(
        check_positive(max_joined_rows, "max_joined_rows"), check_positive(max_join_pairs, "max_join_pairs")
    )
    pot = OpenPot(
        location,
        mode=mode,
        master=master,
        nice=check_nice(nice),
        clock=clock,
        spark=settings,
        join_limits=limits,
        routing=check_routing(routing),
    )
    return Soup(pot)
