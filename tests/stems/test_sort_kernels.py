"""Compiled loops: the machine code of another version is discarded."""

from __future__ import annotations

import pickle
from pathlib import Path

import numba
import pytest

from tureen.stems.sort_kernels import selects_any


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
