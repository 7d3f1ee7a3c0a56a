"""Reporters whose sources may break off and go on, and reporters of which the next one goes on where one was killed.

    reporter ── resume: "I have 3,120 frames of the gateway that began at ..." ──▶ every source
    gateway ── the same resume again, and the frames behind the 3,120th ──▶ reporter

A source whose connection broke connects again and asks for that question, by a resume without a number. A question goes
out until it is answered; until then the reporter drops the source's frames, which may lie in a broker's queue with a
gap before them.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any

from exchange.json_records import Record
from exchange.messages import End, Hello, Message, Resume, encode
from exchange.results import ReporterResult
from exchange.session import SOURCE_BITS, source_byte, source_of
from stats_reporter.recovering.records import RecoveringRecords
from stats_reporter.recovering.spool import ReplaceableSpool
from stats_reporter.service import SHORTEST_SLEEP_S, Received, Reporter
from stats_reporter.writer import SpoolWriter
from transports.base import Link, PeerGone, is_silent
from transports.registry import has_broker


@dataclass
class RecoveringReceived(Received):
    """The messages that came from one process of a source."""

    began_ns: int = 0
    """The time in its hello; 0 before that came."""

    def ended_with(self, end: End) -> bool:
        """Return whether this is the end of a process that sent just this."""
        return (end.sent, end.sent_checksum) == (self.messages, self.checksum)

    def resume(self, source: str, number: int) -> Resume:
        """Tell the source how many frames came, of which the hello is the first.

        A `number` asks for the frames behind them. 0 says that they are in the spool, so that the source forgets them.
        """
        session = number << SOURCE_BITS | source_byte(source)
        frames = self.messages
        if self.began_ns > 0:
            frames += 1
        return Resume(session, frames, self.began_ns)


class RecoveringReporter(Reporter):
    """Serves sources that keep their frames, and that send again what it lacks after a break."""

    records_class = RecoveringRecords
    received_class = RecoveringReceived
    _records: RecoveringRecords
    _received: defaultdict[str, RecoveringReceived]  # type: ignore[assignment]

    def __init__(
        self,
        run: int,
        link: Link,
        spool: SpoolWriter,
        timeout_s: float,
        sources: Collection[str] = ("gateway", "engine"),
        reports_thread_usage: bool = False,
        instance: int = 1,
        reporters: int = 1,
    ) -> None:
        super().__init__(run, link, spool, timeout_s, sources, reports_thread_usage, instance, reporters)
        self._asked: dict[str, Resume] = {}
        """Questions to sources that are to go on, until they do."""
        self._was_broken = False

    @property
    def _awaits_sources(self) -> bool:
        """Whether a source has not ended, or has ended without what a break took from it."""
        return super()._awaits_sources or (self._was_broken and self._announced != self._total)

    @property
    def _is_quiet(self) -> bool:
        return super()._is_quiet and not self._asked

    def _wait(self) -> None:
        self._ask()
        super()._wait()

    def _take_message(self, frame: bytes, message: Message | None, source: str | None, record: Record | None) -> None:
        """Take a message, unless its source was asked to send it again."""
        if source in self._asked:
            return
        if isinstance(message, Resume):
            self._take_resume(message)
        elif isinstance(message, End) and self._was_broken and message in self._ends:
            return  # an end comes again with what the last one lacked
        else:
            super()._take_message(frame, message, source, record)

    def _take_resume(self, resume: Resume) -> None:
        """Let a source go on as it was asked to; or ask it, since its connection broke."""
        source = source_of(resume.session & (1 << SOURCE_BITS) - 1)
        number = resume.session >> SOURCE_BITS
        if source in self._asked and self._asked[source].session == resume.session:
            del self._asked[source]
        elif source is not None and source in self._sources and number == 0:
            self._go_on([source])

    def _go_on(self, sources: Collection[str]) -> None:
        """Ask these sources for what has not come."""
        self._was_broken = True
        for source in sources:
            number = random.randrange(1, 1 << 32 - SOURCE_BITS)
            self._asked[source] = self._received[source].resume(source, number)
        self._ask()

    def _ask(self) -> None:
        for question in self._asked.values():
            self._send(encode(question))

    def _begin(self, source: str, hello: Hello) -> None:
        if self._received[source].began_ns:
            self._begin_again(source)
        self._received[source].began_ns = hello.monotonic_ns
        super()._begin(source, hello)

    def _begin_again(self, source: str) -> None:
        """Count anew: another process stands for the source."""
        self._received[source] = RecoveringReceived()
        self._records.begin_again(source)


class ReplaceableReporter(RecoveringReporter):
    """A reporter that notes what it knows beside its spool. If it is killed, the next one goes on from there."""

    _spool: ReplaceableSpool

    def __init__(
        self,
        run: int,
        link: Link,
        spool: ReplaceableSpool,
        timeout_s: float,
        sources: Collection[str] = ("gateway", "engine"),
        reports_thread_usage: bool = False,
        instance: int = 1,
        reporters: int = 1,
    ) -> None:
        super().__init__(run, link, spool, timeout_s, sources, reports_thread_usage, instance, reporters)
        spool.state = self._state

    def run(self) -> ReporterResult:
        """Serve until every source has ended or fallen silent. OSError where the spool cannot be written."""
        if self._spool.state_before is None:
            self._spool.note_state()
        else:
            self._go_on_from(self._spool.state_before)
        return super().run()

    def close(self) -> None:
        super().close()
        self._spool.close()

    def _state(self) -> dict[str, Any]:
        """Return what another reporter has to know to go on behind the spool files that are there."""
        return {
            "received": {source: asdict(received) for source, received in self._received.items()},
            "ends": [tuple(end) for end in self._ends],
            "results": self._results,
            "records": self._records.state(),
        }

    def _go_on_from(self, state: dict[str, Any]) -> None:
        """Take the place of a reporter that was killed."""
        for source, received in state["received"].items():
            self._received[source] = RecoveringReceived(**received)
        self._ends = [End(*end) for end in state["ends"]]
        self._results = state["results"]
        self._records.go_on_from(state["records"])
        self._go_on(self._sources)

    def _begin_again(self, source: str) -> None:
        """Count anew, and forget what the process before had said at its end: that is not the end."""
        self._results.pop(source, None)
        self._ends = [end for end in self._ends if not self._received[source].ended_with(end)]
        super()._begin_again(source)

    def _roll(self) -> None:
        """Publish a spool file, if it is time, and tell the sources what is in it, so that they forget that."""
        files = self._spool.files
        super()._roll()
        if self._spool.files > files:
            for source, received in self._received.items():
                self._send(encode(received.resume(source, 0)))

    def _take(self) -> int:
        return self._patiently(super()._take) or 0

    def _wait(self) -> None:
        self._patiently(super()._wait)

    def _is_silent(self) -> bool:
        return is_silent(self._link, super()._take)

    def _patiently(self, call: Callable[[], int | None]) -> int | None:
        """Call the link. All sources may be gone for a while, since each comes back; a broker does not."""
        try:
            return call()
        except PeerGone:
            if has_broker(self._link.url):
                raise
            time.sleep(SHORTEST_SLEEP_S)
            return None
