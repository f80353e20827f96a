"""Partial aggregates: kept per run, combined over any window.

Takes keys and arguments of a run's tuples, as Arrow columns. Holds a tree of partial aggregates over them (PSoup §6,
Fig. 14). Gives the groups of any stretch of the run, and of its panes. Does not know windows, the pot or Spark.
"""
