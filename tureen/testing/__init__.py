"""The test kit: a plain twin of the engine, and random streams, rows and SQL to compare it with.

Takes: SQL texts and rows. Holds: every tuple, as a Python dict. Gives: the right answer, slowly.
Does not know: Spark, runs, indexes, the pot. `tureen.testing.hand` is the engine itself, moved by hand.
The random inputs are reached by `tureen.testing.strategies`; it and what makes their SQL alone need Hypothesis.
"""

from tureen.testing.oracle import Handle, Oracle
from tureen.testing.values import comparable

__all__ = ["Handle", "Oracle", "comparable"]
