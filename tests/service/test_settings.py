"""Settings: flags before the environment before a file, and all of them documented."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from tests.service.running import Running
from tureen.errors import TureenError
from tureen.service.metrics import COUNTS, GAUGES
from tureen.service.settings import Settings, from_flags, load

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()


def test_flags_go_before_the_environment_before_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tureen.toml"
    file.write_text('port = 1\nhost = "127.0.0.2"\nheartbeat = 3\nno_auth = true\nlog = "json"\n')
    found = load({"port": 3, "log": None}, {"TUREEN_PORT": "2", "TUREEN_HOST": "127.0.0.3"}, str(file))
    assert (found.port, found.host, found.heartbeat, found.no_auth, found.log) == (3, "127.0.0.3", 3.0, True, "json")
    monkeypatch.setenv("TUREEN_CONFIG", str(file))
    monkeypatch.setenv("TUREEN_NO_AUTH", "off")
    found = from_flags(["--max-queries", "7", "--no-log-requests"])
    assert (found.port, found.max_queries, found.no_auth, found.log_requests) == (1, 7, False, False)
    assert from_flags(["--no-auth"]).no_auth


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"port": "x"}, "the setting port is 'x', which is no int"),
        ({"port": 70000}, "there is no port 70000"),
        ({"max_queries": 0}, "the setting max_queries is 0"),
        ({"log": "xml"}, "the setting log is 'xml'"),
        ({"no_auth": "perhaps"}, "the setting no_auth is 'perhaps', which is no bool"),
        ({"no_auth": True, "host": "0.0.0.0"}, "loopback address only"),
        ({"certificate": "c.pem"}, "a certificate goes with its private_key"),
    ],
)
def test_wrong_settings_are_named(given: dict[str, object], said: str) -> None:
    with pytest.raises(TureenError, match=re.escape(said)):
        load(given, {})


def test_settings_of_spark(tmp_path: Path) -> None:
    file = tmp_path / "tureen.toml"
    file.write_text('[spark]\n"spark.jars.packages" = "a:b:1,c:d:2"\nspark.ui.enabled = true\nspark.ui.port = 4041\n')
    found = load({}, {}, str(file)).spark_settings
    assert found == {"spark.jars.packages": "a:b:1,c:d:2", "spark.ui.enabled": "true", "spark.ui.port": "4041"}
    variable = {"TUREEN_SPARK": "spark.a=1\nspark.b=x=y,z\n"}
    assert load({}, variable, str(file)).spark_settings == {"spark.a": "1", "spark.b": "x=y,z"}
    assert load({"spark": []}, variable).spark == ("spark.a=1", "spark.b=x=y,z")
    assert load({"spark": ["spark.c=3"]}, variable).spark_settings == {"spark.c": "3"}
    assert from_flags(["--spark", "spark.a=1", "--spark", "spark.b=2"]).spark_settings == {
        "spark.a": "1",
        "spark.b": "2",
    }
    for wrong, says in [
        ("spark.a", "must be key=value"),
        ("a=1", "must be named spark"),
        ("spark.master=x", "as master"),
    ]:
        with pytest.raises(TureenError, match=says):
            load({"spark": [wrong]}, {})
    file.write_text('spark = "x"\n')
    with pytest.raises(TureenError, match="must be a section"):
        load({}, {}, str(file))


def test_a_file_with_what_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("prot = 1\n")
    with pytest.raises(TureenError, match="not known: prot"):
        load({}, {}, str(tmp_path / "a.toml"))
    with pytest.raises(TureenError, match="cannot be read"):
        load({}, {}, str(tmp_path / "b.toml"))


def test_every_setting_is_documented_as_it_is() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", PAGE, re.MULTILINE))
    for one in dataclasses.fields(Settings):
        assert rows.get(one.name) == f"`{_shown(one)}`", one.name
        assert one.metadata["help"] in PAGE


def _shown(one: dataclasses.Field[object]) -> str:
    match one.default:
        case ():
            return ""
        case bool():
            return str(one.default).lower()
        case int() if one.name != "port":
            return f"{one.default:,}"
        case float():
            return f"{one.default:g}"
    return str(one.default)


def test_every_metric_is_documented(served: Running) -> None:
    names = {family.name for family in served.service.metrics.registry.collect() if family.name.startswith("tureen")}
    assert names >= {*GAUGES, *COUNTS}
    documented = set(re.findall(r"^\| `(tureen_\w+)", PAGE, re.MULTILINE))
    assert {name.removesuffix("_total") for name in documented} == names


def test_metrics_are_sums_without_names(served: Running) -> None:
    with served.client() as http:
        text = http.get("/metrics").text
    assert "tureen_pushed_rows_total" in text
    labels = set(re.findall(r'(\w+)="', text))
    assert labels <= {"le", "state", "method", "route", "status"}
