"""Deriving all streams of a pot that are derived from queries, in the process that has its engine."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from tureen.faults import crash_point
from tureen.pipeline.derivation import RETRY_AFTER, Derivation, DerivedProgress
from tureen.position import Position, PushPosition
from tureen.pot.catalog import Catalog, current_seq
from tureen.pot.derived_streams import derived_streams
from tureen.pot.inbox import Inbox
from tureen.pot.pot_progress import Moment, PotProgress
from tureen.pot.streams import advance_derived
from tureen.results.covers.reuse import SyncPoint
from tureen.results.covers.step_ledger import StepReads
from tureen.results.invoke import Invoker

log = logging.getLogger("tureen")

PAUSE_SECONDS = 0.002
"""The pause after deriving, so that pushes that follow each other closely are derived together."""

POLL_SECONDS = 0.02
"""The interval at which the pot is checked for commits of other processes while it has derived streams.

Pushes to the inbox of this process wake the thread that derives."""

IDLE_SECONDS = 0.1
"""The interval at which a pot without derived streams is checked for new ones."""

NOTE_EVERY = 10.0
"""Seconds between commits of the progress; between them, the keys of pushes tell it."""


class Deriver:
    """Keeps all derived streams of a pot up to date, in the process that has its engine."""

    def __init__(self, catalog: Catalog, inbox: Inbox, invoker: Invoker, clock: Callable[[], int]) -> None:
        """Derive the streams of that catalog."""
        self._catalog, self._inbox, self._invoker, self._clock = catalog, inbox, invoker, clock
        self._progress = PotProgress(catalog)
        self._derivations: dict[int, Derivation] = {}
        self._token = -1
        self._noted: dict[int, str] = {}
        self._note_at = time.monotonic() + NOTE_EVERY
        self._lock = threading.Lock()
        self._last: Moment | None = None
        self.is_current = True
        """Whether the last call of `catch_up` has read everything."""
        with catalog.read() as tx:
            self._first_seq = self._seq = current_seq(tx)
        self._done = (-1, -1)
        self._notices = self._notices_read = 0
        self._awake = threading.Event()
        inbox.on_push = self._on_push
        # Before the first push of this engine.
        self._read_catalog()
        invoker.covering.derived = self

    def __len__(self) -> int:
        """The number of derived streams."""
        return len(self._derivations)

    @property
    def stream_ids(self) -> frozenset[int]:
        """The derived streams."""
        return self._stream_ids

    def sync_point(self, stream_id: int) -> SyncPoint | None:
        """The state of a derived stream; None while rows are pushed to it."""
        derivation = self._derivations.get(stream_id)
        return None if derivation is None else derivation.sync_point()

    def step_reads(self, stream_id: int) -> StepReads | None:
        """What a derived stream has read of the steps of its query; None if it has no steps."""
        derivation = self._derivations.get(stream_id)
        return None if derivation is None else derivation.step_reads()

    def run(self, closing: threading.Event) -> None:
        """Derive until the engine is closed."""
        while not closing.is_set():
            self._awake.clear()
            try:
                self.catch_up()
            except Exception:
                log.exception("streams could not be derived; retrying in %.0f s", RETRY_AFTER)
                closing.wait(RETRY_AFTER)
            closing.wait(PAUSE_SECONDS)
            if self.is_current:
                self._awake.wait(POLL_SECONDS if self._derivations else IDLE_SECONDS)
        with self._lock:
            self.note_progress()
            for derivation in self._derivations.values():
                derivation.close()

    def wake(self) -> None:
        """Check the pot for news now, in the thread that derives."""
        self._awake.set()

    def _on_push(self) -> None:
        if self._derivations:
            self.wake()

    def catch_up(self) -> bool:
        """Push what changed since the last call, also to streams that are derived from derived ones.

        True if there were changes.
        """
        changed = False
        with self._lock:
            moment = self._progress.now()
            if moment.token != self._token or self._notices_read != self._notices:
                self._read_catalog()
                self._token = moment.token
            has_news = moment != self._last
            for derivation in self._derivations.values():
                if has_news or derivation.may_change_by_itself:
                    changed = derivation.catch_up() or changed
            self.is_current = all(derivation.is_current for derivation in self._derivations.values())
            self._last = moment
            if self.is_current:
                self._done = (self._seq, moment.pushes)
            if time.monotonic() >= self._note_at:
                self.note_progress()
        return changed

    def notice(self) -> None:
        """Read the catalog before any position is reached: a stream was created or dropped."""
        self._notices += 1
        self.wake()

    def is_reached(self, position: Position | PushPosition) -> bool:
        """Whether the derived streams have what follows from the tuples up to a position."""
        if not self._derivations and self._notices_read == self._notices:
            return True
        seq, pushes = self._done
        # The count of pushes may be smaller than before a power failure.
        return seq >= position.seq and (pushes >= position.pushes or position.seq < self._first_seq)

    def errors(self) -> dict[int, str]:
        """The errors of queries, by the id of the stream that is derived from them."""
        derivations = list(self._derivations.items())
        return {stream_id: derivation.error for stream_id, derivation in derivations if derivation.error is not None}

    def progress(self) -> dict[int, DerivedProgress]:
        """The progress of each derived stream, by its id."""
        return {stream_id: derivation.progress for stream_id, derivation in list(self._derivations.items())}

    def _read_catalog(self) -> None:
        notices = self._notices
        with self._catalog.read() as tx:
            self._seq, entries = current_seq(tx), derived_streams(tx)
        live = {entry.stream.id for entry in entries}
        for stream_id in self._derivations.keys() - live:
            self._derivations.pop(stream_id).close()
        for entry in entries:
            if entry.stream.id not in self._derivations:
                derivation = Derivation(entry, self._catalog, self._inbox, self._invoker, self._clock)
                self._derivations[entry.stream.id] = derivation
                self._noted[entry.stream.id] = entry.derived_to or ""
        self._stream_ids = frozenset(self._derivations)
        self._notices_read = notices

    def note_progress(self) -> None:
        """Commit up to where the changes of the queries are in the streams' inboxes."""
        self._note_at = time.monotonic() + NOTE_EVERY
        ends = {
            stream_id: derivation.end
            for stream_id, derivation in self._derivations.items()
            if derivation.end != self._noted.get(stream_id, "")
        }
        if ends:
            crash_point("derive.before_note")
            with self._catalog.write() as tx:
                for stream_id, end in ends.items():
                    advance_derived(tx, stream_id, end)
            crash_point("derive.after_note")
            self._noted |= ends
