"""Turns the messages of the sources into the spool's records."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from exchange.instances import named, role_of, untagged
from exchange.json_records import Record
from exchange.messages import Message, Throughput, Timestamp
from exchange.meters import Meter, Source
from exchange.records import MATCHED, PROCESS, SAMPLE, THROUGHPUT, RecordWriter
from exchange.results import ResourceUsage
from stats_reporter.sample_pairs import READINGS, SamplePairs
from stats_reporter.writer import SpoolWriter

GATEWAY = Source.GATEWAY.name.lower()
ENGINE = Source.ENGINE.name.lower()
ROLES: dict[type[Message], dict[int, str]] = {
    Throughput: {
        Meter.GATEWAY_ORDERS_SENT: GATEWAY,
        Meter.ENGINE_ORDERS_RECEIVED: ENGINE,
        Meter.ENGINE_MESSAGES_SENT: ENGINE,
        Meter.GATEWAY_MESSAGES_RECEIVED: GATEWAY,
    },
    Timestamp: {**dict.fromkeys(READINGS, GATEWAY), Meter.ORDER_MATCHED: ENGINE},
}
"""The role that reports each meter, by the meter's kind of message."""


def source_of_meter(message: Message | None) -> str | None:
    """Return the source of a meter's reading; None if the message is no reading."""
    if not isinstance(message, Throughput | Timestamp):
        return None
    meter, instance = untagged(message.meter)
    role = ROLES[type(message)].get(meter)
    if role is None:
        return None
    return named(role, instance)


class SpoolRecords:
    """Writes into the spool what the sources of a run send, and the resources that the reporter itself uses."""

    pairs_class: type[SamplePairs] = SamplePairs

    def __init__(self, run: int, reporter: str, spool: SpoolWriter, reports_thread_usage: bool = False) -> None:
        self._run = run
        self._reporter = reporter
        self._spool = spool
        self._reports_thread_usage = reports_thread_usage
        self._pairs: defaultdict[str, SamplePairs] = defaultdict(self.pairs_class)
        """By gateway, since each gateway counts its orders from 1."""
        self._second = -1
        """The last second for which the reporter has reported its own usage."""
        self.start()

    def start(self) -> None:
        """Count the reporter's usage from now on."""
        self._at_start = ResourceUsage.now(self._reports_thread_usage)

    def usage(self) -> dict[str, Any]:
        """Return the reporter's usage since `start`."""
        return ResourceUsage.now(self._reports_thread_usage).since(self._at_start)

    def write(self, source: str, kind: str, payload: dict[str, Any], read_ns: tuple[int, int] | None = None) -> None:
        """Write a record that the reporter makes of a source's other messages."""
        self._spool.write(RecordWriter(self._run, source).document(kind, payload, read_ns))

    def take(self, record: Record, document: bytes) -> None:
        """Write a source's record as it came.

        The reporter has no clock of the run, so it reports its own usage for a second when the first gateway does.
        """
        self._spool.write(document)
        if record["kind"] == PROCESS and role_of(record["source"]) == GATEWAY:
            second = record["payload"]["second"]
            if second > self._second:
                self._second = second
                usage = ResourceUsage.now(self._reports_thread_usage)
                self.write(self._reporter, PROCESS, usage.payload(second, self._at_start))

    def take_reading(self, source: str, message: Message) -> None:
        """Write a record of a meter's reading. A gateway's timestamp is written with the last one of its sample."""
        if isinstance(message, Throughput):
            meter, _ = untagged(message.meter)
            self.write(source, THROUGHPUT, {"meter": meter, "rate_per_s": message.rate_per_s})
        elif isinstance(message, Timestamp) and role_of(source) == ENGINE:
            self.write(source, MATCHED, {"id": message.correlation_id, "matched_ns": message.time_ns})
        elif isinstance(message, Timestamp):
            sample = self._pairs[source].take(message)
            if sample is not None:
                self.write(source, SAMPLE, sample)

    @property
    def samples(self) -> int:
        """The number of complete samples."""
        return sum(pairs.paired for pairs in self._pairs.values())
