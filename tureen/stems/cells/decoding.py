"""Compiled loops that turn bits into row ids: eight rows at a time, by a table of all bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from tureen.stems.sort_kernels import Int, compiled

# For each byte, the positions and the number of its ones.
_POSITIONS = np.zeros((256, 8), np.uint16)
_COUNTS = np.zeros(256, np.int64)
for _byte in range(256):
    _ones = [_bit for _bit in range(8) if _byte >> _bit & 1]
    _POSITIONS[_byte, : len(_ones)] = _ones
    _COUNTS[_byte] = len(_ones)


def _put_eight(_context: Any, _target: Any, _source: Any, _base: Any) -> Any:
    eight = ir.VectorType(ir.IntType(16), 8)

    def code(machine: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        target, source, base = arguments
        undefined = ir.Constant(eight, ir.Undefined)
        bases = builder.insert_element(undefined, base, ir.Constant(ir.IntType(32), 0))
        bases = builder.shuffle_vector(bases, undefined, ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8))
        positions = builder.load(builder.inttoptr(source, eight.as_pointer()), align=2, typ=eight)
        builder.store(builder.add(positions, bases), builder.inttoptr(target, eight.as_pointer()), align=2)
        return machine.get_dummy_value()

    return types.void(types.int64, types.int64, types.uint16), code


put_eight = cast(Callable[[Any, Any, Any], None], intrinsic(_put_eight))
"""Add a number to eight uint16 at one address and write them to another, by SIMD (in compiled code only)."""


@compiled
def list_bytes(data: np.ndarray, first: Int, last: Int, room: Int) -> np.ndarray:
    """The rows in [first, last) of a bitmap of bytes; raises ValueError if they are more than `room`.

    For each byte eight elements are written at once, from a table, and those of the next byte overwrite the excess: no
    branch depends on the data.
    """
    rows = np.empty(room + 8, np.uint16)
    target, source = rows.ctypes.data, _POSITIONS.ctypes.data
    count = np.int64(0)
    for i in range(first >> 3, (last + 7) >> 3):
        byte = np.int64(data[i])
        if i == first >> 3:
            byte &= 0xFF << (first & 7)
        if i == last >> 3:
            byte &= (1 << (last & 7)) - 1
        if count > room:
            break
        put_eight(target + 2 * count, source + 16 * (byte & 0xFF), np.uint16(i << 3))
        count += _COUNTS[byte & 0xFF]
    if count > room:
        raise ValueError("a bitmap has more rows than its entry says")
    return rows[:count]


@compiled
def list_mask(mask: np.ndarray, first: Int) -> np.ndarray:
    """The positions of the ones in a mask of 0 and 1, counted from `first`; its length is a multiple of eight."""
    rows = np.empty(mask.size + 8, np.uint16)
    target, source = rows.ctypes.data, _POSITIONS.ctypes.data
    words = mask.view(np.uint64)
    count = np.int64(0)
    for i in range(words.size):
        # The product moves the lowest bit of each of the eight bytes into the highest byte.
        byte = np.int64((words[i] * np.uint64(0x0102_0408_1020_4080)) >> np.uint64(56))
        put_eight(target + 2 * count, source + 16 * byte, np.uint16(first + (i << 3)))
        count += _COUNTS[byte]
    return rows[:count].copy()
