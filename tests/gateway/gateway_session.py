"""A gateway's whole session on a simulated clock, to the nanosecond.

Gateway ──orders──▶ SimulatedEngine          one thread, no wire; waiting moves the clock
        ◀─answers──
        ──records─▶ SimulatedReporter
"""

from __future__ import annotations

import orjson
from scripted_links import SimulatedEngine, SimulatedReporter

from exchange.checksum import StreamChecksum
from exchange.measurements import LogBuckets
from exchange.messages import (
    Statistics,
    Timestamp,
)
from exchange.meters import Meter
from exchange.results import GatewayResult
from exchange.session import Terms
from exchange.settings import RunSettings
from gateway.recovering.gateway import RecoveringGateway
from gateway.seeded_orders import SeededOrders
from gateway.service import Gateway
from transports.renewable import RenewableLink

RUN = 0xFEED


class GatewaySession:
    """A gateway between a simulated engine and a simulated reporter."""

    def __init__(self, clock, **settings) -> None:
        self.clock = clock
        self.settings = RunSettings(**{"orders": 100, "orders_per_s": 1_000.0, "sampling_interval": 10, **settings})
        self.terms = Terms(RUN, self.settings.policy, self.settings.packing, self.settings.max_price)
        self.engine = SimulatedEngine(clock, self.terms)
        self.reporter = SimulatedReporter(clock)
        streams = (StreamChecksum(), StreamChecksum())
        if self.settings.journals:
            engine = RenewableLink(self.engine, lambda until_ns: self.engine)
            self.gateway = RecoveringGateway(self.settings, RUN, engine, self.reporter, streams)
        else:
            self.gateway = Gateway(self.settings, RUN, self.engine, self.reporter, streams)

    def run(self) -> GatewayResult:
        return self.gateway.run()

    def records(self, kind: str) -> list[dict]:
        """Return the payloads of the records of this kind."""
        payloads = []
        for message in self.reporter.messages:
            if isinstance(message, Statistics):
                record = orjson.loads(message.document)
                if record["kind"] == kind:
                    payloads.append(record["payload"])
        return payloads

    def completion(self, clock: str) -> LogBuckets:
        """Return the completion times of all seconds, the last order included."""
        total = LogBuckets()
        for record in self.records("completion"):
            if record["clock"] == clock:
                total.merge(LogBuckets.from_sparse(record))
        return total

    def stamps(self, meter: Meter) -> dict[int, int]:
        """Return a meter's times by order id, in ns from the start of the run's clock."""
        stamps = self.stamps_sent(meter)
        started_ns = self.started_ns
        return {stamp.correlation_id: stamp.time_ns - started_ns for stamp in stamps}

    @property
    def started_ns(self) -> int:
        """The start of the run's clock: the due time of the first order."""
        first_stamp = self.stamps_sent(Meter.ORDER_DUE)[0]
        period_ns = 1e9 / self.settings.orders_per_s
        return first_stamp.time_ns - int((first_stamp.correlation_id - 1) * period_ns)

    def stamps_sent(self, meter: Meter) -> list[Timestamp]:
        """Return the messages of this meter that the reporter got."""
        timestamps = [message for message in self.reporter.messages if isinstance(message, Timestamp)]
        return [timestamp for timestamp in timestamps if timestamp.meter == meter]


def stream_of(settings: RunSettings, count: int) -> bytes:
    """Return the records of the run's first `count` orders."""
    return SeededOrders.of(settings).records(1, count)
