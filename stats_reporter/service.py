"""The stats reporter's loop: receive from every source, write the spool, confirm when all have ended."""

from __future__ import annotations

import contextlib
import random
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any

from exchange.instances import named
from exchange.json_records import Record, check
from exchange.messages import End, Hello, Resume, Statistics, encode, read
from exchange.records import END, RESULT, SESSION, decode_sent
from exchange.results import ReporterResult
from exchange.session import SOURCE_BITS, policy_of, source_byte, source_of
from stats_reporter.writer import SpoolRecords, SpoolWriter, source_of_meter
from transports.base import Link, PeerGone, is_silent
from transports.frames import FrameBatch
from transports.outbox import frame_checksum
from transports.registry import has_broker

SHORTEST_SLEEP_S, LONGEST_SLEEP_S, END_SLEEP_S = 0.05, 1.0, 0.2
"""The reporter sleeps briefly only once a source has ended: waking for nothing disturbs what is measured."""
GATHERING_S = 0.02
"""Messages that come within this time are read together: waking for each takes longer than reading it."""
QUIET_S = 1.0
BETWEEN_RECORDS_S = 2.0
"""A working source sends something every second."""
STILL_HERE_NS = 1_000_000_000
"""Interval at which sources that have ended are told that others have not."""


@dataclass
class Received:
    """What came from a source since it began: a source that was started again begins anew."""

    began_ns: int = 0
    """The time in its hello; 0 before that came."""
    messages: int = 0
    checksum: int = 0

    def add(self, frame: bytes) -> None:
        self.messages += 1
        self.checksum = (self.checksum + frame_checksum(frame)) % 2**64

    def ended_with(self, end: End) -> bool:
        return (end.sent, end.sent_checksum) == (self.messages, self.checksum)

    def word(self, source: str, number: int) -> Resume:
        """Tell the source how many frames came, of which the hello is the first.

        A `number` asks for the frames behind them. 0 says that they are in the spool, so that the source forgets them.
        """
        session = number << SOURCE_BITS | source_byte(source)
        return Resume(session, self.messages + (self.began_ns > 0), self.began_ns)


