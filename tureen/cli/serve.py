"""`tureen serve`: the server, with an option for every setting."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import typer

from tureen.cli.error_output import tell
from tureen.cli.target import reporting
from tureen.errors import TureenError
from tureen.service.settings import PREFIX, Settings, load

_TYPES: dict[str, Any] = {"str": str | None, "int": int | None, "float": float | None, "bool": bool | None}
_TYPES["tuple[str, ...]"] = list[str] | None


def _serve(**given: Any) -> None:
    """Serve a pot over HTTP.

    At the first start it makes a token for you, and shows it once. Options come before the environment, and that before
    the file.
    """
    config = given.pop("config")
    try:
        settings = load(given, config=config)
    except TureenError as error:
        tell(error)
        raise typer.Exit(2) from None
    # It brings Spark and the web framework.
    from tureen.service.server import serve as run  # noqa: PLC0415

    raise typer.Exit(run(settings))


def _option(one: dataclasses.Field[Any]) -> inspect.Parameter:
    flag = f"--{one.name.replace('_', '-')}"
    if one.type == "bool" and not one.name.startswith("no_"):
        flag = f"{flag}/--no-{one.name.replace('_', '-')}"
    said = one.metadata["help"]
    # In brackets it would be taken for the style of a text.
    usual = f"Usually {one.default}. " if one.default not in ("", False, ()) else ""
    text = f"{said[:1].upper()}{said[1:]}. {usual}({PREFIX}{one.name.upper()})"
    metavar = "KEY=VALUE" if one.name == "spark" else None
    default = typer.Option(None, flag, help=text, show_default=False, metavar=metavar)
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_TYPES[str(one.type)]
    )


def _signature() -> inspect.Signature:
    config = typer.Option(None, "--config", metavar="FILE", help=f"A TOML file with settings. ({PREFIX}CONFIG)")
    first = inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=config, annotation=str | None)
    return inspect.Signature([first, *(_option(one) for one in dataclasses.fields(Settings))])


_serve.__signature__ = _signature()  # type: ignore[attr-defined]
serve = reporting(_serve)
