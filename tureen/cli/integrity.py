"""The commands that look at a whole pot of this machine: verify and backup."""

from __future__ import annotations

from typing import Annotated

import typer

from tureen.cli.output import Format, show_object, show_rows
from tureen.cli.progress import Progress
from tureen.cli.target import Output, Pot, pot_of, reporting


@reporting
def verify(
    pot: Pot = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Write anew what can be, and give up blocks of rows that cannot be read."),
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Check every checksum of a pot, which may be in use; ends with 1 where something is damaged.

    --repair needs a pot that no other process writes to. A server repairs by itself what follows from rows or queries.
    """
    # It brings Arrow and the kernels.
    from tureen.soup.integrity import verify as verify_pot  # noqa: PLC0415

    with Progress("verifying", None) as progress:
        found = verify_pot(pot_of(pot), repair=repair, progress=progress.of)
    damaged = [{"file": one.path, "lost": one.lost, "detail": one.detail} for one in found.damaged]
    about = {"files": found.files, "bytes": found.bytes, "damaged": len(damaged)}
    if repair:
        about |= {"repaired": found.repaired, "rows_given_up": found.given_up}
    if output is Format.JSON:
        show_object({**about, "damaged": damaged}, output)
    else:
        if damaged:
            show_rows(damaged, output)
        if output is Format.TABLE:
            show_object(about, output)
    raise typer.Exit(1 if damaged and not repair else 0)


@reporting
def backup(
    target: Annotated[str, typer.Argument(metavar="DIR", help="Where the copy goes: a directory that is not there.")],
    pot: Pot = None,
) -> None:
    """Copy a pot, which may be in use; the copy holds all that was acknowledged before, and is a pot like any other."""
    # It brings Arrow and the kernels.
    from tureen.soup.integrity import backup as backup_pot  # noqa: PLC0415
    from tureen.soup.integrity import verify as verify_pot  # noqa: PLC0415

    with Progress("copying", None) as progress:
        size = backup_pot(pot_of(pot), target, progress=progress.of)
    with Progress("verifying the copy", None) as progress:
        damaged = verify_pot(target, progress=progress.of).damaged
    print(f"copied {size} bytes to {target}")
    for one in damaged:
        typer.echo(f"'{one.path}' is damaged, as it is in the pot: {one.detail}", err=True)
    raise typer.Exit(1 if damaged else 0)
