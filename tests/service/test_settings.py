"""Settings: precedence of flags, environment and file, error messages, and documentation."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from tests.service.running import RunningServer
from tureen.errors import TureenError
from tureen.service.metrics import COUNTS, GAUGES
from tureen.service.settings import Settings, from_flags, load

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()


def test_precedence_of_flags_environment_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tureen.toml"
    file.write_text('port = 1\nhost = "127.0.0.2"\nheartbeat = 3\nno_auth = true\nlog = "json"\n')
    loaded = load({"port": 3, "log": None}, {"TUREEN_PORT": "2", "TUREEN_HOST": "127.0.0.3"}, str(file))
    assert (loaded.port, loaded.host, loaded.heartbeat, loaded.no_auth, loaded.log) == (
        3,
        "127.0.0.3",
        3.0,
        True,
        "json",
    )
    monkeypatch.setenv("TUREEN_CONFIG", str(file))
    monkeypatch.setenv("TUREEN_NO_AUTH", "off")
    loaded = from_flags(["--max-queries", "7", "--no-log-requests"])
    assert (loaded.port, loaded.max_queries, loaded.no_auth, loaded.log_requests) == (1, 7, False, False)
    assert from_flags(["--no-auth"]).no_auth


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"port": "x"}, "port must be an integer, got 'x'"),
        ({"port": 70000}, "port must be an integer from 0 to 65535, got 70000"),
        ({"port": -1}, "port must be an integer from 0 to 65535, got -1"),
        ({"max_queries": 0}, "max_queries must be a positive number, got 0"),
        ({"heartbeat": "soon"}, "heartbeat must be a number, got 'soon'"),
        ({"log": "xml"}, "log must be one of text, json, got 'xml'"),
        ({"no_auth": "perhaps"}, "no_auth must be true or false, got 'perhaps'"),
        ({"no_auth": True, "host": "0.0.0.0"}, "no_auth requires a loopback address as host, got '0.0.0.0'"),
        ({"certificate": "c.pem"}, "certificate and private_key must be set together"),
    ],
)
def test_invalid_settings_are_named(flags: dict[str, object], message: str) -> None:
    with pytest.raises(TureenError, match=re.escape(message)):
        load(flags, {})


def test_spark_settings(tmp_path: Path) -> None:
    file = tmp_path / "tureen.toml"
    file.write_text('[spark]\n"spark.jars.packages" = "a:b:1,c:d:2"\nspark.ui.enabled = true\nspark.ui.port = 4041\n')
    loaded = load({}, {}, str(file)).spark_settings
    assert loaded == {"spark.jars.packages": "a:b:1,c:d:2", "spark.ui.enabled": "true", "spark.ui.port": "4041"}
    variable = {"TUREEN_SPARK": "spark.a=1\nspark.b=x=y,z\n"}
    assert load({}, variable, str(file)).spark_settings == {"spark.a": "1", "spark.b": "x=y,z"}
    assert load({"spark": []}, variable).spark == ("spark.a=1", "spark.b=x=y,z")
    assert load({"spark": ["spark.c=3"]}, variable).spark_settings == {"spark.c": "3"}
    assert from_flags(["--spark", "spark.a=1", "--spark", "spark.b=2"]).spark_settings == {
        "spark.a": "1",
        "spark.b": "2",
    }
    for text, message in [
        ("spark.a", "must be key=value"),
        ("a=1", "must be named spark"),
        ("spark.master=x", "as master"),
    ]:
        with pytest.raises(TureenError, match=message):
            load({"spark": [text]}, {})
    file.write_text('spark = "x"\n')
    with pytest.raises(TureenError, match="must be a section"):
        load({}, {}, str(file))


def test_files_that_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("prot = 1\n")
    with pytest.raises(TureenError, match="unknown setting 'prot' in"):
        load({}, {}, str(tmp_path / "a.toml"))
    with pytest.raises(TureenError, match="cannot read the settings in"):
        load({}, {}, str(tmp_path / "b.toml"))


def test_every_setting_is_documented() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", PAGE, re.MULTILINE))
    for setting in dataclasses.fields(Settings):
        assert rows.get(setting.name) == f"`{_documented_default(setting)}`", setting.name
        assert setting.metadata["help"] in PAGE


def _documented_default(setting: dataclasses.Field[object]) -> str:
    match setting.default:
        case ():
            return ""
        case bool():
            return str(setting.default).lower()
        case int() if setting.name != "port":
            return f"{setting.default:,}"
        case float():
            return f"{setting.default:g}"
    return str(setting.default)


def test_every_metric_is_documented(served: RunningServer) -> None:
    names = {family.name for family in served.service.metrics.registry.collect() if family.name.startswith("tureen")}
    assert names >= {*GAUGES, *COUNTS}
    documented = set(re.findall(r"^\| `(tureen_\w+)", PAGE, re.MULTILINE))
    assert {name.removesuffix("_total") for name in documented} == names


def test_metrics_do_not_name_objects(served: RunningServer) -> None:
    with served.client() as http:
        text = http.get("/metrics").text
    assert "tureen_pushed_rows_total" in text
    labels = set(re.findall(r'(\w+)="', text))
    assert labels <= {"le", "state", "method", "route", "status"}
