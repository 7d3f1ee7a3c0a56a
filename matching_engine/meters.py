"""The engine's meters: the rates of orders received and of messages sent, read at sampled orders."""

from __future__ import annotations

import time

from exchange.messages import Timestamp
from exchange.meters import Meter, RateMeter
from exchange.session import Reporting
from matching_engine.engine import EngineCounts, counts_in
from matching_engine.turns import EngineSamples


class EngineMeters:
    """Reads the meters, and reports to the stats reporter."""

    def __init__(self, reporting: Reporting, interval: int) -> None:
        """`interval`: orders from one sample to the next."""
        self._reporting = reporting
        self._interval = interval
        self._reported = 0
        """Sampled orders that were reported or skipped."""
        self.turn_samples = EngineSamples(interval)
        """Memory into which compiled turns write their samples."""

    def start(self, now_ns: int, start_ns: int, counts: EngineCounts) -> None:
        """Start the clock: usage and rates count from now on, seconds count from `start_ns`."""
        self._reporting.start(now_ns, start_ns)
        self._orders_received = RateMeter(Meter.ENGINE_ORDERS_RECEIVED, now_ns, counts.records)
        self._messages_sent = RateMeter(Meter.ENGINE_MESSAGES_SENT, now_ns, counts.answers)

    def skip_to(self, counts: EngineCounts) -> None:
        """Treat the sampled orders up to these counts as reported: the next sample comes after them."""
        self._reported = counts.records // self._interval

    def sample(self, counts: EngineCounts) -> None:
        """Report both meters now, if a sampled order came since the last report."""
        sampled = counts.records // self._interval
        if sampled > self._reported:
            self._report(counts, time.monotonic_ns())

    def report_turns(self, samples: int) -> None:
        """Report the samples that compiled turns have noted."""
        for row in self.turn_samples.rows[:samples]:
            time_ns = int(row[0])
            counts = counts_in(row[1:])
            self._report(counts, time_ns)

    def _report(self, counts: EngineCounts, now_ns: int) -> None:
        """Report the meters, and the time at which the newest sampled order had its answers."""
        self.skip_to(counts)
        sampled_id = self._reported * self._interval
        self._reporting.message(Timestamp(Meter.ORDER_MATCHED, sampled_id, now_ns))
        self._reporting.message(self._orders_received.sample(counts.records, now_ns))
        self._reporting.message(self._messages_sent.sample(counts.answers, now_ns))
