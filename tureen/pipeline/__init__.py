"""The pipeline: the only folder that knows Spark.

Takes pushed rows, Spark's streaming DataFrames and new queries. Holds the Spark session and what runs on it.
Gives commits: data runs, cells, compiled query runs. Does not know the language or HTTP.
"""
