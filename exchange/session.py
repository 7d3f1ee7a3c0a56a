"""Sessions: the terms on which two hellos must agree, and a component's reports to the stats reporter."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from exchange.instances import instance_of, named, role_of, tagged, untagged
from exchange.measurements import NS_PER_S
from exchange.messages import PROTOCOL_VERSION, End, Hello, Throughput, Timestamp, encode
from exchange.meters import Source
from exchange.records import PROCESS, RESULT, RecordWriter
from exchange.results import ResourceUsage
from exchange.settings import POLICIES, RunSettings

SOURCE_BITS = 8
"""The low bits of a `Resume`'s session that hold a source's byte, in messages between a reporter and a source."""
TERMS_OF_HELLO = ("version", "run", "policy", "packing", "max_price", "instruments", "gateways", "engines")
"""The fields of a hello that must be the same at both ends, and are options of both."""
_NEVER_NS = 2**62
BETWEEN_RECORDS_NS = 2_000_000
"""The time between two records of a second. Business messages that are due in between go first."""


class Disagreement(Exception):
    """The two ends of a session were started with different settings."""


@dataclass(frozen=True)
class Terms:
    """Settings that both ends of a session must share."""

    run: int
    policy: str
    packing: int
    max_price: int
    instance: int = 1
    """Number of the pair, or of the gateway in a market."""
    instruments: int = 1
    """Number of instruments of the whole market, of which an engine may serve a part."""
    gateways: int = 1
    """Number of gateways of the market; 1 for a pair."""
    engines: int = 1
    """Number of engines of the market; 1 for a pair."""
    engine: int = 1
    """Number of the session's engine, which is that of the pair if there is no market."""

    @classmethod
    def of_settings(cls, run: int, settings: RunSettings, *, instance: int, engine: int) -> Terms:
        """Return the terms of a session of a run. `settings` are those of the whole run."""
        return cls(
            run=run,
            policy=settings.policy,
            packing=settings.packing,
            max_price=settings.max_price,
            instance=instance,
            instruments=settings.instruments,
            gateways=settings.gateways,
            engines=settings.engines,
            engine=engine,
        )

    def hello(self, source: Source) -> Hello:
        """Return this end's hello, with wall and monotonic time read together."""
        return Hello(
            PROTOCOL_VERSION,
            self.run,
            tagged(source, self.instance),
            POLICIES[self.policy],
            self.packing,
            self.max_price,
            wall_ns=time.time_ns(),
            monotonic_ns=time.monotonic_ns(),
            instruments=self.instruments,
            gateways=self.gateways,
            engines=self.engines,
            engine=self.engine,
        )

    def agree(self, theirs: Hello, addresses: str = "--engine") -> None:
        """Compare terms with the other end's hello. Disagreement, with option and values, if they differ.

        `addresses` is the option with the addresses of engines at the end that connects to them.
        """
        our_terms = _terms_in(self.hello(Source.GATEWAY))
        their_terms = _terms_in(theirs)
        for name, our_value in our_terms.items():
            their_value = their_terms[name]
            if our_value != their_value:
                if name == "instance" and self.gateways > 1:
                    raise Disagreement(self._another_gateway(theirs))
                peer = source_of(theirs.source) or "a stranger"
                raise Disagreement(
                    f"{peer} was started with {_option(name)} {_value(name, their_value)}, "
                    f"this end with {_value(name, our_value)}: give both the same"
                )
        if theirs.engine != self.engine:
            raise Disagreement(self._another_engine(theirs, addresses))

    def _another_gateway(self, theirs: Hello) -> str:
        """Return the sentence about a gateway of another number than the engine expects at an address."""
        number, their_instance = untagged(theirs.source)
        if number == Source.ENGINE:
            expected = their_instance
            gateway = self.instance
        else:
            expected = self.instance
            gateway = their_instance
        return (
            f"gateway {gateway} is at the engine's address for gateway {expected}: give that gateway --instance "
            f"{expected}, or with --engine the address for gateway {gateway}"
        )

    def _another_engine(self, theirs: Hello, addresses: str) -> str:
        """Return the sentence about an engine of another number than the end that connects to it expects."""
        number, _instance = untagged(theirs.source)
        if number == Source.ENGINE:
            return (
                f"address {self.engine} of {addresses} leads to engine {theirs.engine}: give the addresses in the "
                f"order of the engines' numbers, or start that engine with --instance {self.engine}"
            )
        return (
            f"{source_of(theirs.source)} takes this engine for engine {theirs.engine}, and its --instance is "
            f"{self.engine}: give --engine there the addresses in the order of the engines' numbers"
        )


def source_byte(name: str) -> int:
    """Return the byte on the wire that stands for this component."""
    source = Source[role_of(name).upper()]
    return tagged(source, instance_of(name))


def source_of(byte: int) -> str | None:
    """Return the component that has this byte, as records name it; None if no component has the byte."""
    number, instance = untagged(byte)
    if number not in list(Source):
        return None
    return named(Source(number).name.lower(), instance)


