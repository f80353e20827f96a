"""The Query SteM's runs: clauses compiled into arrays that a block can be matched with.

Takes: clauses with their ids, and a stream's schema. Holds: cut points, factors, clauses; each once.
Gives: query runs, built once, written as one Arrow file and memory-mapped by whoever matches.
Does not know: tuples, blocks, Spark, the pot.
"""

from tureen.queries.compile import compile_clauses
from tureen.queries.queryrun import QueryRun

__all__ = ["QueryRun", "compile_clauses"]
