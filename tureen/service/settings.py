"""Settings of a server, from flags, the environment, a TOML file and defaults, in this order of precedence.

`Settings` lists them all. A field's name determines the flag (`--max-body-bytes`), the environment variable
(`TUREEN_MAX_BODY_BYTES`) and the key in the file (`max_body_bytes`); its metadata has the help text.
"""

from __future__ import annotations

import argparse
import dataclasses
import ipaddress
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tureen.errors import TureenError
from tureen.federation.federation_settings import FederationSettings
from tureen.federation.peer_quota import PeerQuota
from tureen.pipeline.priority import check_nice
from tureen.pipeline.spark_settings import check_spark
from tureen.routing_policies import check_routing

PREFIX = "TUREEN_"


def _setting(default: Any, help_text: str) -> Any:
    return field(default=default, metadata={"help": help_text})


@dataclass(frozen=True)
class Settings:
    """The settings of a server."""

    pot: str = _setting("./pot", "the directory of the pot, created if missing")
    host: str = _setting("127.0.0.1", "the address to listen on")
    port: int = _setting(7707, "the port to listen on, from 0 to 65535; 0 chooses a free port")
    name: str = _setting("", "the name of this server among its peers, kept in the pot; by default that of the machine")
    master: str = _setting("local[*]", "Spark's master URL")
    spark: tuple[str, ...] = _setting((), "a Spark setting as key=value; may be repeated")
    nice: int = _setting(10, "the niceness of Spark's processes, from 0 to 19; a higher one favours invocations")
    no_auth: bool = _setting(
        False, "turn authentication off: every request is an admin's; only with a loopback address"
    )
    page: bool = _setting(True, "serve the page at /")
    session_seconds: float = _setting(43_200.0, "how many seconds a session of the page lasts")
    open_metrics: bool = _setting(False, "answer /metrics without a token")
    certificate: str = _setting(
        "", "the PEM file of a TLS certificate with its chain; without it the server speaks plain HTTP"
    )
    private_key: str = _setting("", "the PEM file of the certificate's private key")
    log: str = _setting("text", "the log format: text or json")
    log_level: str = _setting("info", "the least severe level to log: debug, info, warning or error")
    log_requests: bool = _setting(True, "log a line for each request")
    max_connections: int = _setting(5_000, "the most concurrent connections")
    max_headers: int = _setting(100, "the most headers of a request")
    max_header_bytes: int = _setting(131_072, "the most bytes of a request's headers, including the request line")
    header_seconds: float = _setting(20.0, "the most seconds for a client to send the headers of a request")
    body_seconds: float = _setting(
        30.0, "the most seconds for a client to send a body, plus one for each 16 KiB received"
    )
    idle_seconds: float = _setting(75.0, "the most seconds that a connection stays open without a request")
    write_seconds: float = _setting(60.0, "the most seconds that a client may read none of a response")
    max_body_bytes: int = _setting(268_435_456, "the most bytes of a request's body as sent")
    max_unpacked_bytes: int = _setting(1_073_741_824, "the most bytes of a request's body after decompression")
    max_json_bytes: int = _setting(
        67_108_864, "the most bytes of rows as JSON after decompression; Arrow and CSV may have more"
    )
    max_batch_bytes: int = _setting(67_108_864, "the most bytes of a batch of a stream of XML after decompression")
    max_push_rows: int = _setting(2_000_000, "the most rows of a push")
    max_result_rows: int = _setting(5_000_000, "the most rows of an answer")
    max_joined_rows: int = _setting(20_000_000, "the most rows of a join that an answer may need")
    max_join_pairs: int = _setting(2_000_000_000, "the most pairs of rows that a join may examine for an answer")
    routing: str = _setting("tickets", "how new tuples of followed joins are routed: tickets, random or fixed")
    max_queries: int = _setting(5_000_000, "the most standing queries of a principal, including those of templates")
    max_invocations: int = _setting(256, "the most concurrent invocations of a principal")
    max_followers: int = _setting(
        1_000, "the most connections of a principal that follow changes or wait for a position"
    )
    max_xml_streams: int = _setting(32, "the most streams of XML that a principal sends at a time")
    max_peer_flows: int = _setting(1_000, "the most flows that a peer receives at a time, and that are kept for it")
    max_peer_bytes: int = _setting(1_000_000_000, "the most bytes of flows that are sent to a peer per second")
    peer_tokens: str = _setting(
        "", "a directory with a file for each peer, of its name, that has the token for it, if the pot has none"
    )
    away_seconds: float = _setting(60.0, "how long a peer is away before another one is asked for what it sends")
    narrow_seconds: float = _setting(300.0, "how long a flow has more than queries need before it is narrowed")
    heartbeat: float = _setting(15.0, "the seconds without events after which a follower gets a comment")
    shutdown_seconds: float = _setting(30.0, "the most seconds for requests to finish when the server stops")
    invoke_threads: int = _setting(8, "the number of threads that compute invocations")

    def checked(self) -> Settings:
        """These settings, or an error that names the first invalid setting."""
        for setting in dataclasses.fields(self):
            value = getattr(self, setting.name)
            if setting.type in ("int", "float") and setting.name not in ("port", "nice") and value <= 0:
                raise TureenError(f"{setting.name} must be a positive number, got {value}")
        if not 0 <= self.port <= 65535:
            raise TureenError(f"port must be an integer from 0 to 65535, got {self.port}")
        check_nice(self.nice)
        check_routing(self.routing)
        check_spark(self.spark_settings)
        for name, choices in (("log", ("text", "json")), ("log_level", ("debug", "info", "warning", "error"))):
            if getattr(self, name) not in choices:
                raise TureenError(f"{name} must be one of {', '.join(choices)}, got '{getattr(self, name)}'")
        if bool(self.certificate) != bool(self.private_key):
            raise TureenError("certificate and private_key must be set together", hint="set both, or neither")
        if self.no_auth and not is_loopback(self.host):
            raise TureenError(
                f"no_auth requires a loopback address as host, got '{self.host}'",
                hint="omit --no-auth, or listen on 127.0.0.1",
            )
        return self

    @property
    def federation(self) -> FederationSettings:
        """The settings of the federation."""
        quota = PeerQuota(self.max_peer_flows, self.max_peer_bytes)
        return FederationSettings(quota, self.away_seconds, self.narrow_seconds)

    @property
    def spark_settings(self) -> dict[str, str]:
        """Spark's own settings, by name."""
        settings = {}
        for text in self.spark:
            key, separator, value = text.partition("=")
            if not key or not separator:
                raise TureenError(f"spark must be key=value, got '{text}'", hint="for example spark.ui.port=4041")
            settings[key.strip()] = value.strip()
        return settings


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def load(flags: Mapping[str, Any], environ: Mapping[str, str] | None = None, config: str | None = None) -> Settings:
    """Load settings: flags take precedence over environment variables, and these over a TOML file.

    A flag that is None was not set. The file is `config`, or the value of `TUREEN_CONFIG`.
    """
    environ = os.environ if environ is None else environ
    path = config or environ.get(f"{PREFIX}CONFIG")
    values = _read_file(Path(path)) if path else {}
    known = {setting.name: setting for setting in dataclasses.fields(Settings)}
    for name in known:
        text = environ.get(PREFIX + name.upper())
        if text is not None:
            values[name] = text.splitlines() if name == "spark" else text
    # A repeatable flag that was not set is an empty list.
    values |= {name: value for name, value in flags.items() if value is not None and value != []}
    return Settings(**{name: _converted(known[name], value) for name, value in values.items()}).checked()


