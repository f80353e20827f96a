"""Compiled loops: the machine code of another version is discarded."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numba
import pytest

import tureen
from tureen.stems.sort_kernels import KERNEL_FILES, selects_any


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
