"""The pipeline: the only folder that knows Spark.

Takes pushed rows, Spark's streaming DataFrames and new queries. Holds the Spark session and its streaming queries.
Gives commits: data runs, cells, join runs, compiled query runs. Does not know HTTP.

* `engine.py`: the threads of a pot that is open for writing; `streaming.py`: its streaming queries;
  `source_pushing.py`: outside sources of streams whose rows are checked
* `session.py`, `gateway.py`, `spark_home.py`, `spark_settings.py`, `priority.py`: Spark and its JVM
* `daemon.py`, `preload.py`, `heap.py`: Spark's Python workers
* `data_source.py`, `sink.py`, `answers.py`: the format "tureen"
* `inbox_source.py`, `inbox_sink.py`, `inbox_task.py`: pushed rows
* `arrival.py`, `pinning.py`: a batch becomes matched runs; `visibility.py`: whether the driver sees workers' files
* `compiling.py`, `debts.py`, `choosing.py`, `upkeep.py`: query runs, cells that are owed, eager or lazy, merging
* `join_keeping.py`, `join_task.py`: joined tuples of new tuples become join runs; `part_joining.py`: from sub-joins
* `freeing.py`: dropping runs that nothing needs
* `derivation.py`, `deriving.py`: the changes of a query become the tuples of a stream; of all such streams
* `key_indexing.py`: key indexes that standing joins need, in advance
* `verifying.py`, `repair.py`: verifying a pot and repairing damage
"""
