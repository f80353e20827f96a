"""The command line: `tureen …`.

Each group of commands has a module of its own. Heavy packages (Spark, DuckDB, numba, Arrow, the web framework) are
imported by the commands that need them, so that help, completion and usage errors are fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from tureen.cli.error_output import pointing_into
from tureen.cli.functions import functions
from tureen.cli.integrity import backup, verify
from tureen.cli.network_commands import network_commands
from tureen.cli.output import Format, show_answer, show_object, show_rows
from tureen.cli.peers import peer_commands
from tureen.cli.punctuating import punctuate
from tureen.cli.push import push
from tureen.cli.queries import queries
from tureen.cli.serve import serve
from tureen.cli.streams import streams, tables
from tureen.cli.target import AnySoup, Language, Output, QueryLanguage, on_any_soup, on_soup, reporting
from tureen.cli.templates import templates
from tureen.cli.tokens import token_commands
from tureen.errors import TureenError

app = typer.Typer(
    name="tureen",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        # This import takes as long as the rest of the start.
        from importlib.metadata import version  # noqa: PLC0415

        print(f"tureen {version('tureen')}")
        raise typer.Exit


@app.callback()
def tureen(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Thousands of standing SQL queries over live streams.

    Commands work on a server (--url and --token, or TUREEN_URL and TUREEN_TOKEN) or on a local pot (--pot, or
    TUREEN_POT). The exit code is 0, 1 after an error, and 2 after a usage error.
    """
    del version


app.command("serve")(serve)


@app.command()
@reporting
def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Do not pause between the steps.")] = False,
) -> None:
    """Take a guided tour of about a minute, on a temporary server."""
    # It imports the client, which help does not need.
    from tureen.cli.demo import tour  # noqa: PLC0415

    raise typer.Exit(tour(run, quick=quick))


@app.command()
@on_any_soup
def sql(
    soup: AnySoup,
    command: Annotated[str | None, typer.Option("--command", "-c", help="Run these statements and exit.")] = None,
    language: Language = QueryLanguage.SQL,
    output: Output = Format.TABLE,
) -> None:
    r"""Open a shell for SQL statements; with -c, or from a pipe, run the statements and exit.

    Statements end with a semicolon and may span several lines. \? lists the shell's own commands. In WXQuery, the text
    is one query, which is answered once.
    """
    # It imports Arrow and the client, which help does not need.
    from tureen.cli.shell.shell import Shell  # noqa: PLC0415

    if language is not QueryLanguage.SQL:
        text = sys.stdin.read() if command is None else command
        with pointing_into(text):
            show_answer(soup.answer_once(text, language=language.value), output)
        return
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
app.command()(punctuate)
app.add_typer(queries, name="query")
app.add_typer(templates, name="template")
app.add_typer(functions, name="function")
app.add_typer(network_commands, name="network")
app.add_typer(peer_commands, name="peer")


@app.command()
@on_soup
def status(soup: AnySoup, output: Output = Format.TABLE) -> None:
    """Show the streams with their sizes, the number of tables and queries, and the progress of the pipeline."""
    report = soup.status()
    if output is Format.JSON:
        show_object(report, output)
        return
    columns = ("stream", "rows", "bytes", "runs", "tail_rows", "debts", "rejected", "lag_bytes")
    rows: list[dict[str, Any]] = [{"stream": name, **stream} for name, stream in report["streams"].items()]
    show_rows(rows, output, columns=columns)
    if output is Format.TABLE:
        shown = {key: value for key, value in report.items() if key not in ("streams", "tables") and value is not None}
        show_object({**shown, "tables": len(report["tables"])}, output)


app.command()(verify)
app.command()(backup)
app.add_typer(token_commands, name="token")


@app.command()
@reporting
def bench(
    part: Annotated[list[str] | None, typer.Argument(help="The benchmarks to run; all by default.")] = None,
) -> None:
    """Run the benchmarks of the source tree, which must be the current directory."""
    try:
        # The benchmarks are not installed with the package.
        from benchmarks.__main__ import main  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise TureenError(
            "benchmarks not found", detail=str(error), hint="run this command at the root of the source tree"
        ) from None
    sys.argv = ["tureen bench", *(part or [])]
    raise typer.Exit(main())


def run(words: Sequence[str]) -> int:
    """Run one command line in this process and return its exit code."""
    try:
        app(list(words), standalone_mode=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def main() -> None:
    """Run the command line of this process and exit."""
    code = run(sys.argv[1:])
    if "tureen.soup.embedded" in sys.modules and "tureen.service.server" not in sys.modules:
        # The pot is closed; do not wait for what its engine still compiles in the background.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
