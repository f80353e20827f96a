"""An open pot: its components, created when they are first needed, and its engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tureen.deferred_import import DeferredModule
from tureen.errors import EngineFailed, PotError, TureenError
from tureen.joining.join_limits import DEFAULT_LIMITS, JoinLimits
from tureen.migration.migrate import migrate
from tureen.pipeline.derivation import DerivedProgress
from tureen.pipeline.engine import Engine
from tureen.pot.catalog import Catalog
from tureen.pot.catalog import exists as pot_exists
from tureen.pot.files import make_private_directory
from tureen.pot.pot_progress import PotProgress
from tureen.pot.stream_cache import StreamCache
from tureen.results.invoke import Invoker
from tureen.routing_policies import ROUTING_POLICIES
from tureen.soup.exit_closing import close_at_exit, forget
from tureen.soup.functions import Functions
from tureen.soup.interface import Positions
from tureen.soup.registry import Registry
from tureen.soup.tables import Dimensions
from tureen.soup.templates import Templates
from tureen.soup.waiting import wait_for

if TYPE_CHECKING:
    from tureen.federation import federation as federating
    from tureen.federation import network_planner, network_view
    from tureen.federation.federation import Federation
    from tureen.federation.federation_settings import FederationSettings
    from tureen.federation.neighbour import Connect
    from tureen.federation.network_view import NetworkView
else:
    # Only servers have peers.
    federating = DeferredModule("tureen.federation.federation")
    network_planner = DeferredModule("tureen.federation.network_planner")
    network_view = DeferredModule("tureen.federation.network_view")

MODES = ("auto", "read", "write")

STARTING, NO_ENGINE = "Spark is starting", "no engine"
"""Why pushed rows stay in the inbox although nothing failed."""


class PotComponents(NamedTuple):
    """A catalog, and the objects that read and change it."""

    catalog: Catalog
    progress: PotProgress
    invoker: Invoker
    streams: StreamCache
    tables: Dimensions
    registry: Registry
    templates: Templates
    functions: Functions


class OpenPot:
    """A pot that is open in this process, with an engine if one is needed."""

    def __init__(
        self,
        path: Path,
        *,
        mode: str,
        master: str,
        nice: int,
        clock: Callable[[], int],
        spark: Mapping[str, str] | None = None,
        join_limits: JoinLimits = DEFAULT_LIMITS,
        routing: str = ROUTING_POLICIES[0],
    ) -> None:
        """Open the pot if it exists; with mode "write", acquire the lease and start the engine."""
        if mode not in MODES:
            raise TureenError(f"mode must be one of {', '.join(MODES)}, got '{mode}'")
        self.path = path
        self.clock = clock
        self._mode, self._master, self._nice = mode, master, nice
        self._spark = dict(spark or {})
        self._join_limits, self._routing = join_limits, routing
        self._lock = threading.RLock()
        self._closed = False
        self._components: PotComponents | None = None
        self.running: Engine | None = None
        self.federation: Federation | None = None
        self.network: NetworkView | None = None
        if pot_exists(path):
            self._open(create=False)
        if mode == "write":
            self.engine().start_spark()

    @property
    def components(self) -> PotComponents:
        """The components; raises if the pot does not exist."""
        self._check_open()
        if self._components is None:
            with self._lock:
                if self._components is None:
                    return self._open(create=False)
        return self._components

    @property
    def catalog(self) -> Catalog:
        """The pot's catalog."""
        return self.components.catalog

    def exists(self) -> bool:
        """Whether the pot exists; another process may have created it after this one was opened."""
        return self._components is not None or pot_exists(self.path)

    def writable(self) -> PotComponents:
        """The components, for transactions that need neither the lease nor Spark; creates the pot if needed."""
        with self._lock:
            self._check_open()
            if self._mode == "read":
                raise TureenError("this pot is open for reading only", hint='open it with mode="write"')
            if self._components is not None:
                return self._components
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                make_private_directory(self.path)
            except OSError as error:
                raise EngineFailed(f"cannot create the pot in '{self.path}'", detail=str(error)) from error
            return self._open(create=True)

    def engine(self) -> Engine:
        """The engine, started at the first call."""
        if self.running is not None:
            return self.running
        with self._lock:
            components = self.writable()
            if self.running is None:
                self.running = Engine(
                    self.path,
                    components.catalog,
                    components.invoker,
                    master=self._master,
                    nice=self._nice,
                    clock=self.clock,
                    spark=self._spark,
                )
                components.progress.is_derived = self.running.deriver.is_reached
                close_at_exit(self)
            return self.running

    def federate(self, connect: Connect, name: str | None, settings: FederationSettings) -> Federation | None:
        """Receive streams of other servers, and let them receive; `connect` opens a connection to a peer.

        None in a pot that is open for reading only.
        """
        if self._mode == "read":
            return None
        components, engine = self.writable(), self.engine()
        catalog, invoker = components.catalog, components.invoker
        federation = federating.Federation(
            catalog, invoker, engine.inbox, self.clock, connect, name=name, settings=settings
        )
        planner = network_planner.NetworkPlanner(federation, catalog, invoker, self.clock)
        self.network = network_view.NetworkView(catalog, federation, planner)
        components.registry.remote = components.templates.remote = self.federation = federation
        return federation

    def federated(self) -> Federation:
        """The federation of a server; raises in a pot that no server has opened, or for reading only."""
        if self.federation is None:
            raise TureenError(
                "an embedded pot has no peers", hint="start a server with `tureen serve`, and connect to it"
            )
        return self.federation

    def ensure_fed(self) -> None:
        """Start the engine if no other process has one: rows may be left in the inbox after a crash."""
        if self.running is None and self._mode == "auto":
            try:
                self.engine()
            except PotError:
                # Another process has the lease, or this one cannot write to the pot.
                return

    def wait(self, position: Positions, seconds: float | None) -> None:
        """Wait until a position, or each of several positions, is reached."""
        wait_for(
            self.components.progress, position, seconds, ensure_fed=self.ensure_fed, delay_reason=self.delay_reason
        )

    def engine_error(self) -> str | None:
        """The error that keeps the engine from running, if any."""
        return None if self.running is None else self.running.error

    def delay_reason(self) -> str | None:
        """Why the engine of this process does not read pushed rows at the moment; None if it does, or has none."""
        return self.engine_error() or (STARTING if self.state() == "starting" else None)

    def source_errors(self) -> dict[int, str]:
        """Errors of external sources that cannot be read and of derived streams' queries, by stream id."""
        return {} if self.running is None else self.running.source_errors()

    def derived_progress(self) -> dict[int, DerivedProgress]:
        """How derived streams keep up with their inputs; only the process with the engine knows."""
        return {} if self.running is None else self.running.deriver.progress()

    def held_runs(self) -> dict[int, dict[str, int]]:
        """By stream, how many runs only readers of changes need; only the process with the engine knows."""
        return {} if self.running is None else dict(self.running.freeing.held)

    def state(self) -> str:
        """Either "running", "starting", or "none" if this process has no engine."""
        if self.running is None:
            return "none"
        return "running" if self.running.ready.is_set() else "starting"

    def close(self) -> None:
        """Stop the engine and close the catalog."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            forget(self)
            if self.federation is not None:
                self.federation.close()
            if self.running is not None:
                self.running.close()
                self.running = None
            if self._components is not None:
                self._components.catalog.write_digest()
                self._components.catalog.close()

    def _open(self, *, create: bool) -> PotComponents:
        if self._mode != "read":
            migrate(self.path)
        catalog = Catalog(self.path, create=create)
        invoker, streams = Invoker(catalog, self.clock, self._join_limits, self._routing), StreamCache(catalog)
        self._components = PotComponents(
            catalog,
            PotProgress(catalog),
            invoker,
            streams,
            Dimensions(catalog),
            Registry(catalog, streams),
            Templates(catalog, invoker),
            Functions(catalog),
        )
        return self._components

    def _check_open(self) -> None:
        if self._closed:
            raise TureenError("this pot is closed")
