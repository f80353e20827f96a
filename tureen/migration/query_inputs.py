"""Format 3 to 4: a query has inputs, instead of one stream and one clause, and a language."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_STATEMENTS = """
CREATE TABLE query_inputs (
    query_id VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    stream_id INTEGER,
    table_id VARCHAR,
    clause_id INTEGER,
    PRIMARY KEY (query_id, number),
    FOREIGN KEY(stream_id) REFERENCES streams (id),
    FOREIGN KEY(table_id) REFERENCES dimensions (id),
    FOREIGN KEY(clause_id) REFERENCES clauses (id)
) WITHOUT ROWID;
CREATE INDEX ix_query_inputs_stream_id ON query_inputs (stream_id);
CREATE INDEX ix_query_inputs_table_id ON query_inputs (table_id);
CREATE INDEX ix_query_inputs_clause_id ON query_inputs (clause_id);

INSERT INTO query_inputs (query_id, number, kind, stream_id, clause_id)
SELECT id, 0, 'stream', stream_id, clause_id FROM queries;
INSERT INTO query_inputs (query_id, number, kind, stream_id) SELECT id, 0, 'stream', stream_id FROM templates;
INSERT INTO query_inputs (query_id, number, kind) SELECT id, 1, 'values' FROM templates;

CREATE TABLE new_queries (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    shared BOOLEAN NOT NULL,
    name VARCHAR,
    name_key VARCHAR,
    sql TEXT NOT NULL,
    shape VARCHAR NOT NULL,
    language VARCHAR DEFAULT 'sql' NOT NULL,
    eager BOOLEAN,
    seq BIGINT NOT NULL,
    registered_at BIGINT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (owner, name_key)
);
INSERT INTO new_queries (id, owner, shared, name, name_key, sql, shape, eager, seq, registered_at)
SELECT id, owner, shared, name, name_key, sql, shape, eager, seq, registered_at FROM queries;
DROP TABLE queries;
ALTER TABLE new_queries RENAME TO queries;
CREATE INDEX ix_queries_shape ON queries (shape);
CREATE INDEX queries_in_order ON queries (seq, id);

CREATE TABLE new_templates (
    id VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    shared BOOLEAN NOT NULL,
    name VARCHAR,
    name_key VARCHAR,
    sql TEXT NOT NULL,
    shape VARCHAR NOT NULL,
    language VARCHAR DEFAULT 'sql' NOT NULL,
    columns TEXT NOT NULL,
    path VARCHAR NOT NULL,
    rows BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    registered_at BIGINT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (owner, name_key),
    UNIQUE (path)
);
INSERT INTO new_templates (id, owner, shared, name, name_key, sql, shape, columns, path, rows, seq, registered_at)
SELECT id, owner, shared, name, name_key, sql, shape, columns, path, rows, seq, registered_at FROM templates;
DROP TABLE templates;
ALTER TABLE new_templates RENAME TO templates;
CREATE INDEX ix_templates_shape ON templates (shape);
"""

_TRIGGERS = {
    "query_changed": "UPDATE ON queries",
    "query_gone": "DELETE ON queries",
    "template_changed": "UPDATE ON templates",
    "template_gone": "DELETE ON templates",
}
"""They went with their tables."""


def add_query_inputs(_: Path, database: sqlite3.Connection) -> None:
    """Move streams and clauses from queries and templates to their inputs."""
    for statement in _STATEMENTS.split(";"):
        database.execute(statement)
    for name, change in _TRIGGERS.items():
        database.execute(f"CREATE TRIGGER {name} AFTER {change} BEGIN UPDATE standing SET version = version + 1; END")
