"""What is in `deploy/` fits the program: settings, options, variables and paths."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tureen.service.settings import PREFIX, Settings, load

DEPLOY = Path(__file__).parents[2] / "deploy"
KNOWN = {PREFIX + one.name.upper() for one in dataclasses.fields(Settings)}


def test_the_example_of_settings_is_taken() -> None:
    found = load({}, {}, str(DEPLOY / "tureen.toml"))
    assert (found.pot, found.log) == ("/var/lib/tureen/pot", "json")
    text = (DEPLOY / "tureen.toml").read_text()
    for name in re.findall(r"^# (\w+) = ", text, re.MULTILINE):
        assert PREFIX + name.upper() in KNOWN, name


def test_the_image_sets_what_there_is_and_runs_as_nobody() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert set(re.findall(r"^\s+(TUREEN_\w+)=", text, re.MULTILINE)) <= KNOWN
    assert re.search(r"^USER 7707:7707$", text, re.MULTILINE)
    assert "/healthz" in text
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        for one in source.split():
            assert (DEPLOY.parent / one).exists(), one


def test_the_unit_waits_longer_than_the_server_needs_to_stop() -> None:
    unit = (DEPLOY / "tureen.service").read_text()
    seconds = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert seconds is not None
    assert int(seconds.group(1)) > load({}, {}, str(DEPLOY / "tureen.toml")).shutdown_seconds
    for part in ("DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=\n"):
        assert part in unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_the_unit() -> None:
    unit = str(DEPLOY / "tureen.service")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    # The program is not installed where the unit looks for it; nothing else is wrong.
    wrong = [line for line in done.stderr.splitlines() if "tureen.service" in line and "is not executable" not in line]
    assert wrong == []
