"""The catalog's tables, but those of templates, joins and peers; `catalog_schema.py` has all of them.

Every commit takes the next `seq`. A run's `matched_seq` is the commit up to which the eager clauses have been matched
with it: a clause with a larger seq is *owed* by that run (docs/decisions/0001). A clause has a `number` while it is
eager: query runs cover intervals of numbers, and cells refer to clauses by them (docs/decisions/0014).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy import text as sa_text

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", String, primary_key=True),
    Column("value", String, nullable=False),
)

counter = Table(
    "counter",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    # The number that the next eager clause takes; numbers are never reused.
    Column("next_number", BigInteger, nullable=False),
)

standing = Table(
    "standing",
    metadata,
    Column("id", Integer, primary_key=True),
    # Increased by triggers whenever a standing query is changed or unregistered: see `catalog_schema.py`.
    Column("version", BigInteger, nullable=False),
)

streams = Table(
    "streams",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False),
    # The lower-case name while the stream exists; NULL once it is dropped, so that the name is free again.
    Column("name_key", String, unique=True),
    Column("columns", Text, nullable=False),
    Column("time", String),
    Column("clock", String, nullable=False),
    # How long tuples are kept, in microseconds; NULL for ever, or as long as they are needed (docs/decisions/0054).
    Column("retain", BigInteger),
    Column("keeps_needed", Boolean, nullable=False, default=False, server_default=sa_text("0")),
    # The time before which tuples were freed because nothing needs them; NULL if none was.
    Column("freed_before", BigInteger),
    Column("source", Text),
    Column("next_id", BigInteger, nullable=False, default=0),
    Column("last_time", BigInteger),
    # The offset in the stream's inbox up to which rows are in runs.
    Column("taken", BigInteger, nullable=False, default=0),
    # The commit up to which the eager clauses are in compiled query runs.
    Column("compiled_seq", BigInteger, nullable=False, default=0),
    # Of a derived stream: the query whose changes are its tuples, and up to where these are in its inbox. The keys of
    # its pushes are later ends (docs/decisions/0033).
    Column("query_id", String),
    Column("derived_to", String),
    # The columns of its unique key, as a list in JSON; how late a tuple may be, in microseconds; and whether it has had
    # punctuations (docs/decisions/0037).
    Column("unique_key", Text),
    Column("lateness", BigInteger),
    # The column that is true in the last row with a key, and the columns of the key, as JSON.
    Column("punctuate", Text),
    # The path of its items in XML documents; NULL for "rows/row".
    Column("item", Text),
    # Of a stream of another server: that server's name, and the stream's identity in the network. Its tuples are in
    # replicas, hidden streams that refer to it (docs/decisions/0052).
    Column("home", Text),
    Column("origin", Text),
    Column("replica_of", Integer),
    Column("punctuated", Boolean, nullable=False, default=False, server_default=sa_text("0")),
    # The number of punctuations in records that are in runs; the next one has this number.
    Column("punctuation_count", BigInteger, nullable=False, default=0, server_default=sa_text("0")),
    sqlite_autoincrement=True,
)

dimensions = Table(
    "dimensions",
    metadata,
    # Created before the first file is written, because it is part of the file's path.
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("name_key", String, nullable=False, unique=True),
    Column("columns", Text, nullable=False),
    Column("path", String, nullable=False, unique=True),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("created_seq", BigInteger, nullable=False),
    Column("changed_seq", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
)

clauses = Table(
    "clauses",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("stream_id", ForeignKey("streams.id"), nullable=False),
    Column("text", Text, nullable=False),
    # The number of queries that have it; of those that require it to be eager; of those that leave it to the engine.
    Column("refs", Integer, nullable=False),
    Column("eager_refs", Integer, nullable=False),
    Column("auto_refs", Integer, nullable=False),
    # Whether the engine chose to make it eager, and whether it raised on some tuple: then the engine must not.
    Column("chosen", Boolean, nullable=False, default=False),
    Column("raised", Boolean, nullable=False, default=False),
    # Its number in query runs and cells while it is eager; a new one each time that it becomes eager.
    Column("number", BigInteger),
    # The commit by which it became eager; meaningful while it has a number.
    Column("seq", BigInteger, nullable=False),
    Column("error", Text),
    Index("clauses_by_text", "stream_id", "text", unique=True),
    Index("clauses_by_number", "number", unique=True),
    Index("clauses_by_seq", "stream_id", "seq"),
    sqlite_autoincrement=True,
)

queries = Table(
    "queries",
    metadata,
    Column("id", String, primary_key=True),
    # Names are unique per owner.
    Column("owner", String, nullable=False),
    Column("shared", Boolean, nullable=False, default=False),
    Column("name", String),
    Column("name_key", String),
    Column("sql", Text, nullable=False),
    # The text without its constants, by which queries of one shape are counted.
    Column("shape", String, nullable=False, index=True),
    Column("language", String, nullable=False, default="sql", server_default="sql"),
    # Whether its results are to be kept ready; NULL leaves it to the engine.
    Column("eager", Boolean),
    # How its join is computed while it is followed, and whether tuples without partners are suspended; NULL leaves it
    # to the engine.
    Column("plan", String),
    Column("jit", Boolean),
    Column("seq", BigInteger, nullable=False),
    Column("registered_at", BigInteger, nullable=False),
    UniqueConstraint("owner", "name_key"),
    Index("queries_in_order", "seq", "id"),
)

query_inputs = Table(
    "query_inputs",
    metadata,
    # The handle of a query or a template.
    Column("query_id", String, primary_key=True),
    # Its index in FROM.
    Column("number", Integer, primary_key=True),
    # "stream", "table", or "values" for the parameters of a template.
    Column("kind", String, nullable=False),
    Column("stream_id", ForeignKey("streams.id"), index=True),
    Column("table_id", ForeignKey("dimensions.id"), index=True),
    # The factors over this input alone; NULL for inputs of a template and for inputs that are not streams. Without
    # the index, deleting a clause would scan all inputs to check its foreign key.
    Column("clause_id", ForeignKey("clauses.id"), index=True),
    # From where on its window needs the tuples of a stream that keeps what is needed; NULL for other relations.
    Column("needs", Text),
    Index("query_inputs_by_need", "stream_id", "needs", sqlite_where=sa_text("needs IS NOT NULL")),
    sqlite_with_rowid=False,
)

reserved_ids = Table(
    "reserved_ids",
    metadata,
    Column("stream_id", Integer, primary_key=True),
    # An offset of the stream's inbox: pushed rows up to it have reserved ids.
    Column("end", BigInteger, primary_key=True),
    # The id of the first of these rows that is not in a run.
    Column("first_id", BigInteger, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("stream_id", ForeignKey("streams.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("path", String, nullable=False, unique=True),
    Column("rows", BigInteger, nullable=False),
    Column("first_id", BigInteger, nullable=False),
    Column("min_time", BigInteger, nullable=False),
    Column("max_time", BigInteger, nullable=False),
    Column("indexed", Boolean, nullable=False),
    Column("matched_seq", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("written_at", BigInteger, nullable=False),
    Index("runs_of_stream", "stream_id", "first_id"),
    sqlite_autoincrement=True,
)

cells = Table(
    "cells",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("path", String, nullable=False, unique=True),
    Column("bytes", BigInteger, nullable=False),
    # The file holds the clauses that became eager after `since`, up to the next file's; `clauses` is their number.
    Column("since", BigInteger, nullable=False),
    Column("clauses", Integer, nullable=False),
    sqlite_autoincrement=True,
)

query_runs = Table(
    "query_runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("stream_id", ForeignKey("streams.id"), nullable=False),
    Column("path", String, nullable=False, unique=True),
    # It covers the numbers from `first` to `last`: the clauses that were eager when it was compiled, and how many of
    # these no longer are.
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("clauses", Integer, nullable=False),
    Column("dead", Integer, nullable=False, default=0),
    Index("query_runs_of_stream", "stream_id", "first"),
    sqlite_autoincrement=True,
)

sinks = Table(
    "sinks",
    metadata,
    Column("sink_id", String, primary_key=True),
    Column("stream_id", Integer, primary_key=True),
    Column("batch_id", BigInteger, nullable=False),
)

push_keys = Table(
    "push_keys",
    metadata,
    Column("stream_id", Integer, primary_key=True),
    Column("key", String, primary_key=True),
    Column("digest", String, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("pushed_at", BigInteger, nullable=False),
    # The number of its rows that were rejected.
    Column("rejected", BigInteger, nullable=False, default=0, server_default=sa_text("0")),
)

closed_files = Table(
    "closed_files",
    metadata,
    # What the punctuations of a stream close, up to the offset `end` of its log (docs/decisions/0037).
    Column("id", Integer, primary_key=True),
    Column("stream_id", ForeignKey("streams.id"), nullable=False, index=True),
    Column("path", String, nullable=False, unique=True),
    Column("end", BigInteger, nullable=False),
    Column("entries", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

taken_punctuations = Table(
    "taken_punctuations",
    metadata,
    # The newest punctuations of records that are in runs: a JSON list of pairs of the next tuple id and the pattern.
    Column("id", Integer, primary_key=True),
    Column("stream_id", Integer, nullable=False, index=True),
    Column("first_number", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("content", Text, nullable=False),
    sqlite_autoincrement=True,
)

rejected = Table(
    "rejected",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("stream_id", Integer, nullable=False, index=True),
    Column("rejected_at", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("row", Text, nullable=False),
    sqlite_autoincrement=True,
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String, primary_key=True),
    Column("principal", String, nullable=False),
    Column("scopes", String, nullable=False),
    Column("note", Text),
    # The SHA-256 of the secret; the secret itself is not stored.
    Column("digest", String, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("last_used_at", BigInteger),
)

dead_attempts = Table(
    "dead_attempts",
    metadata,
    Column("attempt", String, primary_key=True),
    Column("marked_at", BigInteger, nullable=False),
)

expiring = Table(
    "expiring",
    metadata,
    # Runs that are before their stream's horizon, and since when: they are dropped only after a grace.
    Column("run_id", Integer, primary_key=True),
    Column("stream_id", Integer, nullable=False),
    Column("since", BigInteger, nullable=False),
)

garbage = Table(
    "garbage",
    metadata,
    # Files that a commit replaced; readers may be about to open them, so they are removed after a grace.
    Column("path", String, primary_key=True),
    Column("since", BigInteger, nullable=False),
)

functions = Table(
    "functions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name_key", String, nullable=False, unique=True),
    Column("name", String, nullable=False),
    # The types, and the source or the import path: see `tureen.functions.user_function`.
    Column("definition", Text, nullable=False),
    Column("owner", String, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

damage = Table(
    "damage",
    metadata,
    # Files whose bytes differ from those that were written; `lost` if they hold data that exists nowhere else.
    Column("path", String, primary_key=True),
    Column("detail", Text, nullable=False),
    Column("lost", Boolean, nullable=False),
    Column("noticed_at", BigInteger, nullable=False),
)
