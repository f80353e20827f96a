"""Cells: which rows of a block satisfy which clauses.

Takes lists and bitmaps of rows, one per clause. Holds them as one Arrow record batch per block.
Gives the rows of a clause. Does not know clauses beyond their numbers.

* `cell.py`: cells and their readers; `container_kernels.py`, `decoding.py`, `bitmaps.py`: compiled loops over them
* `lineage_pairs.py`: a cell as pairs of a row and a clause (CACQ's lineage)
"""
