"""Tables of users: dimension data without time, replaced as a whole.

Changes need neither the lease nor Spark: the content is a file that a transaction of any process publishes.
"""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa

from tureen.arguments import check_name, check_schema, check_text
from tureen.errors import InvalidRows
from tureen.faults import crash_point
from tureen.pot.catalog import Catalog, check_attempt
from tureen.pot.files import new_attempt
from tureen.pot.parts import missing_file
from tureen.pot.tables import (
    Dimension,
    check_free,
    create_dimension,
    drop_dimension,
    find_dimension,
    list_dimensions,
    replace_content,
)
from tureen.schema import Schema
from tureen.stems.table_content import content_of
from tureen.stems.table_files import read_content, write_content
from tureen.window import from_micros

_READ_ATTEMPTS = 5


class Dimensions:
    """The tables of one pot."""

    def __init__(self, catalog: Catalog) -> None:
        """Read and change the tables of that catalog."""
        self._catalog = catalog

    def create(self, name: str, schema: str | Schema | None, rows: Any) -> None:
        """Create a table with its first rows."""
        name = check_name(name, "table")
        given_schema = None if schema is None else Schema(check_schema(schema).columns)
        with self._catalog.read() as tx:
            # Before many rows are read in vain; the commit checks it again.
            check_free(tx, name)
        declared, batch = content_of(given_schema, rows)
        check_schema(declared)
        table_id, attempt = uuid.uuid4().hex, new_attempt()
        content = write_content(self._catalog.root, table_id, attempt, batch)
        crash_point("table.before_commit")
        with self._catalog.write() as tx:
            check_attempt(tx, attempt)
            create_dimension(tx, table_id, name, declared, content)
            crash_point("table.in_commit")
        crash_point("table.after_commit")

    def replace(self, name: str, rows: Any) -> None:
        """Replace all rows of a table atomically."""
        table = self._find(name)
        if rows is None:
            raise InvalidRows("rows must not be None", hint="pass [] for no rows")
        _, batch = content_of(table.schema, rows)
        attempt = new_attempt()
        content = write_content(self._catalog.root, table.id, attempt, batch)
        crash_point("table.before_commit")
        with self._catalog.write() as tx:
            check_attempt(tx, attempt)
            replace_content(tx, table, content)
            crash_point("table.in_commit")
        crash_point("table.after_commit")

    def read(self, name: str) -> pa.Table:
        """All rows of a table."""
        for _ in range(_READ_ATTEMPTS):
            table = self._find(name)
            try:
                return read_content(self._catalog.root, table.content)
            except FileNotFoundError:
                # It was replaced and swept after it was looked up.
                continue
        try:
            return read_content(self._catalog.root, self._find(name).content)
        except FileNotFoundError as error:
            raise missing_file(error) from error

    def drop(self, name: str) -> None:
        """Remove a table."""
        check_text(name, "a table's name")
        with self._catalog.write() as tx:
            drop_dimension(tx, find_dimension(tx, name))

    def describe(self) -> list[dict[str, Any]]:
        """The tables, in order of creation."""
        with self._catalog.read() as tx:
            return [_describe(table) for table in list_dimensions(tx)]

    def _find(self, name: str) -> Dimension:
        check_text(name, "a table's name")
        with self._catalog.read() as tx:
            return find_dimension(tx, name)


def _describe(table: Dimension) -> dict[str, Any]:
    return {
        "name": table.name,
        "schema": table.schema.sql,
        "rows": table.content.rows,
        "bytes": table.content.bytes,
        "changed_at": from_micros(table.changed_at),
    }
