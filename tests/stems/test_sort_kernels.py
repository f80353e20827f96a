"""Compiled loops: the machine code of another version is discarded."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numba
import numpy as np
import pytest

import tureen
from tureen.stems.index import address_of
from tureen.stems.sort_kernels import KERNEL_FILES, radix_sort, selects_any, sort_ties


@pytest.mark.parametrize("version", [numba.__version__, f"{numba.__version__} another stamp"])
def test_cached_code_of_another_version_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Such an index may name modules and types that no longer exist, so reading it would fail."""
    index = tmp_path / "loop.nbi"
    index.write_bytes(pickle.dumps(version) + b"cno_such_module\nNoSuchType\n.")
    cache_file = selects_any._cache._cache_file  # type: ignore[attr-defined]
    monkeypatch.setattr(cache_file, "_index_path", str(index))
    assert cache_file._load_index() == {}


def test_all_files_with_compiled_functions_are_in_the_stamp() -> None:
    package = Path(tureen.__file__).parent
    files = {path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")}
    calls = re.compile(r"^@compiled\b|= compiled\(", re.MULTILINE)
    # The function of `keys.py` is compiled in `sort_kernels.py`.
    assert [*KERNEL_FILES] == sorted({name for name, text in files.items() if calls.search(text)} | {"keys.py"})


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize(("low", "high"), [(0, 4), (-(2**62), 2**62), (2**40, 2**40 + 5_000)])
def test_keys_and_rows_are_sorted_stably(low: int, high: int, is_sorted: bool) -> None:
    keys = np.random.default_rng(7).integers(low, high, 3_000)
    if is_sorted:
        keys.sort()
    expected = np.argsort(keys, kind="stable")
    rows, in_order = np.arange(len(keys)), keys.copy()
    radix_sort(in_order, rows)
    assert np.array_equal(rows, expected)
    assert np.array_equal(in_order, keys[expected])


def test_ties_are_sorted_unless_they_are_many() -> None:
    keys = np.array([1, 1, 1, 2, 3, 3, 5])
    columns = [np.array([4, 4, 0, 9, 2, 1, 0]), np.array([2, 1, 7, 0, 0, 0, 0])]
    addresses = np.array([address_of(column) for column in columns])
    rows = np.arange(7)
    assert sort_ties(keys, rows, addresses, 3)
    assert rows.tolist() == [2, 1, 0, 3, 5, 4, 6]
    assert not sort_ties(keys, np.arange(7), addresses, 2)
