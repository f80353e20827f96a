"""The files of `deploy/` fit the program: settings, options, variables and paths."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tureen.service.settings import PREFIX, Settings, load

DEPLOY = Path(__file__).parents[1] / "deploy"
VARIABLES = {PREFIX + setting.name.upper() for setting in dataclasses.fields(Settings)}


def test_example_settings_are_valid() -> None:
    settings = load({}, {}, str(DEPLOY / "tureen.toml"))
    assert (settings.pot, settings.log) == ("/var/lib/tureen/pot", "json")
    text = (DEPLOY / "tureen.toml").read_text()
    for name in re.findall(r"^# (\w+) = ", text, re.MULTILINE):
        assert PREFIX + name.upper() in VARIABLES, name


def test_image_sets_known_variables_and_runs_unprivileged() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert set(re.findall(r"^\s+(TUREEN_\w+)=", text, re.MULTILINE)) <= VARIABLES
    assert re.search(r"^USER 7707:7707$", text, re.MULTILINE)
    assert "/healthz" in text
    sources = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
    included = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    for path in " ".join(sources).split():
        assert (DEPLOY.parent / path).exists(), path
        assert f"!{path}" in included, path
    assert "'.[server]'" in text


def test_unit_timeout_exceeds_shutdown_seconds() -> None:
    unit = (DEPLOY / "tureen.service").read_text()
    seconds = re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert seconds is not None
    assert int(seconds.group(1)) > load({}, {}, str(DEPLOY / "tureen.toml")).shutdown_seconds
    for part in ("DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=\n"):
        assert part in unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_unit() -> None:
    unit = str(DEPLOY / "tureen.service")
    command = ["systemd-analyze", "verify", "--man=no", unit]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in result.stderr.splitlines() if "tureen.service" in line]
    # The unit's executable is not installed on this machine.
    assert [line for line in lines if "is not executable" not in line] == []
