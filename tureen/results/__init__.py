"""Results: from cells to answers.

Takes a handle and NOW. Holds memory maps of runs and a view of the catalog.
Gives answers as Arrow. Does not know Spark, HTTP, or how cells came to be.
"""
