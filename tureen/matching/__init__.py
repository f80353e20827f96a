"""Matching: a block of tuples and a query run give a cell.

Takes: blocks (stems) and query runs (queries). Holds: nothing but buffers that are used again.
Gives: cells, the rows of one clause in one block, and the truth of any predicate over a block.
Does not know: Spark, files, windows, who asks.
"""

from tureen.matching.buffers import Buffers
from tureen.matching.cell import Cell, CellReader, RunCells
from tureen.matching.evaluate import holds
from tureen.matching.match import match_block
from tureen.matching.select import Selector, select
from tureen.matching.tuning import Costs, Tuning
from tureen.matching.warm import warm_up
from tureen.matching.ways import describe, way_of

__all__ = [
    "Buffers",
    "Cell",
    "CellReader",
    "Costs",
    "RunCells",
    "Selector",
    "Tuning",
    "describe",
    "holds",
    "match_block",
    "select",
    "warm_up",
    "way_of",
]