def parser() -> argparse.ArgumentParser:
    """The argument parser of `python -m tureen.service`."""
    arguments = argparse.ArgumentParser("tureen.service", description="Serve a pot over HTTP.")
    arguments.add_argument("--config", help="a TOML file with settings")
    for setting in dataclasses.fields(Settings):
        flag = f"--{setting.name.replace('_', '-')}"
        help_text = f"{setting.metadata['help']} [{setting.default}]"
        if setting.type == "bool":
            # Not argparse's BooleanOptionalAction, for which --no-auth would turn a setting `auth` off.
            arguments.add_argument(flag, dest=setting.name, action="store_const", const=True, help=help_text)
            if setting.default:
                off = f"--no-{setting.name.replace('_', '-')}"
                opposite = f"the opposite of {flag}"
                arguments.add_argument(off, dest=setting.name, action="store_const", const=False, help=opposite)
        elif setting.name == "spark":
            arguments.add_argument(flag, action="append", metavar="KEY=VALUE", help=setting.metadata["help"])
        else:
            arguments.add_argument(flag, help=help_text)
    return arguments


def from_flags(arguments: Sequence[str]) -> Settings:
    """Load the settings of a command line."""
    flags = vars(parser().parse_args(arguments))
    config = flags.pop("config")
    return load(flags, config=config)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise TureenError(f"cannot read the settings in '{path}'", detail=str(error)) from None
    unknown = sorted(values.keys() - {setting.name for setting in dataclasses.fields(Settings)})
    if unknown:
        raise TureenError(f"unknown setting '{unknown[0]}' in '{path}'", hint="docs/serving.md lists all settings")
    if "spark" in values:
        values["spark"] = [f"{key}={value}" for key, value in _flatten(values["spark"])]
    return values


def _flatten(section: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The settings of a section with dotted names; TOML reads an unquoted dotted key as nested sections."""
    if not isinstance(section, dict):
        raise TureenError("spark must be a section of the file", hint='[spark], then "spark.ui.port" = 4041')
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value).lower() if isinstance(value, bool) else str(value)


_BOOLEANS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_TYPE_NAMES = {"bool": "true or false", "int": "an integer", "float": "a number", "str": "a text"}


def _converted(setting: dataclasses.Field[Any], value: Any) -> Any:
    try:
        if setting.type == "bool":
            return value if isinstance(value, bool) else _BOOLEANS[str(value).strip().lower()]
        if isinstance(value, bool):
            raise TypeError
        if setting.name == "spark":
            return tuple(line for line in value if line.strip())
        return {"int": int, "float": float, "str": str}[str(setting.type)](value)
    except (KeyError, ValueError, TypeError):
        type_name = _TYPE_NAMES.get(str(setting.type), "a list of key=value")
        raise TureenError(f"{setting.name} must be {type_name}, got '{value}'") from None
