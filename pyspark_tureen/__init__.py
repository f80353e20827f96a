"""Makes `format("tureen")` known to every Spark 4 session: Spark looks for `DefaultSource` in `pyspark_*`."""

from tureen.pipeline.data_source import TureenDataSource as DefaultSource

__all__ = ["DefaultSource"]