class Reporter:
    """Serves these sources of one run over one link that fans in; the run has `reporters` of them."""

    def __init__(
        self,
        run: int,
        link: Link,
        spool: SpoolWriter,
        timeout_s: float,
        sources: Collection[str] = ("gateway", "engine"),
        of_thread: bool = False,
        instance: int = 1,
        reporters: int = 1,
    ) -> None:
        self._run, self._link, self._spool = run, link, spool
        self._name, self._reporters = named("reporter", instance), reporters
        self._timeout_s, self._sources = timeout_s + BETWEEN_RECORDS_S, sources
        self._records = SpoolRecords(run, self._name, spool, of_thread)
        self._batch = FrameBatch(1 << 12)
        self._received: defaultdict[str, Received] = defaultdict(Received)
        self._asked: dict[str, Resume] = {}
        """Questions to sources that are to go on, until they do."""
        self._was_broken = False
        self._junk = self._refused = 0
        self._ends: list[End] = []
        self._results: dict[str, dict[str, Any]] = {}
        self._stopped: str | None = None
        self._notified_ns = 0
        self._spool.state = self._state

    def stop(self, reason: str) -> None:
        """Finish once the sources fall silent: until then, messages may be on their way."""
        self._stopped = self._stopped or reason
        self._timeout_s = min(self._timeout_s, QUIET_S)

    def warm(self) -> None:
        """Load what checks records, which takes 19 ms, before a run begins."""
        check({}, dict)

    def close(self) -> None:
        self._link.close()
        self._spool.close()

    def run(self) -> ReporterResult:
        """Serve until every source has ended or fallen silent. OSError where the spool cannot be written."""
        self._records.start()
        heard_ns = time.monotonic_ns()
        if self._spool.state_before is None:
            self._spool.note_state()
        else:
            self._go_on_from(self._spool.state_before)
        try:
            while self._awaits_sources:
                if self._patiently(self._take):
                    heard_ns = time.monotonic_ns()
                    self._gather()
                elif time.monotonic_ns() - heard_ns > self._timeout_s * 1e9:
                    if is_silent(self._link, self._take):
                        self.stop(f"the reporter heard nothing for {self._timeout_s:g} s")
                        break
                    heard_ns = time.monotonic_ns()
                self._roll()
                if self._awaits_sources:
                    self._notify_ended()
                    self._ask()
                    self._patiently(self._wait)
        except PeerGone as error:
            self.stop(str(error))
        return self._finish()

    def _roll(self) -> None:
        """Publish a spool file, if it is time, and tell the sources what is in it."""
        files = self._spool.files
        self._spool.roll()
        if self._spool.recovers and self._spool.files > files:
            for source, received in self._received.items():
                self._send(encode(received.word(source, 0)))

    def _wait(self) -> None:
        longest_s = min(END_SLEEP_S if self._ends or self._asked else LONGEST_SLEEP_S, self._timeout_s)
        sleep_s = min(max(self._spool.left_s, SHORTEST_SLEEP_S), longest_s)
        self._link.wait(time.monotonic_ns() + int(sleep_s * 1e9))

    def _patiently(self, call: Callable[[], int | None]) -> int | None:
        """Call the link. All sources may be gone for a while where each comes back; a broker does not."""
        try:
            return call()
        except PeerGone:
            if not self._spool.recovers or has_broker(self._link.url):
                raise
            time.sleep(SHORTEST_SLEEP_S)
            return None

    def _gather(self) -> None:
        """Let messages gather while every source is at work."""
        if not (self._ends or self._asked):
            time.sleep(GATHERING_S)

    @property
    def _awaits_sources(self) -> bool:
        return len(self._ends) < len(self._sources) or (self._was_broken and self._announced != self._total)

    @property
    def _announced(self) -> int:
        return sum(end.sent for end in self._ends)

    @property
    def _total(self) -> int:
        return sum(received.messages for received in self._received.values())

    def _notify_ended(self) -> None:
        """Send the sources that have ended an empty frame: their confirmation has to wait for the others."""
        now_ns = time.monotonic_ns()
        if self._ends and now_ns - self._notified_ns >= STILL_HERE_NS:
            self._notified_ns = now_ns
            self._send(b"")

    def _take(self) -> int:
        self._batch.clear()
        frames = self._link.receive(self._batch)
        for frame in self._batch:
            self._read(frame)
        return frames

    def _read(self, frame: bytes) -> None:
        """Take a frame. Every message but hello, resume and end counts as received, unless it is junk."""
        message = read(frame)
        document = message.document if isinstance(message, Statistics) else b""
        record = decode_sent(document, self._run) if document else None
        source = source_of(message.source) if isinstance(message, Hello) else source_of_meter(message)
        source = record["source"] if record else source
        if source in self._asked:
            return
        if isinstance(message, End):
            if not (self._was_broken and message in self._ends):  # an end comes again with what the last one lacked
                self._ends.append(message)
        elif isinstance(message, Hello):
            self._greet(message)
        elif isinstance(message, Resume):
            self._resume(message)
        elif source is None or message is None:
            self._junk += 1
        else:
            self._received[source].add(frame)
            if record is None:
                self._records.take_reading(source, message)
            else:
                self._note(record, document)

    def _greet(self, hello: Hello) -> None:
        source = source_of(hello.source)
        if hello.run != self._run or source is None:
            self._refused += 1
            return
        if source not in self._sources:
            stranger = f"{source}, which is none of its own, reports to the {self._name}"
            self._stopped = self._stopped or f"{stranger}: see --instance, --pairs and --reporters"
        if self._received[source].began_ns:
            self._begin_again(source)
        self._received[source].began_ns = hello.monotonic_ns
        terms = {
            "version": hello.version,
            "policy": policy_of(hello.policy),
            "packing": hello.packing,
            "max_price": hello.max_price,
        }
        self._records.write(source, SESSION, terms, read_ns=(hello.wall_ns, hello.monotonic_ns))

    def _begin_again(self, source: str) -> None:
        """Another process stands for the source. What an earlier one had said at its end is not the end."""
        if self._spool.recovers:
            self._results.pop(source, None)
            self._ends = [end for end in self._ends if not self._received[source].ended_with(end)]
        self._received[source] = Received()
        self._records.begin_again(source)

    def _resume(self, word: Resume) -> None:
        """A source goes on as it was asked to, or wants to be asked, since its connection broke."""
        source = source_of(word.session & (1 << SOURCE_BITS) - 1)
        if source in self._asked and self._asked[source].session == word.session:
            del self._asked[source]
        elif source is not None and source in self._sources and not word.session >> SOURCE_BITS:
            self._go_on(source)

    def _go_on(self, *sources: str) -> None:
        self._was_broken = True
        for source in sources:
            self._asked[source] = self._received[source].word(source, random.randrange(1, 1 << 32 - SOURCE_BITS))
        self._ask()

    def _ask(self) -> None:
        for question in self._asked.values():
            self._send(encode(question))

    def _state(self) -> dict[str, Any]:
        """What another reporter has to know to go on behind the spool files that are there."""
        return {
            "received": {source: asdict(received) for source, received in self._received.items()},
            "ends": list(map(tuple, self._ends)),
            "results": self._results,
            "records": self._records.state(),
        }

    def _go_on_from(self, state: dict[str, Any]) -> None:
        """Take the place of a reporter that was killed."""
        self._received.update({source: Received(**each) for source, each in state["received"].items()})
        self._ends, self._results = [End(*end) for end in state["ends"]], state["results"]
        self._records.go_on_from(state["records"])
        self._go_on(*self._sources)

    def _note(self, record: Record, document: bytes) -> None:
        """Take a source's record."""
        if record["kind"] != RESULT:
            self._records.take(record, document)
            return
        if (source := record["source"]) in self._results:
            self.stop(f"two components say that they are the {source}: give each pair its own --instance")
        self._results[source] = record["payload"]

    def _finish(self) -> ReporterResult:
        announced, received = self._announced, self._total
        checksum = sum(each.checksum for each in self._received.values()) % 2**64
        closing = {"announced": announced, "received": received, "reporters": self._reporters}
        self._records.write(self._name, END, closing)
        self._spool.publish()
        sockets = self._link.sockets()  # while the sources wait for the confirmation
        self._send(encode(End(0, 0, received, checksum)))  # confirms to every source what is in the spool
        return ReporterResult(
            received=received,
            announced=announced,
            checksums_agree=sum(end.sent_checksum for end in self._ends) % 2**64 == checksum,
            junk_frames=self._junk + self._link.junk,
            handshakes_refused=self._refused + self._link.refused,
            samples=self._records.samples,
            results=self._results,
            usage=self._records.usage(),
            sockets=sockets,
            stopped=self._stopped,
        )

    def _send(self, frame: bytes) -> None:
        """Send to every source, even if one of them is gone."""
        with contextlib.suppress(PeerGone):
            self._link.send(FrameBatch.of(frame), 0)
