"""Verifying a whole pot: every checksum of every file that the catalog names, and the catalog itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from tureen.errors import DamagedFile, PotError
from tureen.pipeline.repair import give_up_lost, repair, repair_joins
from tureen.pot.catalog import Catalog
from tureen.pot.catalog_tables import cells, closed_files, dimensions, query_runs, runs
from tureen.pot.closed_files import give_up_closed
from tureen.pot.damage import Damage, log, note_damage
from tureen.pot.heads import acknowledged_ends, log_directory
from tureen.pot.join_tables import join_runs, key_files
from tureen.pot.log import scan
from tureen.pot.parts import Parts
from tureen.pot.streams import Stream, list_streams, stream_by_id
from tureen.pot.template_tables import template_parts, templates
from tureen.pot.transaction import Transaction
from tureen.stems.run import Layout

Progress = Callable[[int, int], None]
"""Called with the number of files verified so far, and of all files."""

_RUN, _DERIVED, _VALUES = "run", "derived", "values"
_KINDS = {runs: _RUN, **dict.fromkeys((cells, key_files, query_runs, join_runs), _DERIVED)}
_KINDS |= dict.fromkeys((dimensions, templates, template_parts, closed_files), _VALUES)


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of verifying a pot."""

    files: int
    bytes: int
    damaged: tuple[Damage, ...]


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of repairing a pot: the numbers of rewritten files and of tuples that were given up."""

    files: int
    tuples: int


def verify_pot(catalog: Catalog, progress: Progress) -> Verified:
    """Read every file that the catalog names, and note the damaged ones."""
    with catalog.read() as tx:
        named = _named(tx)
        streams = list_streams(tx)
    damaged, size = list(_damaged_catalog(catalog)), 0
    for number, (path, kind) in enumerate(named.items()):
        progress(number, len(named))
        file_damage, length = _verify_file(catalog.root, path, kind)
        damaged += file_damage
        size += length
    damaged += [damage for stream in streams for damage in _damaged_records(catalog, stream)]
    progress(len(named), len(named))
    with catalog.read() as tx:
        # Files that were replaced in the meantime may be missing.
        replaced = named.keys() - _named(tx).keys()
    damaged = [damage for damage in damaged if damage.path not in replaced]
    files = [damage for damage in damaged if damage.path in named]
    if files:
        _note(catalog, files)
    return Verified(len(named), size, tuple(damaged))


def _note(catalog: Catalog, files: Sequence[Damage]) -> None:
    try:
        with catalog.write() as tx:
            for damage in files:
                note_damage(tx, damage.path, damage.detail, lost=damage.lost)
    except PotError as error:
        log.warning("the damage could not be noted: %s", error)


def repair_pot(catalog: Catalog) -> Repaired:
    """Rewrite derived data and give up the tuples and punctuations that are lost; the process must hold the lease."""
    with catalog.read() as tx:
        streams = list_streams(tx)
    give_up_closed(catalog)
    files = repair_joins(catalog) + sum(repair(catalog, stream) for stream in streams)
    return Repaired(files, sum(give_up_lost(catalog, stream) for stream in streams))


def _named(tx: Transaction) -> dict[str, str]:
    return {path: kind for table, kind in _KINDS.items() for path in tx.execute(select(table.c.path)).scalars()}


def _damaged_catalog(catalog: Catalog) -> Iterator[Damage]:
    with catalog.read() as tx:
        messages = tx.execute_text("PRAGMA integrity_check(10)").scalars()
    for message in messages:
        if message != "ok":
            yield Damage("catalog.sqlite", str(message), lost=True)


def _verify_file(root: Path, path: str, kind: str) -> tuple[list[Damage], int]:
    """The damage of a file, at most one entry with `lost` and one without, and the file's size."""
    try:
        size = (root / path).stat().st_size
        parts = Parts(root / path)
    except FileNotFoundError:
        return [Damage(path, "the file is missing", lost=kind != _DERIVED)], 0
    except DamagedFile as error:
        return [Damage(path, error.detail or "", lost=kind != _DERIVED)], 0
    layout = Layout.of(parts) if kind == _RUN else None
    details: dict[bool, str] = {}
    if not parts.has_whole_directory():
        details[False] = "one of the two copies of its directory does not match"
    for number in range(len(parts)):
        try:
            parts.read(number)
        except DamagedFile as error:
            lost = layout.holds_tuples(number) if layout is not None else kind != _DERIVED
            details.setdefault(lost, error.detail or "")
    return [Damage(path, detail, lost) for lost, detail in details.items()], size


def _damaged_records(catalog: Catalog, stream: Stream) -> Iterator[Damage]:
    """Damaged parts of the inbox that are not in runs yet; the engine reports them among the rejected rows."""
    end = acknowledged_ends(catalog.root).get(stream.id)
    records = scan(log_directory(catalog.root, stream.id), stream.taken, end, check=True)
    damaged = [record for record in records if record.entry is None]
    with catalog.read() as tx:
        current = stream_by_id(tx, stream.id)
    for record in damaged:
        # Segments whose rows are in runs in the meantime may have been removed.
        if current is not None and record.end > current.taken:
            detail = f"{record.end - record.start} bytes from {record.start} on do not match their checksum"
            yield Damage(f"inbox/{stream.id}", detail, lost=True)
