"""The catalog's tables of joins: their kept results, and the key indexes by which they find tuples."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Integer, String, Table, Text

from tureen.pot.catalog_tables import metadata

joins = Table(
    "joins",
    metadata,
    Column("id", Integer, primary_key=True),
    # Its streams and comparisons: see `tureen.stream_join.StreamJoin`.
    Column("key", Text, nullable=False, unique=True),
    # Whether the engine chose to keep its results for the queries that leave it to the engine.
    Column("chosen", Boolean, nullable=False, default=False),
    # For each of its streams the tuple id up to which its results are in join runs, as a list in JSON.
    Column("progress", Text, nullable=False),
    # The greatest difference between the times of tuples that are joined in these runs; NULL if it has no limit.
    Column("reach", BigInteger),
    # Why its results are not kept.
    Column("refused", Text),
    sqlite_autoincrement=True,
)

query_joins = Table(
    "query_joins",
    metadata,
    # The queries that contain a join, unless they are to be evaluated when they are invoked.
    Column("query_id", String, primary_key=True),
    Column("join_id", ForeignKey("joins.id"), nullable=False, index=True),
    Column("eager", Boolean),
    Column("reach", BigInteger),
)

join_runs = Table(
    "join_runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("join_id", ForeignKey("joins.id"), nullable=False, index=True),
    Column("path", String, nullable=False, unique=True),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    # The greatest tuple id of each stream, as a list in JSON: once such a tuple is dropped, so is the run.
    Column("last_ids", Text, nullable=False),
    sqlite_autoincrement=True,
)

needed_keys = Table(
    "needed_keys",
    metadata,
    # The columns by which standing joins find tuples of a stream, with their domains, as a list in JSON: new runs have
    # an index by them (docs/decisions/0038).
    Column("stream_id", Integer, primary_key=True),
    Column("columns", Text, primary_key=True),
)

key_files = Table(
    "key_files",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
    # As in `needed_keys`: a run that was written before its stream needed an index by them has it in a file of its own.
    Column("columns", Text, nullable=False),
    Column("path", String, nullable=False, unique=True),
    Column("bytes", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)
