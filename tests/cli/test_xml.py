"""XML and WXQuery on the command line."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli
from tureen.testing.photons import ITEM, Q1, SCHEMA, TIME, photon_xml, photons

ROWS = list(photons(40, seed=3))


def test_push_query_and_print(cli: Cli, tmp_path: Path) -> None:
    assert cli("stream", "create", "cli_photons", SCHEMA, "--time", TIME, "--item", ITEM).code == 0
    file = tmp_path / "photons.xml"
    file.write_bytes(photon_xml(ROWS)[:-12])
    broken = cli("push", "cli_photons", str(file), "--chunk", "15")
    assert broken.code == 1
    assert "'photons.xml' line 41" in broken.err
    assert "no rows of the file were added" in broken.err
    file.write_bytes(photon_xml(ROWS))
    assert "40 rows pushed" in cli("push", "cli_photons", str(file), "--chunk", "15").err
    assert "no rows added" in cli("push", "cli_photons", str(file), "--chunk", "15").err
    more = photon_xml(photons(5, seed=4, start=100.0)).decode()
    assert "5 rows pushed" in cli("push", "cli_photons", "-", "--format", "xml", stdin=more).err
    text = Q1.replace('"photons"', '"cli_photons"')
    handle = cli("query", "register", text, "--language", "wxquery", "--name", "cli_vela").out.strip()
    answer = cli("query", "invoke", handle, "-o", "xml").out
    assert answer.startswith("<photons><vela><ra>")
    assert cli("sql", "-c", text, "--language", "wxquery", "-o", "xml").out == answer
    plain = cli("sql", "-c", "SELECT count(*) AS n FROM cli_photons", "-o", "xml").out
    assert plain == "<rows><row><n>45</n></row></rows>\n"
    refused = cli("query", "register", text.replace("$p/en", "$p/enn"), "--language", "wxquery")
    assert refused.code == 1
    assert "there is no element 'enn' in <photon>" in refused.err
    cli("query", "drop", "cli_vela")
