"""TLS: a client trusts the certificates of its `ca`, and no others."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import tureen
from tests.service.running import RunningServer, run_server
from tureen.cli.main import run
from tureen.errors import TureenError, Unreachable


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a certificate authority, a certificate for 127.0.0.1 signed by it, and an unrelated one."""
    root = tmp_path_factory.mktemp("tls")
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout"]
    for name in ("ca", "stranger"):
        key = [*new_key, str(root / f"{name}.key")]
        _openssl("req", "-x509", *key, "-out", str(root / f"{name}.pem"), "-days", "2", "-subj", f"/CN={name}")
    key = [*new_key, str(root / "server.key")]
    _openssl("req", *key, "-out", str(root / "server.csr"), "-subj", "/CN=tureen")
    (root / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    signed = ["-CA", str(root / "ca.pem"), "-CAkey", str(root / "ca.key"), "-CAcreateserial", "-days", "2"]
    files = ["-in", str(root / "server.csr"), "-out", str(root / "server.pem"), "-extfile", str(root / "names")]
    _openssl("x509", "-req", *files, *signed)
    return root


@pytest.fixture(scope="module")
def secure(served_pot: RunningServer, authority: Path) -> Iterator[RunningServer]:
    """The pot, also served over TLS."""
    files = {"certificate": str(authority / "server.pem"), "private_key": str(authority / "server.key")}
    with run_server(served_pot.soup, **files) as server:
        yield server


def test_certificate_of_the_authority_is_trusted(secure: RunningServer, authority: Path) -> None:
    url, token = secure.url.replace("http:", "https:"), secure.tokens["admin"]
    context = ssl.create_default_context(cafile=str(authority / "ca.pem"))
    for ca in (authority / "ca.pem", str(authority / "ca.pem"), context):
        with tureen.connect(url, token, ca=ca) as client:
            assert client.status()["engine"] in ("running", "starting")
    with tureen.connect(url, token, ca=authority / "ca.pem") as client:
        client.create_stream("over_tls", "n INT")
        query = client.register("SELECT n FROM over_tls")
        since = query.invoke().position
        client.push("over_tls", [{"n": 7}])
        assert next(query.changes(since=since)).row == {"n": 7}
        client.drop_stream("over_tls")


@pytest.mark.parametrize("ca", [None, "stranger.pem"])
def test_other_certificates_are_not_trusted(secure: RunningServer, authority: Path, ca: str | None) -> None:
    trusted = None if ca is None else authority / ca
    with (
        tureen.connect(secure.url.replace("http:", "https:"), "x", ca=trusted, patience=0) as client,
        pytest.raises(Unreachable, match="certificate verify failed") as raised,
    ):
        client.status()
    assert "ca=" in str(raised.value.hint)


def test_invalid_ca_raises(authority: Path) -> None:
    for path in (authority / "nothing.pem", authority / "names"):
        with pytest.raises(TureenError, match="cannot be read"):
            tureen.connect("https://127.0.0.1:1", ca=path)
    with pytest.raises(TureenError, match=r"must be a path or an ssl\.SSLContext, got int"):
        tureen.connect("https://127.0.0.1:1", ca=5)  # type: ignore[arg-type]


def test_command_line_takes_ca(
    secure: RunningServer, authority: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = ["--url", secure.url.replace("http:", "https:"), "--token", secure.tokens["admin"]]
    assert run(["status", *target]) == 1
    assert "TUREEN_CA" in capsys.readouterr().err
    assert run(["status", *target, "--ca", str(authority / "ca.pem")]) == 0
    monkeypatch.setenv("TUREEN_CA", str(authority / "ca.pem"))
    assert run(["token", "list", *target]) == 0
    assert run(["status", *target, "--ca", str(authority / "stranger.pem")]) == 1
