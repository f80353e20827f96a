"""SteMs: tuples in, data runs out.

Takes rows in any usual shape. Holds tuples in time order, cut into indexed blocks, in memory-mapped files.
Gives runs and blocks. Does not know queries, Spark, or the catalog.
"""
