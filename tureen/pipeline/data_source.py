"""The Spark formats: the public "tureen", and "tureen_inbox", which the engine uses for pushed streams.

Spark imports this in half a dozen planning processes before the first batch, so everything else is imported on demand.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from tureen.pipeline.answers import AnswerReader
    from tureen.pipeline.inbox_sink import InboxSink
    from tureen.pipeline.inbox_source import InboxReader
    from tureen.pipeline.sink import BatchSink, StreamSink

# ruff: noqa: PLC0415, ARG002, N802 - imports are on demand; the names and arguments are Spark's


class TureenDataSource(DataSource):
    """`format("tureen")` with the options `pot` and `stream` (to write) or `query` (to read)."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "tureen"

    def schema(self) -> str:
        """The columns of a query's answer."""
        from tureen.pipeline.answers import answer_schema

        return answer_schema(self._pot(), self._option("query"))

    def reader(self, schema: StructType) -> AnswerReader:
        """Read a query's answer, as of now or of the time in the option `now`."""
        from tureen.pipeline.answers import AnswerReader

        return AnswerReader(self._pot(), self._option("query"), self.options.get("now"))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:
        """Write a streaming DataFrame into a stream."""
        from tureen.pipeline.heap import freeze
        from tureen.pipeline.sink import StreamSink

        freeze()
        return StreamSink(self._pot(), self._option("stream"), schema.names, self.options.get("sink_id"))

    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        """Append a DataFrame to a stream."""
        from tureen.errors import TureenError
        from tureen.pipeline.sink import BatchSink

        if overwrite:
            raise TureenError("a stream cannot be overwritten", hint='write with mode("append")')
        return BatchSink(self._pot(), self._option("stream"), schema.names, None)

    def _pot(self) -> Path:
        return Path(self._option("pot")).absolute()

    def _option(self, name: str) -> str:
        from tureen.errors import TureenError

        value = self.options.get(name)
        if value is None:
            raise TureenError(f"format tureen needs the option '{name}'", hint=f'.option("{name}", …)')
        return str(value)


class InboxDataSource(DataSource):
    """The source and sink of pushed streams; registered by the engine for its own use."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "tureen_inbox"

    def schema(self) -> str:
        """The columns of a reference."""
        from tureen.pipeline.inbox_source import SCHEMA

        return SCHEMA

    def streamReader(self, schema: StructType) -> InboxReader:
        """The source."""
        from tureen.pipeline.inbox_source import InboxReader

        return InboxReader(Path(self.options["pot"]), int(self.options.get("tasks", "2")))

    def streamWriter(self, schema: StructType, overwrite: bool) -> InboxSink:
        """The sink."""
        from tureen.pipeline.heap import freeze
        from tureen.pipeline.inbox_sink import InboxSink

        freeze()
        return InboxSink(Path(self.options["pot"]))
