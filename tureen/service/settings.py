"""All settings of a server: from flags, then the environment, then a file, then what is usual.

`Settings` is the one list of them. A field's metadata has its help; its name makes the flag (`--max-body-bytes`), the
variable (`TUREEN_MAX_BODY_BYTES`) and the key of the file (`max_body_bytes`).
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
from tureen.pipeline.priority import check_nice
from tureen.pipeline.spark_settings import check_spark

PREFIX = "TUREEN_"


def _setting(default: Any, said: str) -> Any:
    return field(default=default, metadata={"help": said})


@dataclass(frozen=True)
class Settings:
    """How a server runs."""

    pot: str = _setting("./pot", "the directory of the pot; it is made if it is not there")
    host: str = _setting("127.0.0.1", "the address to listen on")
    port: int = _setting(7707, "the port to listen on; 0 takes any that is free")
    master: str = _setting("local[*]", "Spark's master")
    spark: tuple[str, ...] = _setting((), "a setting of Spark's own, as key=value; may be given again")
    nice: int = _setting(10, "how far Spark stands back for invocations, as `nice` counts: from 0, not at all, to 19")
    no_auth: bool = _setting(False, "take every request as an admin's; only with a loopback address")
    open_metrics: bool = _setting(False, "answer /metrics without a token")
    certificate: str = _setting("", "the file of a TLS certificate in PEM, with its chain; none means plain HTTP")
    private_key: str = _setting("", "the file of the certificate's key")
    log: str = _setting("text", "how log lines are written: text or json")
    log_level: str = _setting("info", "the least that is logged: debug, info, warning or error")
    log_requests: bool = _setting(True, "log a line for each request")
    max_connections: int = _setting(5_000, "the most connections at a time")
    max_headers: int = _setting(100, "the most headers of a request")
    max_header_bytes: int = _setting(131_072, "the most bytes of a request's headers, its first line included")
    header_seconds: float = _setting(20.0, "how long a client may take to send the headers of a request")
    body_seconds: float = _setting(
        30.0, "how long a client may take to send a body, and a second more for each 16 KiB of it"
    )
    idle_seconds: float = _setting(75.0, "how long a connection may be open without a request")
    write_seconds: float = _setting(60.0, "how long a client may take none of what is sent to it")
    max_body_bytes: int = _setting(268_435_456, "the most bytes of a request's body as it is sent")
    max_unpacked_bytes: int = _setting(1_073_741_824, "the most bytes of a request's body after unpacking")
    max_json_bytes: int = _setting(
        67_108_864, "the most bytes of rows as JSON after unpacking; Arrow and CSV may have more"
    )
    max_push_rows: int = _setting(2_000_000, "the most rows of one push")
    max_result_rows: int = _setting(5_000_000, "the most rows of one answer")
    max_queries: int = _setting(5_000_000, "the most standing queries of a principal, those of templates included")
    max_invocations: int = _setting(256, "the most invocations of a principal at a time")
    max_followers: int = _setting(256, "the most connections of a principal that follow changes or wait")
    heartbeat: float = _setting(15.0, "after so many seconds of silence a follower gets a comment")
    shutdown_seconds: float = _setting(30.0, "how long requests may take to end when the server is stopped")
    invoke_threads: int = _setting(8, "the most invocations that are computed at a time")

    def checked(self) -> Settings:
        """These settings, or an error that names the one that is wrong."""
        for one in dataclasses.fields(self):
            value = getattr(self, one.name)
            if one.type in ("int", "float") and (value < 0 or (value == 0 and one.name not in ("port", "nice"))):
                raise TureenError(f"the setting {one.name} is {value}", hint="give a number above 0")
        if self.port > 65535:
            raise TureenError(f"there is no port {self.port}", hint="ports end at 65535")
        check_nice(self.nice)
        check_spark(self.spark_settings)
        for name, known in (("log", ("text", "json")), ("log_level", ("debug", "info", "warning", "error"))):
            if getattr(self, name) not in known:
                raise TureenError(f"the setting {name} is '{getattr(self, name)}'", hint=f"one of {', '.join(known)}")
        if bool(self.certificate) != bool(self.private_key):
            raise TureenError("a certificate goes with its private_key", hint="give both, or none")
        if self.no_auth and not is_loopback(self.host):
            raise TureenError(
                f"without tokens a server listens on a loopback address only, and '{self.host}' is none",
                hint="leave out --no-auth, or listen on 127.0.0.1",
            )
        return self

    @property
    def spark_settings(self) -> dict[str, str]:
        """Spark's own settings, by their names."""
        pairs = [one.partition("=") for one in self.spark]
        wrong = next((one for one, (key, sign, _) in zip(self.spark, pairs, strict=True) if not sign or not key), None)
        if wrong is not None:
            raise TureenError(f"the setting spark must be key=value, got '{wrong}'", hint="such as spark.ui.port=4041")
        return {key.strip(): value.strip() for key, _, value in pairs}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that address.

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
    """The settings that flags, the environment and a TOML file give; in this order, where several say something.

    A flag that is None was not given. The file is `config`, or what `TUREEN_CONFIG` names.
    """
    surroundings = os.environ if environ is None else environ
    path = config or surroundings.get(f"{PREFIX}CONFIG")
    given = _from_file(Path(path)) if path else {}
    known = {one.name: one for one in dataclasses.fields(Settings)}
    for name in known:
        text = surroundings.get(PREFIX + name.upper())
        if text is not None:
            given[name] = text.splitlines() if name == "spark" else text
    # Of a setting that may be given again, no flag is an empty list.
    given |= {name: value for name, value in flags.items() if value is not None and value != []}
    return Settings(**{name: _typed(known[name], value) for name, value in given.items()}).checked()


