"""The server process: binds the address, opens the pot, creates the first token, serves requests, and shuts down."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from tureen.errors import TureenError
from tureen.pipeline.session import stop_session
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.registered import LOCAL
from tureen.pot.tokens import count_tokens, create_token
from tureen.service.app import make_app
from tureen.service.connections import Connection
from tureen.service.logs import set_up_logging
from tureen.service.settings import Settings
from tureen.service.state import Service
from tureen.soup.embedded import Soup
from tureen.soup.opening import open as open_pot
from tureen.soup.served_soup import ServedSoup

log = logging.getLogger("tureen")

BACKLOG = 2048

READY_POLL_SECONDS = 0.1
"""The seconds between two checks of whether Spark has started."""

GC_THRESHOLDS = (10_000, 100, 20)
"""The thresholds of garbage collection: the number of new objects, and of collections before older ones are examined.

A collection of 10,000 new objects takes a millisecond.
"""

SWITCH_INTERVAL = 0.0005
"""Python's thread switch interval in seconds, a tenth of its default."""

TICKS_PER_CHECK = 5
"""Connections are checked for timeouts at every fifth of uvicorn's ticks, which is every half second."""

OTHER_FILES = 2_000
"""The most files that a server has open besides its connections."""


class Server(uvicorn.Server):
    """Uvicorn's server, with timeouts of connections and a shutdown that ends followers."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        """Serve a service."""
        super().__init__(config)
        self._service = service

    async def on_tick(self, counter: int) -> bool:
        """Check the connections for timeouts."""
        if counter % TICKS_PER_CHECK == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                assert isinstance(connection, Connection)
                connection.check_timeouts(now)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as uvicorn calls it
        """Stop accepting requests, and end followers and waiting requests."""
        # Uvicorn's own handler raises the signal again at the end, so that the exit code would not be 0.
        self._service.stop_following()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def serve(settings: Settings) -> int:
    """Serve a pot until the process is told to stop; return the exit code, 0, or 1 if it could not start."""
    set_up_logging(settings.log, settings.log_level)
    # Inherited by Spark and its workers.
    os.umask(0o077)
    # Every read of the catalog releases the GIL and must wait for a switch to get it back.
    sys.setswitchinterval(SWITCH_INTERVAL)
    raise_file_limit(settings.max_connections + OTHER_FILES)
    try:
        address = bind(settings)
    except TureenError as error:
        print(f"tureen: {error}", file=sys.stderr)
        return 1
    try:
        spark = settings.spark_settings
        soup = open_pot(
            settings.pot,
            mode="write",
            master=settings.master,
            nice=settings.nice,
            spark=spark,
            max_joined_rows=settings.max_joined_rows,
            max_join_pairs=settings.max_join_pairs,
            routing=settings.routing,
        )
    except TureenError as error:
        address.close()
        print(f"tureen: {error}", file=sys.stderr)
        return 1
    try:
        print_startup(soup, settings, address)
        tune_collector()
        with announce_when_ready(soup):
            run(soup, settings, address)
    finally:
        soup.close()
        stop_session()
        # What is frozen would be reported as leaked when the process ends.
        gc.unfreeze()
    log.info("stopped")
    return 0


def tune_collector() -> None:
    """Let garbage collections be rare and short: each stops all threads.

    Binding a query with a list of 100,000 constants spent half of its time in them, and delayed other requests by up
    to a quarter of a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def bind(settings: Settings) -> socket.socket:
    """Bind the socket to listen on, before anything else starts."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host.strip("[]"), settings.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise TureenError(
            f"cannot listen on {settings.host}:{settings.port}", detail=str(error), hint="choose another --port"
        ) from None
    listener.set_inheritable(False)
    return listener


def raise_file_limit(count: int) -> None:
    """Raise the process's limit on open files to `count`, or as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < count:
        log.warning("the system allows %d open files, max_connections needs up to %d", allowed, count)


def print_startup(soup: Soup, settings: Settings, address: socket.socket) -> None:
    """Print the server's URL, and at the first start a new admin token."""
    scheme = "https" if settings.certificate else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    print(f"tureen: serving {soup.path} on {scheme}://{host}:{address.getsockname()[1]}", flush=True)
    if settings.no_auth:
        print("tureen: authentication is off, every client of this address is an admin", flush=True)
        return
    text = first_token(soup)
    if text is not None:
        print(f"tureen: first admin token, not shown again:\n{text}", flush=True)


@contextmanager
def announce_when_ready(soup: Soup) -> Iterator[None]:
    """Print a line now, and one when Spark has started, which takes a while."""
    served, ended, started_at = ServedSoup.of(soup), threading.Event(), time.monotonic()
    print("tureen: ready; Spark is starting", flush=True)

    def wait() -> None:
        while not ended.wait(READY_POLL_SECONDS):
            if served.pipeline() == "running" and served.trouble() is None:
                print(f"tureen: Spark started after {time.monotonic() - started_at:.1f} s", flush=True)
                return

    thread = threading.Thread(target=wait, name="tureen-ready")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def first_token(soup: Soup) -> str | None:
    """Create an admin token if the pot has no token yet."""
    with Catalog(soup.path) as catalog, catalog.write() as tx:
        if count_tokens(tx):
            return None
        return create_token(tx, LOCAL, ["admin"], now=micros_now(), note="created at the first start")[1]


def make_server(soup: Soup, settings: Settings) -> tuple[Server, Service]:
    """A server that can run in any event loop, and its state."""
    service = Service(soup, settings)
    config = uvicorn.Config(
        make_app(service),
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        lifespan="on",
        timeout_graceful_shutdown=max(1, round(settings.shutdown_seconds)),
        http=functools.partial(Connection, settings=settings, on_refusal=service.count_refusal),  # type: ignore[arg-type]
        timeout_keep_alive=max(1, round(settings.idle_seconds)),
        ssl_certfile=settings.certificate or None,
        ssl_keyfile=settings.private_key or None,
        ws="none",
    )
    return Server(config, service), service


def run(soup: Soup, settings: Settings, address: socket.socket) -> None:
    """Serve requests until the process is told to stop."""
    server, service = make_server(soup, settings)
    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(server.serve(sockets=[address]))
    finally:
        service.close()
