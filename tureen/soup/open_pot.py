"""An open pot: what is made when it is first needed, from the catalog to the engine, and let go of at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tureen.errors import EngineFailed, PotError, TureenError
from tureen.migration.migrate import migrate
from tureen.pipeline.engine import Engine
from tureen.pot.catalog import Catalog, exists
from tureen.pot.files import make_private_directory
from tureen.pot.stream_cache import StreamCache
from tureen.results.invoke import Invoker
from tureen.soup.registry import Registry
from tureen.soup.tables import Dimensions
from tureen.soup.templates import Templates

MODES = ("auto", "read", "write")

STARTING, NO_ENGINE = "Spark is starting", "no engine"
"""Why rows are not taken up where nothing is wrong."""


class Parts(NamedTuple):
    """A catalog, and what works on it."""

    catalog: Catalog
    invoker: Invoker
    streams: StreamCache
    tables: Dimensions
    registry: Registry
    templates: Templates


class OpenPot:
    """One pot of this process: read at once, changed by transactions, fed by an engine where that is needed."""

    def __init__(
        self,
        path: Path,
        *,
        mode: str,
        master: str,
        nice: int,
        clock: Callable[[], int],
        spark: Mapping[str, str] | None = None,
    ) -> None:
        """Open the pot if it is there; with mode "write", take it."""
        if mode not in MODES:
            raise TureenError(f"unknown mode '{mode}'", hint=f"one of {', '.join(MODES)}")
        self.path = path
        self._mode, self._master, self._nice, self._clock = mode, master, nice, clock
        self._spark = dict(spark or {})
        self._lock = threading.RLock()
        self._closed = False
        self._parts: Parts | None = None
        self.running: Engine | None = None
        if exists(path):
            self._open(create=False)
        if mode == "write":
            self.engine()

    @property
    def parts(self) -> Parts:
        """What reading needs; raises where there is no pot."""
        self._check_open()
        if self._parts is None:
            with self._lock:
                if self._parts is None:
                    return self._open(create=False)
        return self._parts

    @property
    def catalog(self) -> Catalog:
        """The pot's catalog."""
        return self.parts.catalog

    def is_there(self) -> bool:
        """Whether there is a pot yet; another process may have made it since it was opened."""
        return self._parts is not None or exists(self.path)

    def own(self) -> Parts:
        """The pot, made if there is none, for what changes it by a transaction alone: no lease, no Spark."""
        with self._lock:
            self._check_open()
            if self._mode == "read":
                raise TureenError("this pot is open for reading only", hint='open it with mode="write"')
            if self._parts is not None:
                return self._parts
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                make_private_directory(self.path)
            except OSError as error:
                raise EngineFailed(f"cannot make the pot in '{self.path}'", detail=str(error)) from error
            return self._open(create=True)

    def engine(self) -> Engine:
        """The engine, started if this is the first call that feeds the pot."""
        if self.running is not None:
            return self.running
        with self._lock:
            parts = self.own()
            if self.running is None:
                watch = parts.invoker.watch
                self.running = Engine(
                    self.path,
                    parts.catalog,
                    watch,
                    master=self._master,
                    nice=self._nice,
                    clock=self._clock,
                    spark=self._spark,
                )
            return self.running

    def help_along(self) -> None:
        """Take the pot if nobody else feeds it: rows that a crash left in the inbox want an engine."""
        if self.running is None and self._mode == "auto":
            try:
                self.engine()
            except PotError:
                # Another process feeds it, or it cannot be written here.
                return

    def trouble(self) -> str | None:
        """Why the engine does not run, if it is known."""
        return None if self.running is None else self.running.error

    def waits_for(self) -> str | None:
        """Why rows are not taken up by this process's engine at the moment, if it has one."""
        return self.trouble() or (STARTING if self.state() == "starting" else None)

    def source_errors(self) -> dict[int, str]:
        """Why outside sources are not read at the moment, by the id of their stream."""
        return {} if self.running is None else self.running.source_errors()

    def state(self) -> str:
        """Either "running", "starting", or "none" where this process has no engine."""
        if self.running is None:
            return "none"
        return "running" if self.running.ready.is_set() else "starting"

    def close(self) -> None:
        """Stop what runs for this pot and let go of it."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self.running is not None:
                self.running.close()
                self.running = None
            if self._parts is not None:
                self._parts.catalog.write_digest()
                self._parts.catalog.close()

    def _open(self, *, create: bool) -> Parts:
        if self._mode != "read":
            migrate(self.path)
        catalog = Catalog(self.path, create=create)
        invoker, streams = Invoker(catalog, self._clock), StreamCache(catalog)
        registry, templates = Registry(catalog, streams), Templates(catalog, streams, invoker)
        self._parts = Parts(catalog, invoker, streams, Dimensions(catalog), registry, templates)
        return self._parts

    def _check_open(self) -> None:
        if self._closed:
            raise TureenError("this pot is closed")
