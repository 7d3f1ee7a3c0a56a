"""The stats reporter's loop: receive from every source, write the spool, confirm when all have ended."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, cast

from exchange.instances import named
from exchange.json_records import Record, check
from exchange.messages import End, Hello, Message, Statistics, encode, read
from exchange.records import END, RESULT, SESSION, decode_sent
from exchange.results import ReporterResult
from exchange.session import policy_of, source_of
from stats_reporter.records import SpoolRecords, source_of_meter
from stats_reporter.writer import SpoolWriter
from transports.base import Link, PeerGone, is_silent
from transports.frames import FrameBatch
from transports.outbox import frame_checksum
from transports.registry import has_broker, scheme_of

SHORTEST_SLEEP_S = 0.05
LONGEST_SLEEP_S = 1.0
END_SLEEP_S = 0.2
"""The longest sleep once a source has ended. While all sources work, waking for nothing would disturb the run."""
GATHERING_S = 0.02
"""Messages that come within this time are read together: to wake for each message takes longer than to read it."""
SILENCE_AFTER_STOP_S = 1.0
"""The longest wait for a silent source once the reporter was asked to stop."""
BETWEEN_RECORDS_S = 2.0
"""The longest time between two messages of a working source, which sends something every second."""
STILL_HERE_NS = 1_000_000_000
"""The interval at which sources that have ended learn that others have not."""


@dataclass
class Received:
    """Count and checksum of the messages that came from a source."""

    messages: int = 0
    checksum: int = 0
    """The sum of their frames' checksums."""

    def add(self, frame: bytes) -> None:
        self.messages += 1
        self.checksum = (self.checksum + frame_checksum(frame)) % 2**64


