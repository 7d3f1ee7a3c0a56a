"""The stats reporter's loop: receive from every source, write the spool, confirm when all have ended."""

from __future__ import annotations

import contextlib
import random
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from exchange.instances import instance_of, named, role_of, untagged
from exchange.json_records import check
from exchange.measurements import Meter, Source
from exchange.messages import End, Hello, Message, Resume, Statistics, Throughput, Timestamp, encode, read
from exchange.records import END, PROCESS, RESULT, SAMPLE, SESSION, THROUGHPUT, Record, RecordWriter
from exchange.results import ReporterResult, Usage
from exchange.session import SOURCE_BITS, component, source_byte, source_of
from exchange.settings import POLICIES
from stats_reporter.writer import SpoolWriter
from transports.base import Link, PeerGone, is_silent
from transports.frames import FrameBatch
from transports.outbox import frame_checksum
from transports.registry import has_broker

GATEWAY, ENGINE, REPORTER = (source.name.lower() for source in Source)
GATEWAY_METERS = (Meter.GATEWAY_ORDERS_SENT, Meter.GATEWAY_MESSAGES_RECEIVED)
THROUGHPUT_METERS = range(Meter.GATEWAY_ORDERS_SENT, Meter.GATEWAY_MESSAGES_RECEIVED + 1)
TIMESTAMP_METERS = range(Meter.ORDER_HANDED_OVER, Meter.ORDER_DUE + 1)
SHORTEST_SLEEP_S, LONGEST_SLEEP_S, END_SLEEP_S = 0.05, 1.0, 0.2
"""The reporter sleeps briefly only once a source has ended: waking for nothing disturbs what is measured."""
GATHERING_S = 0.02
"""Messages that come within this time are read together: waking for each takes longer than reading it."""
QUIET_S = 1.0
BETWEEN_RECORDS_S = 2.0
"""A working source sends something every second."""
STILL_HERE_NS = 1_000_000_000
"""Interval at which sources that have ended are told that others have not."""


_READINGS = {Meter.ORDER_DUE: "due_ns", Meter.ORDER_HANDED_OVER: "handed_over_ns", Meter.ORDER_ANSWERED: "answered_ns"}


class SamplePairs:
    """Pairs the timestamps of a gateway's sampled orders by id: due, handed over, answered.

    `paired` counts complete samples; `open` has those that still wait for a reading. After the first due time there is
    a schedule, so every sample waits for a due time, too.
    """

    def __init__(self) -> None:
        self.open: dict[int, dict[str, int | None]] = {}
        self.paired = 0
        self._scheduled = False
        self._newest = self._given = 0

    def go_on_from(self, before: dict[str, Any]) -> None:
        """Take what another reporter's `vars` were."""
        vars(self).update(before, open={int(key): sample for key, sample in before["open"].items()})

    def begin_again(self) -> None:
        """Count from 0, since the gateway was started again; samples that both report are given once."""
        self._given = self._newest
        self.open.clear()
        self.paired = 0

    def take(self, stamp: Timestamp) -> dict[str, int | None] | None:
        """Take a reading. Returns the sample that it completes, None where it completes none."""
        sample = self.open.setdefault(stamp.correlation_id, {"id": stamp.correlation_id, "due_ns": None})
        sample[_READINGS[Meter(stamp.meter)]] = stamp.time_ns
        self._scheduled |= sample["due_ns"] is not None
        waits_for_due = self._scheduled and sample["due_ns"] is None
        if waits_for_due or "answered_ns" not in sample or "handed_over_ns" not in sample:
            return None
        self.paired += 1
        self._newest = max(self._newest, stamp.correlation_id)
        found = self.open.pop(stamp.correlation_id)
        return found if stamp.correlation_id > self._given else None


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

    def question(self, source: str) -> Resume:
        """Ask the source for what is behind these frames, of which the hello is the first."""
        session = random.getrandbits(32 - SOURCE_BITS) << SOURCE_BITS | source_byte(source)
        return Resume(session, self.messages + (self.began_ns > 0), self.began_ns)


