"""Answers, and their changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Any, NamedTuple

import pyarrow as pa

from tureen.errors import TureenError
from tureen.punctuation import Punctuation
from tureen.results.answer_text import html_table, summary_text, text_table
from tureen.window import from_micros
from tureen.xml_template import (
    METADATA_KEY,
    Part,
    decode_template,
    default_template,
    render_row,
    render_rows,
    rows_part,
)

_BATCH_ROWS = 4096


class Bounds(NamedTuple):
    """The window of an answer, both ends included; None is unbounded."""

    begin: datetime | None
    end: datetime | None

    @classmethod
    def of(cls, begin: int | None, end: int | None) -> Bounds:
        """The bounds for two instants in microseconds."""
        return cls(_moment(begin), _moment(end))


@dataclass(frozen=True, repr=False)
class Answer:
    """The rows of a query over its window at one NOW."""

    table: pa.Table
    window: Bounds
    position: str
    complete: bool
    """False if the window extends beyond the stream's retention, or tuples of another server may be missing."""
    note: str | None = None
    """Why tuples of another server may be missing; None if none are."""

    def __len__(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts."""
        return iter(self.table.to_pylist())

    @property
    def xml(self) -> str:
        """The rows as XML: in the form that a query in WXQuery constructs, or elements by the columns' paths."""
        return "".join(xml_pieces(self.table))

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame; polars must be installed."""
        try:
            import polars  # noqa: PLC0415 - it is optional
        except ImportError:
            raise TureenError("polars is not installed", hint="pip install polars") from None
        return polars.from_arrow(self.table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for any library that reads Arrow: `polars.DataFrame(answer)`, `pyarrow.table(answer)`, DuckDB."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """The first rows, how many there are, and the window."""
        return f"{text_table(self.table)}\n({self._summary})"

    def _repr_html_(self) -> str:
        """The same in a notebook."""
        return f"{html_table(self.table)}<p>{escape(self._summary)}</p>"

    @property
    def _summary(self) -> str:
        summary = summary_text(len(self), *self.window)
        if self.note is not None:
            return f"{summary}; tuples may be missing: {self.note}"
        return summary if self.complete else f"{summary}, which begins before what is retained"


@dataclass(frozen=True, slots=True)
class Change:
    """A row that joined the answer of a query; resuming from its position returns the changes after it.

    A row of a group may also change or leave. After a "reset", which has no row, the changes are all rows of the
    answer: forget those before. A punctuation promises that no later row matches it; it has no row either.
    """

    query: str
    row: Any
    """The row as a dict; if it left the answer, as it was. None for a punctuation."""
    position: str
    label: str | int | None = None
    """The label of the query, if it belongs to a template with labels."""
    kind: str = "insert"
    """One of "insert", "update", "delete", "reset" and "punctuation"."""
    before: dict[str, Any] | None = None
    """The row before it changed or left."""
    punctuation: Punctuation | None = None
    template: Part | None = field(default=None, repr=False, compare=False)
    """What renders its row as XML, if the query is one in WXQuery."""

    @property
    def xml(self) -> str:
        """The row as XML, see `Answer.xml`; empty if there is no row."""
        if not self.row:
            return ""
        part = rows_part(default_template(list(self.row)) if self.template is None else self.template)
        assert part is not None
        return render_row(part, self.row)


def stored_template(schema: pa.Schema) -> Part | None:
    """The template in the metadata of an answer's schema, which the answers of queries in WXQuery have."""
    data = (schema.metadata or {}).get(METADATA_KEY)
    return None if data is None else decode_template(data)


def xml_pieces(table: pa.Table) -> Iterator[str]:
    """The rows of an answer as XML, in pieces."""
    rows = (row for batch in table.to_batches(max_chunksize=_BATCH_ROWS) for row in batch.to_pylist())
    return render_rows(stored_template(table.schema) or default_template(table.column_names), rows)


def _moment(micros: int | None) -> datetime | None:
    if micros is None:
        return None
    try:
        return from_micros(micros)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if micros > 0 else datetime.min.replace(tzinfo=UTC)