class Reporter:
    """Serves some sources of a run over one link that fans in. The run has `reporters` reporters.

    `run` takes messages until every source has ended, then confirms that everything is in the spool.
    """

    # RecoveringReporter overrides both, since its sources can send frames again.
    records_class: type[SpoolRecords] = SpoolRecords
    received_class: type[Received] = Received

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
        """`reports_thread_usage`: report the resources that this thread uses, not those of the process."""
        self._run = run
        self._link = link
        self._spool = spool
        self._name = named("reporter", instance)
        self._reporters = reporters
        self._timeout_s = timeout_s + BETWEEN_RECORDS_S
        self._sources = sources
        self._records = self.records_class(run, self._name, spool, reports_thread_usage)
        self._batch = FrameBatch(1 << 12)
        self._received: defaultdict[str, Received] = defaultdict(self.received_class)
        self._junk = 0
        self._refused = 0
        self._ends: list[End] = []
        self._results: dict[str, dict[str, Any]] = {}
        self._stopped: str | None = None
        """Why the reporter ends early."""
        self._has_met_a_source = False
        self._has_broker = has_broker(scheme_of(link.url))
        self._notified_ns = 0
        """When the last sign of life went to the sources that have ended."""

    def stop(self, reason: str) -> None:
        """Finish once the sources fall silent: until then, messages may be on their way."""
        self._stopped = self._stopped or reason
        self._timeout_s = min(self._timeout_s, SILENCE_AFTER_STOP_S)

    def warm(self) -> None:
        """Load the library that checks records before a run begins, since that takes 19 ms."""
        check({}, dict)

    def close(self) -> None:
        """Release the link."""
        self._link.close()

    def run(self) -> ReporterResult:
        """Serve until every source has ended or fallen silent. OSError where the spool cannot be written."""
        self._records.start()
        try:
            self._serve()
        except PeerGone as error:
            self.stop(str(error))
        return self._finish()

    def _serve(self) -> None:
        """Take messages until every source has ended. Note the reason if the sources fall silent before."""
        heard_ns = time.monotonic_ns()
        while self._awaits_sources:
            if self._take():
                heard_ns = time.monotonic_ns()
                self._gather()
            elif time.monotonic_ns() - heard_ns > self._timeout_s * 1e9:
                if self._is_silent():
                    self.stop(f"the reporter heard nothing for {self._timeout_s:g} s")
                    return
                heard_ns = time.monotonic_ns()
            self._roll()
            if self._awaits_sources:
                self._notify_ended()
                self._wait()

    @property
    def _awaits_sources(self) -> bool:
        """Whether a source has not ended."""
        return len(self._ends) < len(self._sources)

    def _take(self) -> int:
        """Receive once and read the frames that came. Returns their number."""
        self._batch.clear()
        with self._ignoring_strangers_that_leave():
            self._link.receive(self._batch)
        for frame in self._batch:
            self._read(frame)
        return self._batch.count

    @contextlib.contextmanager
    def _ignoring_strangers_that_leave(self) -> Iterator[None]:
        """Ignore PeerGone until a source has said hello: only strangers' connections have closed.

        With a broker, PeerGone always means that the broker has gone, so it is raised.
        """
        try:
            yield
        except PeerGone:
            if self._has_met_a_source or self._has_broker:
                raise
            time.sleep(SHORTEST_SLEEP_S)

    def _gather(self) -> None:
        """Let messages gather while nothing is urgent."""
        if self._nothing_is_urgent:
            time.sleep(GATHERING_S)

    @property
    def _nothing_is_urgent(self) -> bool:
        """Whether every source is at work: a source that has ended waits for its confirmation."""
        return not self._ends

    def _is_silent(self) -> bool:
        """Receive once more and read what comes. Returns True if nothing came."""
        return is_silent(self._link, self._take)

    def _roll(self) -> None:
        """Publish a spool file, if it is time."""
        self._spool.roll()

    def _notify_ended(self) -> None:
        """Send an empty frame to the sources that have ended: their confirmation has to wait for the other sources."""
        now_ns = time.monotonic_ns()
        if self._ends and now_ns - self._notified_ns >= STILL_HERE_NS:
            self._notified_ns = now_ns
            self._send(b"")

    def _wait(self) -> None:
        """Sleep until something comes, or a spool file is to be published."""
        longest_s = LONGEST_SLEEP_S if self._nothing_is_urgent else END_SLEEP_S
        sleep_s = max(self._spool.seconds_until_publish, SHORTEST_SLEEP_S)
        sleep_s = min(sleep_s, longest_s, self._timeout_s)
        with self._ignoring_strangers_that_leave():
            self._link.wait(time.monotonic_ns() + int(sleep_s * 1e9))

    def _read(self, frame: bytes) -> None:
        """Take a frame. Every message but hello and end counts as received, unless it is junk."""
        message = read(frame)
        record = None
        source = None
        if isinstance(message, Hello):
            source = source_of(message.source)
        elif isinstance(message, Statistics):
            record = decode_sent(message.document, self._run) if message.document else None
            source = record["source"] if record else None
        elif not isinstance(message, End):
            source = source_of_meter(message)
        self._take_message(frame, message, source, record)

    def _take_message(self, frame: bytes, message: Message | None, source: str | None, record: Record | None) -> None:
        """Take the frame's message, which `source` sent. `record` is the record in the message, if it has one."""
        if isinstance(message, End):
            self._ends.append(message)
        elif isinstance(message, Hello):
            self._greet(message)
        elif source is None or message is None:
            self._junk += 1
        else:
            self._received[source].add(frame)
            if record is None:
                self._records.take_reading(source, message)
            else:
                self._take_record(record, cast(Statistics, message).document)

    def _greet(self, hello: Hello) -> None:
        """Take a hello. Refuse a hello of another run.

        A source that this reporter does not expect is a reason to fail. The reporter serves it all the same, and until
        the usual timeout: its records come into the spool.
        """
        source = source_of(hello.source)
        if hello.run != self._run or source is None:
            self._refused += 1
            return
        if source not in self._sources:
            reason = f"the {self._name} does not expect {source}, which reports to it"
            self._stopped = self._stopped or f"{reason}: see --instance, --pairs and --reporters"
        self._begin(source, hello)

    def _begin(self, source: str, hello: Hello) -> None:
        """Write a record of the source's terms."""
        self._has_met_a_source = True
        terms = {
            "version": hello.version,
            "policy": policy_of(hello.policy),
            "packing": hello.packing,
            "max_price": hello.max_price,
        }
        self._records.write(source, SESSION, terms, read_ns=(hello.wall_ns, hello.monotonic_ns))

    def _take_record(self, record: Record, document: bytes) -> None:
        """Write a source's record. A source's result is not written, but becomes part of the reporter's result."""
        source = record["source"]
        if record["kind"] != RESULT:
            self._records.take(record, document)
            return
        if source in self._results:
            self.stop(f"two components say that they are the {source}: give each pair its own --instance")
        self._results[source] = record["payload"]

    @property
    def _announced(self) -> int:
        """Messages that the ends announce."""
        return sum(end.sent for end in self._ends)

    @property
    def _total(self) -> int:
        """Messages that came from all sources."""
        return sum(received.messages for received in self._received.values())

    def _finish(self) -> ReporterResult:
        """Write the closing record, confirm to the sources that the spool has their messages, and return the result."""
        announced = self._announced
        received = self._total
        checksum = sum(source.checksum for source in self._received.values()) % 2**64
        closing = {"announced": announced, "received": received, "reporters": self._reporters}
        self._records.write(self._name, END, closing)
        self._spool.publish()
        sockets = self._link.sockets()  # while the sources wait for the confirmation
        confirmation = End(sent=0, sent_checksum=0, received=received, received_checksum=checksum)
        self._send(encode(confirmation))
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
