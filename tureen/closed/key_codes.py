"""The values of Arrow columns as integers: codes that have the order of the values, or 128-bit hashes.

Hashes stand for values that do not fit into 64 bits (STRING, DECIMALs of more than 18 digits) and for values of several
columns. Two values with the same 128 bits would be taken for equal; of ten million values, the probability is below
10^-24.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from xxhash import xxh3_128_digest

from tureen.closed.pattern import Code
from tureen.schema import Kind, Type

_INT64_DIGITS = 18
WITHOUT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)
_NAN = np.int64(0x7FF0000000000001)
_SHORT, _CHUNK = 16, 65_536
"""The bytes of a short text, and the number of texts that are hashed at once."""
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


class Codes(NamedTuple):
    """The codes of some rows; with a second half if they are hashes. NULL rows are not valid."""

    first: np.ndarray
    second: np.ndarray | None
    valid: np.ndarray


def has_order(column_type: Type) -> bool:
    """Whether the values of a type have 64-bit codes, with their order."""
    if column_type.kind is Kind.DECIMAL:
        return column_type.precision <= _INT64_DIGITS
    return column_type.kind is not Kind.STRING


def codes_of(column_type: Type, values: pa.Array) -> Codes:
    """The codes of a column's values."""
    valid = _valid(values)
    if not has_order(column_type):
        first, second = _hashes(column_type, values)
        return Codes(first, second, valid)
    if column_type.kind is Kind.DECIMAL:
        return Codes(_words(values)[:, 0].copy(), None, valid)
    if column_type.kind is Kind.BOOLEAN:
        return Codes(
            values.fill_null(False).cast(pa.int8()).to_numpy(zero_copy_only=False).astype(np.int64), None, valid
        )
    raw = np.frombuffer(values.buffers()[1] or b"", _dtype(values.type))
    numbers = raw[values.offset : values.offset + len(values)]
    if pa.types.is_floating(values.type):
        return Codes(_float_codes(numbers), None, valid)
    return Codes(numbers.astype(np.int64), None, valid)


def combined_codes(columns: Sequence[Codes]) -> Codes:
    """The hashes of the values of several columns together; valid where all of them are."""
    valid = columns[0].valid.copy()
    halves = [np.full(len(valid), factor) for factor in _FACTORS]
    for codes in columns:
        valid &= codes.valid
        for part in (codes.first, codes.second):
            if part is not None:
                halves = [
                    _mixed(half ^ part.view(np.uint64), factor) for half, factor in zip(halves, _FACTORS, strict=True)
                ]
    return Codes(halves[0].view(np.int64), halves[1].view(np.int64), valid)


def code_arrays(column_type: Type, codes: Sequence[Code]) -> Codes:
    """The codes of a pattern as `codes_of` returns them for rows."""
    valid = np.ones(len(codes), np.bool_)
    if has_order(column_type):
        return Codes(np.array(codes, np.int64), None, valid)
    if column_type.kind is Kind.STRING:
        texts = [str(code).encode() for code in codes]
        offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
        first, second = _text_hashes(offsets, np.frombuffer(b"".join(texts), np.uint8))
    else:
        words = b"".join(int(code).to_bytes(16, "little", signed=True) for code in codes)
        first, second = _mixed_words(np.frombuffer(words, np.int64).reshape(-1, 2))
    return Codes(first, second, valid)


def _valid(values: pa.Array) -> np.ndarray:
    if values.null_count == 0:
        return np.ones(len(values), np.bool_)
    valid: np.ndarray = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _dtype(arrow: pa.DataType) -> str:
    return f"{'f' if pa.types.is_floating(arrow) else 'i'}{arrow.bit_width // 8}"


def _float_codes(numbers: np.ndarray) -> np.ndarray:
    """As `float_code` for each number."""
    doubles = numbers.astype(np.float64) + 0.0
    bits = doubles.view(np.int64)
    codes = np.where(bits >= 0, bits, bits ^ WITHOUT_SIGN)
    codes[np.isnan(doubles)] = _NAN
    return codes


def _words(values: pa.Array) -> np.ndarray:
    """The two 64-bit words of each DECIMAL, the low one first."""
    words = np.frombuffer(values.buffers()[1] or b"", np.int64).reshape(-1, 2)
    return words[values.offset : values.offset + len(values)]


def _hashes(column_type: Type, values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    if column_type.kind is Kind.DECIMAL:
        return _mixed_words(_words(values))
    buffers = values.buffers()
    offsets = np.frombuffer(buffers[1] or bytes(4), np.int32)[values.offset : values.offset + len(values) + 1]
    return _text_hashes(offsets.astype(np.int64), np.frombuffer(buffers[2] or b"", np.uint8))


def _text_hashes(offsets: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hashes of texts: of short ones all their bytes are mixed at once, long ones are hashed one by one."""
    rows = max(0, len(offsets) - 1)
    first, second = np.empty((2, rows), np.int64)
    for start in range(0, rows, _CHUNK):
        part = offsets[start : start + _CHUNK + 1]
        lengths, places = np.diff(part), np.arange(_SHORT)
        index = np.minimum(part[:-1, None] + places, max(0, len(data) - 1))
        block = data[index] if len(data) else np.zeros(index.shape, np.uint8)
        block[places >= lengths[:, None]] = 0
        words = block.view(np.int64)
        low, high = (np.ascontiguousarray(words[:, half]) for half in (0, 1))
        valid = np.ones(len(lengths), np.bool_)
        mixed = combined_codes([Codes(low, high, valid), Codes(lengths, None, valid)])
        assert mixed.second is not None
        first[start : start + _CHUNK], second[start : start + _CHUNK] = mixed.first, mixed.second
    for row in np.flatnonzero(np.diff(offsets) > _SHORT).tolist():
        first[row], second[row] = np.frombuffer(
            xxh3_128_digest(data[offsets[row] : offsets[row + 1]].tobytes()), np.int64
        )
    return first, second


def _mixed_words(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    valid = np.ones(len(words), np.bool_)
    low, high = (np.ascontiguousarray(words[:, half]) for half in (0, 1))
    mixed = combined_codes([Codes(low, high, valid)])
    assert mixed.second is not None
    return mixed.first, mixed.second


def _mixed(half: np.ndarray, factor: np.uint64) -> np.ndarray:
    """A bijection of 64 bits in which every bit of the argument affects most bits of the result."""
    half = (half ^ (half >> np.uint64(32))) * factor
    half = (half ^ (half >> np.uint64(29))) * _FACTORS[0]
    mixed: np.ndarray = half ^ (half >> np.uint64(32))
    return mixed
