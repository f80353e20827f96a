"""A server from its settings to its end: address, pot, first token, requests, and an orderly stop."""

from __future__ import annotations

import asyncio
import functools
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
from tureen.pot.queries import LOCAL
from tureen.pot.tokens import count_tokens, create_token
from tureen.service.app import make_app
from tureen.service.connections import Connection
from tureen.service.logs import set_up
from tureen.service.settings import Settings
from tureen.service.state import Service
from tureen.soup.embedded import Soup
from tureen.soup.embedded import open as open_pot

log = logging.getLogger("tureen")

BACKLOG = 2048

LOOK_AGAIN = 0.1
"""How often it is looked whether the server is ready, in seconds, until it is."""

SWITCH_AFTER = 0.0005
"""For how many seconds a thread may keep the interpreter while another waits for it; Python's own is ten times that."""


CHECK_EVERY = 5
"""Connections are checked for clients that are too slow at every fifth of uvicorn's ticks, which is half a second."""

OTHER_FILES = 2_000
"""How many files a server has open besides its connections, at most."""


class Server(uvicorn.Server):
    """Uvicorn's server, which ends slow connections, and lets followers go when it is asked to stop."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        """Serve that service."""
        super().__init__(config)
        self._service = service

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections."""
        if counter % CHECK_EVERY == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                assert isinstance(connection, Connection)
                connection.check(now)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as uvicorn calls it
        """Stop taking requests, and let those that wait go."""
        # Uvicorn's own would raise the signal again at the end, and the process would not end well.
        self._service.stop_following()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def serve(settings: Settings) -> int:
    """Serve a pot until the process is told to stop; the exit code is 0, or 1 where it could not start."""
    set_up(settings.log, settings.log_level)
    # Also for what Spark and its workers write.
    os.umask(0o077)
    # Every look at the catalog lets go of the interpreter, and gets it back when whoever took it is asked to stop.
    sys.setswitchinterval(SWITCH_AFTER)
    allow_files(settings.max_connections + OTHER_FILES)
    try:
        address = bind(settings)
    except TureenError as error:
        print(f"tureen: {error}", file=sys.stderr)
        return 1
    try:
        spark = settings.spark_settings
        soup = open_pot(settings.pot, mode="write", master=settings.master, nice=settings.nice, spark=spark)
    except TureenError as error:
        address.close()
        print(f"tureen: {error}", file=sys.stderr)
        return 1
    try:
        greet(soup, settings, address)
        with telling_when_ready(soup):
            run(soup, settings, address)
    finally:
        soup.close()
        stop_session()
    log.info("stopped")
    return 0


def bind(settings: Settings) -> socket.socket:
    """The socket to listen on, taken before anything else is begun."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.socket(family)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((settings.host.strip("[]"), settings.port))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        raise TureenError(
            f"cannot listen on {settings.host}:{settings.port}", detail=str(error), hint="take another --port"
        ) from None
    found.set_inheritable(False)
    return found


def allow_files(count: int) -> None:
    """Let the process have so many files open, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < count:
        log.warning("the system allows %d open files; max_connections needs up to %d", allowed, count)


def greet(soup: Soup, settings: Settings, address: socket.socket) -> None:
    """Say where the server is; at the first start, make a token and show it."""
    scheme = "https" if settings.certificate else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    print(f"tureen: serving {soup.path} on {scheme}://{host}:{address.getsockname()[1]}", flush=True)
    if settings.no_auth:
        print("tureen: no tokens are asked for: whoever can reach this address is an admin", flush=True)
        return
    text = first_token(soup)
    if text is not None:
        print(f"tureen: the first token, for an admin; it is not shown again\n{text}", flush=True)


@contextmanager
def telling_when_ready(soup: Soup) -> Iterator[None]:
    """Print a line once rows are taken up and answered; Spark takes a while to start."""
    ended, began = threading.Event(), time.monotonic()

    def wait() -> None:
        while not ended.wait(LOOK_AGAIN):
            if soup.trouble() is None:
                print(f"tureen: ready after {time.monotonic() - began:.1f} s", flush=True)
                return

    thread = threading.Thread(target=wait, name="tureen-ready")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def first_token(soup: Soup) -> str | None:
    """A token for an admin, where there is no token yet."""
    catalog = Catalog(soup.path)
    try:
        with catalog.write() as tx:
            if count_tokens(tx):
                return None
            return create_token(tx, LOCAL, ["admin"], now=micros_now(), note="made at the first start")[1]
    finally:
        catalog.close()


def make_server(soup: Soup, settings: Settings) -> tuple[Server, Service]:
    """A server that can be run in any loop, and its state."""
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
        http=functools.partial(Connection, settings=settings, refused=service.refused),  # type: ignore[arg-type]
        timeout_keep_alive=max(1, round(settings.idle_seconds)),
        ssl_certfile=settings.certificate or None,
        ssl_keyfile=settings.private_key or None,
        ws="none",
    )
    return Server(config, service), service


def run(soup: Soup, settings: Settings, address: socket.socket) -> None:
    """Answer requests until told to stop."""
    server, service = make_server(soup, settings)
    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(server.serve(sockets=[address]))
    finally:
        service.close()