class Reporter:
    """Serves these sources of one run over one link that fans in; the run has `reporters` of them."""

    def __init__(
        self, run: int, link: Link, spool: SpoolWriter, timeout_s: float,
        sources: Collection[str] = (GATEWAY, ENGINE), of_thread: bool = False, instance: int = 1, reporters: int = 1,
    ) -> None:  # fmt: skip
        self._run, self._link, self._spool = run, link, spool
        self._name, self._reporters = named(REPORTER, instance), reporters
        self._timeout_s, self._sources = timeout_s + BETWEEN_RECORDS_S, sources
        self._usage: Callable[[], Usage] = lambda: Usage.now(of_thread)
        self._at_start = self._usage()
        self._batch = FrameBatch(1 << 12)
        self._samples: defaultdict[int, SamplePairs] = defaultdict(SamplePairs)
        """By the gateway's instance, since each gateway counts its orders from 1."""
        self._received: defaultdict[str, Received] = defaultdict(Received)
        self._asked: dict[str, Resume] = {}
        """Questions to sources that are to go on, until they do."""
        self._was_broken = False
        self._junk = self._refused = 0
        self._ends: list[End] = []
        self._results: dict[str, dict[str, Any]] = {}
        self._stopped: str | None = None
        self._second = -1
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
        self._at_start = self._usage()
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
                self._spool.roll()
                if self._awaits_sources:
                    self._notify_ended()
                    self._ask()
                    self._patiently(self._wait)
        except PeerGone as error:
            self.stop(str(error))
        return self._finish()

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
        if self._asked and _sender(message) in self._asked:
            return
        if isinstance(message, End):
            if not (self._was_broken and message in self._ends):  # an end comes again with what the last one lacked
                self._ends.append(message)
        elif isinstance(message, Hello):
            self._greet(message)
        elif isinstance(message, Resume):
            self._resume(message)
        elif message is not None and (source := self._note(message)):
            self._received[source].add(frame)
        else:
            self._junk += 1

    def _greet(self, hello: Hello) -> None:
        source = source_of(hello)
        if hello.run != self._run or source is None:
            self._refused += 1
            return
        if source not in self._sources:
            stranger = f"{source}, which is none of its own, reports to the {self._name}"
            self._stopped = self._stopped or f"{stranger}: see --instance, --pairs and --reporters"
        if self._received[source].began_ns:
            self._begin_again(source)
        self._received[source].began_ns = hello.monotonic_ns
        policy = {number: name for name, number in POLICIES.items()}.get(hello.policy)
        terms = {"version": hello.version, "policy": policy, "packing": hello.packing, "max_price": hello.max_price}
        clocks = hello.wall_ns, hello.monotonic_ns
        self._write(source, SESSION, terms, clocks)

    def _begin_again(self, source: str) -> None:
        """Another process stands for the source. What an earlier one had said at its end is not the end."""
        if self._spool.recovers:
            self._results.pop(source, None)
            self._ends = [end for end in self._ends if not self._received[source].ended_with(end)]
        self._received[source] = Received()
        if role_of(source) == GATEWAY:
            self._samples[instance_of(source)].begin_again()

    def _resume(self, word: Resume) -> None:
        """A source goes on as it was asked to, or wants to be asked, since its connection broke."""
        source = component(word.session & (1 << SOURCE_BITS) - 1)
        if source in self._asked and self._asked[source].session == word.session:
            del self._asked[source]
        elif source is not None and source in self._sources and not word.session >> SOURCE_BITS:
            self._go_on(source)

    def _go_on(self, *sources: str) -> None:
        self._was_broken = True
        self._asked |= {source: self._received[source].question(source) for source in sources}
        self._ask()

    def _ask(self) -> None:
        for question in self._asked.values():
            self._send(encode(question))

    def _state(self) -> dict[str, Any]:
        """What another reporter has to know to go on behind the spool files that are there."""
        return {
            "received": {source: asdict(received) for source, received in self._received.items()},
            "samples": {instance: vars(samples) for instance, samples in self._samples.items()},
            "ends": list(map(tuple, self._ends)), "results": self._results, "second": self._second,
        }  # fmt: skip

    def _go_on_from(self, state: dict[str, Any]) -> None:
        """Take the place of a reporter that was killed."""
        self._received.update({source: Received(**each) for source, each in state["received"].items()})
        for instance, samples in state["samples"].items():
            self._samples[int(instance)].go_on_from(samples)
        self._ends, self._results = [End(*end) for end in state["ends"]], state["results"]
        self._second = state["second"]
        self._go_on(*self._sources)

    def _write(self, source: str, kind: str, payload: dict[str, Any], read_ns: tuple[int, int] | None = None) -> None:
        """Write a record that the reporter makes of a source's other messages."""
        self._spool.write(RecordWriter(self._run, source).document(kind, payload, read_ns))

    def _note(self, message: Message) -> str | None:
        """Write the message to the spool as a record. Returns its source; None for one that no source sends."""
        match message:
            case Statistics(document):
                return self._note_document(document)
            case Throughput(byte, rate_per_s):
                return self._note_rate(*untagged(byte), rate_per_s)
            case Timestamp(byte):
                meter, instance = untagged(byte)
                return self._note_time(instance, message._replace(meter=meter))
            case _:
                return None

    def _note_rate(self, meter: int, instance: int, rate_per_s: int) -> str | None:
        if meter not in THROUGHPUT_METERS:
            return None
        source = named(GATEWAY if meter in GATEWAY_METERS else ENGINE, instance)
        self._write(source, THROUGHPUT, {"meter": meter, "rate_per_s": rate_per_s})
        return source

    def _note_time(self, instance: int, stamp: Timestamp) -> str | None:
        if stamp.meter not in TIMESTAMP_METERS:
            return None
        source = named(GATEWAY, instance)
        if (sample := self._samples[instance].take(stamp)) is not None:
            self._write(source, SAMPLE, sample)
        return source

    def _note_document(self, document: bytes) -> str | None:
        """Write a source's record as it is. Returns its source; None where it is no record, or of another run."""
        try:
            record = Record(**orjson.loads(document))
        except (orjson.JSONDecodeError, TypeError):
            return None
        if not record.is_of(self._run) or b"\n" in document or not record.is_readable:
            return None
        if record.kind == RESULT:
            self._note_result(record)
        else:
            self._spool.write(document)
            self._note_second(record)
        return record.source

    def _note_result(self, record: Record) -> None:
        if record.source in self._results:
            self.stop(f"two components say that they are the {record.source}: give each pair its own --instance")
        self._results[record.source] = record.payload

    def _note_second(self, record: Record) -> None:
        """Report the reporter's own usage when the first gateway does, since the reporter has no clock of the run."""
        second = record.payload.get("second")
        is_gateway_s = record.kind == PROCESS and role_of(record.source) == GATEWAY
        if is_gateway_s and isinstance(second, int) and second > self._second:
            self._second = second
            self._write(self._name, PROCESS, {"second": second, **self._usage().since(self._at_start)})

    def _finish(self) -> ReporterResult:
        announced, received = self._announced, self._total
        checksum = sum(each.checksum for each in self._received.values()) % 2**64
        closing = {"announced": announced, "received": received, "reporters": self._reporters}
        self._write(self._name, END, closing)
        self._spool.publish()
        sockets = self._link.sockets()  # while the sources wait for the confirmation
        self._confirm(received, checksum)
        return ReporterResult(
            received=received,
            announced=announced,
            checksums_agree=sum(end.sent_checksum for end in self._ends) % 2**64 == checksum,
            junk_frames=self._junk + self._link.junk,
            handshakes_refused=self._refused + self._link.refused,
            samples=sum(samples.paired for samples in self._samples.values()),
            results=self._results,
            usage=self._usage().since(self._at_start),
            sockets=sockets,
            stopped=self._stopped,
        )

    def _confirm(self, received: int, checksum: int) -> None:
        """Confirm to every source what was received, once it is in the spool."""
        self._send(encode(End(0, 0, received, checksum)))

    def _send(self, frame: bytes) -> None:
        """Send to every source, even if one of them is gone."""
        with contextlib.suppress(PeerGone):
            self._link.send(FrameBatch.of(frame), 0)


def _sender(message: Message | None) -> str | None:
    """The source of a message that says so; None of an end, of a resume, and of junk."""
    match message:
        case Hello():
            return source_of(message)
        case Throughput(byte) | Timestamp(byte):
            meter, instance = untagged(byte)
            return named(GATEWAY if meter in (*GATEWAY_METERS, *TIMESTAMP_METERS) else ENGINE, instance)
        case Statistics(document):
            with contextlib.suppress(orjson.JSONDecodeError, KeyError, TypeError):
                return str(orjson.loads(document)["source"])
    return None
