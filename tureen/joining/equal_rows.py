"""Rows with equal values, by number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tureen.joining.join_input import Numbers

_BITS = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}
"""Fractions are compared by their bits: 0.0 and -0.0 are equal, but not the same."""


def equal_rows(columns: Sequence[pa.Array], rows: int) -> tuple[Numbers, Numbers]:
    """One row of each set of rows with equal values, and for each row the number of its set."""
    codes = np.zeros(rows, np.int64)
    chosen = np.zeros(min(rows, 1), np.int64)
    for column in columns:
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        bits = _BITS.get(array.type)
        encoded = pc.dictionary_encode(array if bits is None else array.view(bits), null_encoding="encode")
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        both = codes * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy()
        _, chosen, codes = np.unique(both, return_index=True, return_inverse=True)
    return chosen, codes
