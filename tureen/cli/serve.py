"""`tureen serve`: the server, with an option for every setting."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import typer

from tureen.cli.error_output import print_error
from tureen.cli.target import reporting
from tureen.errors import TureenError, needs_extra
from tureen.service.settings import PREFIX, Settings, load

_TYPES: dict[str, Any] = {"str": str | None, "int": int | None, "float": float | None, "bool": bool | None}
_TYPES["tuple[str, ...]"] = list[str] | None


def _serve(**options: Any) -> None:
    """Serve a pot over HTTP.

    The first start creates a token and shows it once. Options override the environment, which overrides the file.
    """
    config = options.pop("config")
    try:
        settings = load(options, config=config)
    except TureenError as error:
        print_error(error)
        raise typer.Exit(2) from None
    with needs_extra("server", "tureen serve"):
        # It imports the engine and the web framework, which help does not need.
        from tureen.service.server import serve as run  # noqa: PLC0415

    raise typer.Exit(run(settings))


def _option(setting: dataclasses.Field[Any]) -> inspect.Parameter:
    """The option of a setting."""
    flag = f"--{setting.name.replace('_', '-')}"
    if setting.type == "bool" and not setting.name.startswith("no_"):
        flag = f"{flag}/--no-{setting.name.replace('_', '-')}"
    text = setting.metadata["help"]
    # Not in square brackets, which rich takes for markup.
    default = f"Default: {setting.default}. " if setting.default not in ("", False, ()) else ""
    help_text = f"{text[:1].upper()}{text[1:]}. {default}({PREFIX}{setting.name.upper()})"
    metavar = "KEY=VALUE" if setting.name == "spark" else None
    option = typer.Option(None, flag, help=help_text, show_default=False, metavar=metavar)
    return inspect.Parameter(
        setting.name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=_TYPES[str(setting.type)]
    )


def _signature() -> inspect.Signature:
    config = typer.Option(None, "--config", metavar="FILE", help=f"A TOML file with settings. ({PREFIX}CONFIG)")
    first = inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=config, annotation=str | None)
    return inspect.Signature([first, *(_option(setting) for setting in dataclasses.fields(Settings))])


_serve.__signature__ = _signature()  # type: ignore[attr-defined]
serve = reporting(_serve)
