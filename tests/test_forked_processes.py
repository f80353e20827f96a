"""Test files in forked processes: the same results as in one process, and none is lost with a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests import forked_processes

FILES = {
    "test_a.py": """
import os, pytest, time

@pytest.fixture(scope="module")
def module():
    yield
    assert not os.environ.get("FAIL_AFTER_MODULE")

def test_fails():
    print("printed", os.getpid())
    assert 1 == 2

def test_skipped():
    pytest.skip("not here")

@pytest.mark.xfail
def test_fails_as_expected():
    assert 0

def test_passes(tmp_path, module):
    (tmp_path / "file").touch()

@pytest.mark.timeout(0.1)
def test_never_ends():
    time.sleep(100)
""",
    "test_b.py": "def test_passes(tmp_path): (tmp_path / 'file').touch()",
    "test_c.py": "import os\ndef test_is_killed(): os.kill(os.getpid(), 9)\ndef test_is_not_run(): pass",
    "test_d.py": """
import pytest

@pytest.fixture(scope="session")
def fails_at_the_end():
    yield
    raise RuntimeError("at the end")

def test_passes(fails_at_the_end): pass
""",
}


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", forked_processes.__name__, "-p", "pytest_timeout"]
    # An empty file of settings: not those of this repository.
    settings = ["-c", "/dev/null", "--rootdir", str(folder), "-p", "no:cacheprovider", "-ra"]
    # Without all other plugins, which take seconds to import.
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}
    return subprocess.run(
        [*command, *settings, str(folder), *options], capture_output=True, text=True, env=env, check=False
    )


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text(FILES[name])


def closing_lines(output: str) -> list[str]:
    """The lines of the summary, without the time and in any order of the files."""
    summary = output[output.index("short test summary info") :].splitlines()[1:]
    return [*sorted(summary[:-1]), summary[-1].partition(" in ")[0]]


def test_results_equal_those_of_one_process(tmp_path: Path) -> None:
    write(tmp_path, "test_a.py", "test_b.py")
    single, forked = run(tmp_path), run(tmp_path, "--processes", "3")
    assert closing_lines(forked.stdout) == closing_lines(single.stdout)
    assert closing_lines(forked.stdout)[-1].endswith("2 failed, 2 passed, 1 skipped, 1 xfailed")
    assert (forked.returncode, single.returncode) == (1, 1)
    assert "Captured stdout call" in forked.stdout
    assert "Timeout (>0.1s)" in forked.stdout


def test_processes_that_do_not_end_well_fail_the_run(tmp_path: Path) -> None:
    write(tmp_path, "test_b.py", "test_c.py", "test_d.py")
    forked = run(tmp_path, "--processes", "2")
    assert forked.returncode == 1
    for name, code in (("test_c.py::test_is_killed", -9), ("test_d.py::test_passes", 1)):
        assert f"{name} - the process of this test" in forked.stdout
        assert f"the process of this test ended with exit code {code}" in forked.stdout
    assert closing_lines(forked.stdout)[-1].endswith(" 2 failed, 2 passed")


def test_the_command_ends_before_the_first_test(tmp_path: Path) -> None:
    (tmp_path / "test_e.py").write_text(f"def test_written(): assert open({str(tmp_path / 'written')!r}).read() == 'x'")
    command = f"{sys.executable} -c \"import time; time.sleep(0.5); open('{tmp_path}/written', 'w').write('x')\""
    assert run(tmp_path, "--processes", "2", "--meanwhile", command).returncode == 0
    failed = run(tmp_path, "--meanwhile", "echo the reason; false")
    assert (failed.returncode, "the reason" in failed.stdout) == (2, True), failed.stdout + failed.stderr


def test_few_processes_start_a_session_of_spark(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import os, pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def spark(request): (request.config.rootpath / f'session-{os.getpid()}').touch()\n"
    )
    for number in range(6):
        (tmp_path / f"test_{number}.py").write_text("import time\ndef test_it(spark): time.sleep(0.2)")
    (tmp_path / "test_other.py").write_text("def test_it(): pass")
    output = run(tmp_path, "--processes", "4").stdout
    assert "7 passed" in output
    assert len(list(tmp_path.glob("session-*"))) == forked_processes.SPARK_PROCESSES


def test_files_that_no_process_has_run_fail(tmp_path: Path) -> None:
    write(tmp_path, "test_c.py")
    for number in range(2):
        (tmp_path / f"test_d{number}.py").write_text("import os\ndef test_is_killed(): os.kill(os.getpid(), 9)")
    (tmp_path / "test_e.py").write_text("def test_is_not_run(): pass")
    output = run(tmp_path, "--processes", "2").stdout
    assert "no process ran the tests of this file" in output
