"""Reporters that survive a break: of the link to a source, or, with a successor, of the reporter itself.

    reporter ── question, a Resume: "I have 3,120 frames of the gateway that began at ..." ──▶ every source
    gateway ── the same Resume again, then the frames after the 3,120th ──▶ reporter

A source whose connection broke connects again and asks for such a question, by a Resume with the number 0. The reporter
repeats a question until it is answered. Until then it drops the source's frames, since frames before them may be lost,
as in a broker's queue.
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
    """The time in the process's hello; 0 before the hello has come."""

    def ended_with(self, end: End) -> bool:
        """Return whether this is the end of a process that sent exactly these messages."""
        return (end.sent, end.sent_checksum) == (self.messages, self.checksum)

    def resume(self, source: str, number: int) -> Resume:
        """Return the message that tells the source how many of its frames came, the hello included.

        A `number` above 0 asks for the frames after these. With 0 the message says that these frames are in the spool,
        so that the source forgets them.
        """
        session = number << SOURCE_BITS | source_byte(source)
        frames = self.messages
        if self.began_ns > 0:
            frames += 1
        return Resume(session, frames, self.began_ns)


class RecoveringReporter(Reporter):
    """Serves sources that keep their frames, and that send the missing frames again after a break."""

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
        """Questions that are not answered yet, by source."""
        self._was_broken = False

    @property
    def _awaits_sources(self) -> bool:
        """Whether a source has not ended, or messages are missing that a break took away."""
        return super()._awaits_sources or (self._was_broken and self._announced != self._total)

    @property
    def _nothing_is_urgent(self) -> bool:
        """Whether every source is at work and no question is pending."""
        return super()._nothing_is_urgent and not self._asked

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
            return  # a source sends its end again after the frames that were missing
        else:
            super()._take_message(frame, message, source, record)

    def _take_resume(self, resume: Resume) -> None:
        """Take a source's answer to a question; or ask the source, since its connection broke."""
        source = source_of(resume.session & (1 << SOURCE_BITS) - 1)
        number = resume.session >> SOURCE_BITS
        if source in self._asked and self._asked[source].session == resume.session:
            del self._asked[source]
        elif source is not None and source in self._sources and number == 0:
            self._ask_to_resume([source])

    def _ask_to_resume(self, sources: Collection[str]) -> None:
        """Ask these sources for the frames that have not come."""
        self._was_broken = True
        for source in sources:
            number = random.randrange(1, 1 << 32 - SOURCE_BITS)
            self._asked[source] = self._received[source].resume(source, number)
        self._ask()

    def _ask(self) -> None:
        """Send every question that is not answered."""
        for question in self._asked.values():
            self._send(encode(question))

    def _begin(self, source: str, hello: Hello) -> None:
        if self._received[source].began_ns:
            self._begin_again(source)
        self._received[source].began_ns = hello.monotonic_ns
        super()._begin(source, hello)

    def _begin_again(self, source: str) -> None:
        """Count anew: another process has become the source."""
        self._received[source] = RecoveringReceived()
        self._records.begin_again(source)


class ReplaceableReporter(RecoveringReporter):
    """A reporter that writes its state beside its spool. If it is killed, its successor goes on from there."""

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
        """Return the state from which another reporter can go on after the existing spool files."""
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
        self._ask_to_resume(self._sources)

    def _begin_again(self, source: str) -> None:
        """Count anew, and forget the end and the result of the earlier process: they are not the source's end."""
        self._results.pop(source, None)
        self._ends = [end for end in self._ends if not self._received[source].ended_with(end)]
        super()._begin_again(source)

    def _roll(self) -> None:
        """Publish a spool file, if it is time. Then tell the sources which frames are in the spool, to be forgotten."""
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
        """Call the link. If all sources are gone, wait a little and return None: unlike a broker, they come back."""
        try:
            return call()
        except PeerGone:
            if has_broker(self._link.url):
                raise
            time.sleep(SHORTEST_SLEEP_S)
            return None
