"""`tureen function …`: create, list and drop functions that queries call."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tureen.cli.output import Format, show_rows
from tureen.cli.target import AnySoup, Output, on_soup

functions = typer.Typer(
    no_args_is_help=True, help="Functions in Python that queries call: create, list, drop. On a server, for admins."
)

Name = Annotated[str, typer.Argument(help="The name.")]


@functions.command("create")
@on_soup
def create_function(
    soup: AnySoup,
    name: Name,
    path: Annotated[str, typer.Argument(help="The import path, package.module:name.")],
    returns: Annotated[str, typer.Option(help="The type of the result, for example BOOLEAN.")],
    arguments: Annotated[str, typer.Option(help='The types of the arguments, for example "STRING, INT".')],
    vectorized: Annotated[bool, typer.Option("--vectorized", help="It takes and returns Arrow arrays.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a function that no query calls.")] = False,
) -> None:
    """Create a function from an import path; the process that evaluates queries imports it."""
    soup.create_function(name, path, returns, arguments=arguments, vectorized=vectorized, replace=replace)
    print(f"function {name} created", file=sys.stderr)


@functions.command("list")
@on_soup
def list_functions(soup: AnySoup, output: Output = Format.TABLE) -> None:
    """List the functions, and their calls that were observed."""
    columns = ("name", "arguments", "returns", "vectorized", "path", "owner", "calls", "seconds", "errors")
    show_rows(soup.functions(), output, columns=columns)


@functions.command("drop")
@on_soup
def drop_function(soup: AnySoup, name: Name) -> None:
    """Drop a function that no query calls."""
    soup.drop_function(name)
    print(f"function {name} dropped", file=sys.stderr)