def parser() -> argparse.ArgumentParser:
    """The flags of `python -m tureen.service`."""
    found = argparse.ArgumentParser("tureen.service", description="Serve a pot over HTTP.")
    found.add_argument("--config", help="a TOML file with settings")
    for one in dataclasses.fields(Settings):
        flag = f"--{one.name.replace('_', '-')}"
        said = f"{one.metadata['help']} [{one.default}]"
        if one.type == "bool":
            # Not argparse's own pairs of flags, for which --no-auth would mean that `auth` is off.
            found.add_argument(flag, dest=one.name, action="store_const", const=True, help=said)
            if one.default:
                off = f"--no-{one.name.replace('_', '-')}"
                found.add_argument(off, dest=one.name, action="store_const", const=False, help="the opposite")
        elif one.name == "spark":
            found.add_argument(flag, action="append", metavar="KEY=VALUE", help=one.metadata["help"])
        else:
            found.add_argument(flag, help=said)
    return found


def from_flags(arguments: Sequence[str]) -> Settings:
    """The settings of a command line."""
    given = vars(parser().parse_args(arguments))
    config = given.pop("config")
    return load(given, config=config)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise TureenError(f"the settings in '{path}' cannot be read", detail=str(error)) from None
    odd = sorted(found.keys() - {one.name for one in dataclasses.fields(Settings)})
    if odd:
        raise TureenError(f"'{path}' has a setting that is not known: {odd[0]}", hint="docs/serving.md has them all")
    if "spark" in found:
        found["spark"] = [f"{key}={value}" for key, value in _flat(found["spark"])]
    return found


def _flat(section: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """The settings of a section; TOML reads dots in a name that is not quoted as sections within it."""
    if not isinstance(section, dict):
        raise TureenError("the setting spark must be a section", hint='[spark], and below it "spark.ui.port" = 4041')
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", str(value).lower() if isinstance(value, bool) else str(value)


_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _typed(one: dataclasses.Field[Any], value: Any) -> Any:
    try:
        if one.type == "bool":
            return value if isinstance(value, bool) else _WORDS[str(value).strip().lower()]
        if isinstance(value, bool):
            raise TypeError
        if one.name == "spark":
            return tuple(line for line in value if line.strip())
        return {"int": int, "float": float, "str": str}[str(one.type)](value)
    except (KeyError, ValueError, TypeError):
        raise TureenError(f"the setting {one.name} is '{value}', which is no {one.type}") from None
