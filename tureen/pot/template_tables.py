"""The catalog's tables of templates; see `catalog_tables.py`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, String, Table, Text, UniqueConstraint

from tureen.pot.catalog_tables import metadata

templates = Table(
    "templates",
    metadata,
    Column("id", String, primary_key=True),
    Column("owner", String, nullable=False),
    Column("shared", Boolean, nullable=False, default=False),
    Column("name", String),
    Column("name_key", String),
    Column("sql", Text, nullable=False),
    Column("shape", String, nullable=False, index=True),
    Column("language", String, nullable=False, default="sql", server_default="sql"),
    Column("columns", Text, nullable=False),
    Column("path", String, nullable=False, unique=True),
    Column("rows", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("registered_at", BigInteger, nullable=False),
    UniqueConstraint("owner", "name_key"),
)

template_heads = Table(
    "template_heads",
    metadata,
    # What changes of a template when rows of parameters are added or removed; optional for one that never changed.
    Column("template_id", String, primary_key=True),
    # The number that the next row takes; numbers are never reused.
    Column("next_number", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False, default=0),
    # The column of the parameters that is returned with each change.
    Column("label", String),
)

template_parts = Table(
    "template_parts",
    metadata,
    # Files with rows that were added later; the first rows are in the template's own file.
    Column("id", Integer, primary_key=True),
    Column("template_id", String, nullable=False, index=True),
    Column("path", String, nullable=False, unique=True),
    Column("rows", BigInteger, nullable=False),
    # The first tuple of the template's first stream that its newest rows are matched with.
    Column("first_id", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

template_part_ids = Table(
    "template_part_ids",
    metadata,
    # Of a template over several streams, what `template_parts.first_id` is for its first stream.
    Column("path", String, primary_key=True),
    Column("stream_id", Integer, primary_key=True),
    Column("template_id", String, nullable=False, index=True),
    Column("first_id", BigInteger, nullable=False),
)

gone_members = Table(
    "gone_members",
    metadata,
    # The queries of a template that were unregistered, and whose rows are still in its files.
    Column("template_id", String, primary_key=True),
    Column("number", BigInteger, primary_key=True),
)
