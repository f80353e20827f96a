"""`tureen verify` and `tureen backup`: the commands that read a whole local pot."""

from __future__ import annotations

from typing import Annotated

import typer

from tureen.cli.output import Format, show_object, show_rows
from tureen.cli.progress import Progress
from tureen.cli.target import Output, Pot, pot_of, reporting
from tureen.errors import needs_extra


@reporting
def verify(
    pot: Pot = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Rewrite what can be restored, and drop blocks of rows that cannot be read."),
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Verify every checksum of a pot, which may be in use; the exit code is 1 if a file is damaged.

    --repair needs a pot that no other process writes to. A server rebuilds damaged indexes, cells and compiled queries
    by itself.
    """
    with needs_extra("engine", "tureen verify"):
        # It imports Arrow and the kernels, which help does not need.
        from tureen.soup.integrity import verify as verify_pot  # noqa: PLC0415

    with Progress("verifying", None) as progress:
        result = verify_pot(pot_of(pot), repair=repair, progress=progress.of)
    damaged = [{"file": damage.path, "lost": damage.lost, "detail": damage.detail} for damage in result.damaged]
    summary = {"files": result.files, "bytes": result.bytes, "damaged": len(damaged)}
    if repair:
        summary |= {"repaired": result.repaired, "rows_given_up": result.given_up}
    if output is Format.JSON:
        show_object({**summary, "damaged": damaged}, output)
    else:
        if damaged:
            show_rows(damaged, output)
        if output is Format.TABLE:
            show_object(summary, output)
    raise typer.Exit(1 if damaged and not repair else 0)


@reporting
def backup(
    target: Annotated[str, typer.Argument(metavar="DIR", help="The directory of the copy, which must not exist.")],
    pot: Pot = None,
) -> None:
    """Copy a pot, which may be in use; the copy is a pot with everything acknowledged before the start."""
    with needs_extra("engine", "tureen backup"):
        # It imports Arrow and the kernels, which help does not need.
        from tureen.soup.integrity import backup as backup_pot  # noqa: PLC0415
        from tureen.soup.integrity import verify as verify_pot  # noqa: PLC0415

    with Progress("copying", None) as progress:
        size = backup_pot(pot_of(pot), target, progress=progress.of)
    with Progress("verifying the copy", None) as progress:
        damaged = verify_pot(target, progress=progress.of).damaged
    print(f"copied {size} bytes to {target}")
    for damage in damaged:
        typer.echo(f"'{damage.path}' is damaged, as in the pot: {damage.detail}", err=True)
    raise typer.Exit(1 if damaged else 0)
