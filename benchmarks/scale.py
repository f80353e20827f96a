"""The sizes of all measurements: full, or so small that they only check that everything runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """The sizes of the parts; the defaults are those of `make bench`."""

    # Throughput
    rows_per_file: int = 262_144
    files: int = 16
    files_per_batch: int = 4
    """At least two batches: the first is the warm-up."""
    rows_per_small_file: int = 32_768
    """Results of 65,536 queries take 8 KiB per tuple, so there are fewer tuples if they are materialised."""
    rounds: int = 3
    more_rounds: int = 4
    few: int = 128
    medium: int = 1_024
    many: int = 4_096
    most: int = 65_536
    # Peers
    peer_rows: int = 262_144
    """The maximum number of rows for a peer."""
    peer_seconds: float = 2.0
    """A peer that takes longer than this does not get more rows."""
    job_rows: int = 50_000
    job_few: int = 1_250
    job_seconds: float = 240.0
    stream_rows: int = 100_000
    flink_rows: tuple[int, int] = (20_000, 200_000)
    flink_seconds: float = 60.0
    # Joins
    join_rows: int = 1_048_576
    growth_rounds: int = 15
    """The invocations of each join whose growth is measured."""
    nexmark_events: int = 1_048_576
    followed_joins: int = 1_000
    """The number of followed queries over one join."""
    peer_join_rows: int = 524_288
    """The rows of each stream of a join of two by several engines; of one of four, half as many."""
    join_warm_ups: int = 10
    """The rounds of warm-up of joins through Spark: in the sixth, Java still compiles for a sixth of our time."""
    spark_joins: int = 32
    """The number of Spark's streaming queries with a join."""
    # Fan-out
    followers: int = 4_000
    """The number of connections that follow a few queries."""
    fanout_rounds: int = 20
    feed_queries: int = 10_000
    feed_members: int = 1_000_000
    """The number of queries that a feed follows: registered one by one, and those of a template."""
    # Punctuations
    closed_keys: int = 10_000_000
    # Sharing
    derived: int = 10_000
    """The number of derived streams that a query is matched with."""
    photons: int = 50_000
    """The number of photons of these parts and of XML."""
    grid_queries: int = 100
    standing: int = 1_000
    large_grid: tuple[int, int] = (25, 40)
    large_queries: int = 400
    covered_rows: int = 1_048_576
    federated_photons: int = 20_000
    federated_queries: int = 40
    # Registrations and unregistrations
    changes: int = 8_192
    # Maximum numbers of queries
    rate: int = 10_000
    push_every: float = 0.1
    warm_seconds: float = 3.0
    seconds: float = 10.0
    keys: int = 100_000
    """The number of values of an alert rule's key."""
    first_rules: int = 62_500
    most_rules: int = 4_000_000
    first_dense: int = 4_096
    most_dense: int = 65_536
    steps: int = 2


FULL = Scale()
QUICK = Scale(
    derived=500,
    photons=2_000,
    grid_queries=10,
    standing=10,
    large_grid=(4, 8),
    large_queries=10,
    covered_rows=20_000,
    federated_photons=2_000,
    federated_queries=4,
    closed_keys=20_000,
    followers=40,
    fanout_rounds=3,
    feed_queries=20,
    feed_members=100,
    join_rows=4_096,
    growth_rounds=3,
    nexmark_events=4_096,
    followed_joins=20,
    join_warm_ups=1,
    spark_joins=2,
    peer_join_rows=8_192,
    rows_per_file=16_384,
    files=8,
    files_per_batch=2,
    rows_per_small_file=8_192,
    rounds=1,
    more_rounds=0,
    few=4,
    medium=8,
    many=16,
    most=32,
    peer_rows=4_096,
    peer_seconds=0.2,
    job_rows=200,
    job_few=100,
    stream_rows=1_000,
    flink_rows=(1_000, 2_000),
    changes=256,
    rate=1_000,
    warm_seconds=0.5,
    seconds=1.0,
    keys=50,
    first_rules=500,
    most_rules=2_000,
    first_dense=8,
    most_dense=32,
    steps=1,
)