def policy_of(number: int) -> str | None:
    """Return the matching policy that has this number in a hello; None if no policy has the number."""
    for policy, policy_number in POLICIES.items():
        if policy_number == number:
            return policy
    return None


def _terms_in(hello: Hello) -> dict[str, int]:
    """Return the terms in a hello, by name."""
    terms = {name: getattr(hello, name) for name in TERMS_OF_HELLO}
    _number, instance = untagged(hello.source)
    return {**terms, "instance": instance}


def _option(name: str) -> str:
    """Return the option that sets a term, or the term's name if no option does."""
    return "protocol version" if name == "version" else f"--{name.replace('_', '-')}"


def _value(name: str, number: int) -> str:
    """Return the term's value as users see it: a policy by its name, a run in hex, as in the spool."""
    if name == "policy":
        return policy_of(number) or f"unknown ({number})"
    if name == "run":
        return f"{number:016x}"
    return str(number)


class ReportSink(Protocol):
    """Takes the frames of reports; a transport's outbox does."""

    posted: int
    checksum: int

    def post(self, frame: bytes, counted: bool = True) -> None: ...


class Reporting:
    """One source's reports, second by second since its clock started.

    The records of a second hold readings from the moment when it ended. Later they are written one by one, and sent
    after the last. To do all of this at once takes a millisecond, in which no order would go and no answer be read.
    """

    def __init__(self, sink: ReportSink, terms: Terms, source: Source, reports_thread_usage: bool = False) -> None:
        self._sink = sink
        self._terms = terms
        self._records = RecordWriter(terms.run, named(source.name.lower(), terms.instance))
        self._usage: Callable[[], ResourceUsage] = lambda: ResourceUsage.now(reports_thread_usage)
        self._unwritten: deque[Callable[[], None]] = deque()
        self._write_ns = _NEVER_NS
        """Time to write the next record, or to send the written ones."""
        self._start_ns = 0
        self._at_start = self._usage()
        self._at_stop = self._at_start
        self.second = 0
        sink.post(encode(terms.hello(source)), counted=False)

    def start(self, now_ns: int, start_ns: int | None = None) -> None:
        """Start the clock: usage counts from now on, and seconds count from `start_ns`, which is now if None."""
        self._start_ns = now_ns if start_ns is None else start_ns
        self._at_start = self._usage()
        self.second = (now_ns - self._start_ns) // NS_PER_S

    def stop(self) -> None:
        """Stop counting CPU, once the end is answered, and write every record."""
        self._at_stop = self._usage()
        self._process(self._at_stop)
        self.write_all()

    @property
    def next_second_ns(self) -> int:
        return self._start_ns + (self.second + 1) * NS_PER_S

    @property
    def next_ns(self) -> int:
        """When there is something to do: the second ends, or a record is to be written or sent."""
        return min(self._write_ns, self.next_second_ns)

    def next_second(self, now_ns: int) -> None:
        """Close the current second, and begin the one of `now_ns`. The closed second's records are written later."""
        self._process(self._usage())
        self._write_ns = now_ns + BETWEEN_RECORDS_NS
        self.second = (now_ns - self._start_ns) // NS_PER_S

    def _process(self, usage: ResourceUsage) -> None:
        """Prepare the second's record of the component's usage."""
        second = self.second
        self.record_later(PROCESS, lambda: usage.payload(second, self._at_start))

    def usage(self) -> dict[str, Any]:
        """Usage between start and stop."""
        return self._at_stop.since(self._at_start)

    def message(self, message: Throughput | Timestamp) -> None:
        """Report a reading of one of the component's meters."""
        meter = tagged(message.meter, self._terms.instance)
        self._sink.post(encode(message._replace(meter=meter)))

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        """Write every record that is still unwritten, then this one."""
        self.record_later(kind, lambda: payload)
        self.write_all()

    def record_later(self, kind: str, payload: Callable[[], dict[str, Any]]) -> None:
        """Prepare a record that has the time of now. `write_next` calls `payload` and writes it later."""
        read_ns = time.time_ns(), time.monotonic_ns()
        if self._write_ns == _NEVER_NS:
            self._write_ns = 0

        def write() -> None:
            self._sink.post(self._records.frame(kind, payload(), read_ns))

        self._unwritten.append(write)

    def write_next(self, now_ns: int) -> bool:
        """Write a record if it is time. Returns True while there are more to write, so that sending has to wait."""
        if now_ns < self._write_ns:
            return self._write_ns < _NEVER_NS
        if not self._unwritten:
            self._write_ns = _NEVER_NS
            return False
        self._write_ns = now_ns + BETWEEN_RECORDS_NS
        write = self._unwritten.popleft()
        write()
        return True

    def write_all(self) -> None:
        """Write every record that is still unwritten."""
        while self._unwritten:
            write = self._unwritten.popleft()
            write()

    def close(self, result: dict[str, Any]) -> None:
        """Send the result as the last record, then the end, whose count and checksum leave out hello and end."""
        self.record(RESULT, result)
        end = End(sent=self._sink.posted, sent_checksum=self._sink.checksum, received=0, received_checksum=0)
        self._sink.post(encode(end), counted=False)
