"""The command line: `tureen …`.

Each group of commands has a module of its own. What is heavy (Spark, DuckDB, numba, Arrow, the web framework) is
imported by the commands that need it, so that help, completion and usage errors come at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from tureen.cli.integrity import backup, verify
from tureen.cli.output import Format, show_object, show_rows
from tureen.cli.push import push
from tureen.cli.queries import queries
from tureen.cli.serve import serve
from tureen.cli.streams import streams, tables
from tureen.cli.target import AnySoup, Output, on_any_soup, on_soup, reporting
from tureen.cli.templates import templates
from tureen.cli.tokens import token_commands
from tureen.errors import TureenError

app = typer.Typer(
    name="tureen",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        # It takes as long as all the rest of the start.
        from importlib.metadata import version  # noqa: PLC0415

        print(f"tureen {version('tureen')}")
        raise typer.Exit


@app.callback()
def tureen(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Thousands of standing SQL queries over live streams.

    Commands work on a server (--url and --token, or TUREEN_URL and TUREEN_TOKEN) or on a pot of this machine (--pot, or
    TUREEN_POT). They end with 0, with 1 after an error, and with 2 where they were used wrongly.
    """
    del version


app.command("serve")(serve)


@app.command()
@reporting
def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Do not pause between the steps.")] = False,
) -> None:
    """Take a guided tour, in about a minute, on a server of its own."""
    # It brings the client.
    from tureen.cli.demo import tour  # noqa: PLC0415

    raise typer.Exit(tour(run, quick=quick))


@app.command()
@on_any_soup
def sql(
    soup: AnySoup,
    command: Annotated[str | None, typer.Option("--command", "-c", help="Run this and end.")] = None,
    output: Output = Format.TABLE,
) -> None:
    r"""Open a shell for statements; with -c, or from a pipe, run them and end.

    Statements end with a semicolon and may go over several lines. \? shows the shell's own commands.
    """
    # It brings prompt_toolkit, and the keywords of the language.
    from tureen.cli.shell.shell import Shell  # noqa: PLC0415

    shell = Shell(soup, output)
    if command is not None:
        shell.run_text(command)
    elif sys.stdin.isatty():
        shell.run_interactively()
    else:
        shell.run_text(sys.stdin.read())


app.add_typer(streams, name="stream")
app.add_typer(tables, name="table")
app.command()(push)
app.add_typer(queries, name="query")
app.add_typer(templates, name="template")


@app.command()
@on_soup
def status(soup: AnySoup, output: Output = Format.TABLE) -> None:
    """Show what is there: streams, tables, queries, and how far the pipeline is."""
    found = soup.status()
    if output is Format.JSON:
        show_object(found, output)
        return
    listed: list[dict[str, Any]] = [{"stream": name, **one} for name, one in found["streams"].items()]
    show_rows(
        listed, output, columns=("stream", "rows", "bytes", "runs", "tail_rows", "debts", "rejected", "lag_bytes")
    )
    if output is Format.TABLE:
        rest = {name: value for name, value in found.items() if name not in ("streams", "tables") and value is not None}
        show_object({**rest, "tables": len(found["tables"])}, output)


app.command()(verify)
app.command()(backup)
app.add_typer(token_commands, name="token")


@app.command()
@reporting
def bench(
    part: Annotated[list[str] | None, typer.Argument(help="The parts to measure; all if none is named.")] = None,
) -> None:
    """Measure this machine; needs the source tree, whose folder benchmarks/ this runs."""
    try:
        # Benchmarks are no part of the installed package.
        from benchmarks.__main__ import main  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise TureenError(
            "the benchmarks are not here", detail=str(error), hint="run it at the root of the source tree"
        ) from None
    sys.argv = ["tureen bench", *(part or [])]
    raise typer.Exit(main())


def run(words: Sequence[str]) -> int:
    """Run one command line in this process; the exit code is what comes back."""
    try:
        app(list(words), standalone_mode=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def main() -> None:
    """Run the command line of this process, and end it."""
    code = run(sys.argv[1:])
    if "tureen.soup.embedded" in sys.modules and "tureen.service.server" not in sys.modules:
        # The pot is closed. What its engine still warms up in the background is not wanted any more.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
