"""The gateway's meters, and its reports of them: sampled orders, rates, and each second's log buckets."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchange.measurements import LogBuckets
from exchange.messages import Timestamp
from exchange.meters import Meter, RateMeter
from exchange.records import COMPLETION, TRAFFIC
from exchange.session import Reporting
from gateway.completion import ANSWERED_COLUMN, RECEIVED_COLUMN, Completion
from gateway.pacer import Pacer


class TrafficCounts(NamedTuple):
    """Counts since the run's start."""

    sent: int
    """Orders that were handed over."""
    answered: int
    """Orders that got their first answer."""
    received: int
    """Answers of every kind."""


class Meters:
    """Reads the meters, and reports to the stats reporter."""

    def __init__(self, reporting: Reporting, completion: Completion, pacer: Pacer) -> None:
        self._reporting = reporting
        self._completion = completion
        self._pacer = pacer
        self._counts_before = TrafficCounts(0, 0, 0)
        """The counts at the end of the previous second."""
        self._newest_counted_id = 0
        """The newest sampled order of the reported rates of orders sent."""
        self._newest_counted_ns = 0
        """When that order was handed over."""
        self.samples = 0
        """Sampled orders that were reported."""

    def start(self, now_ns: int, start_ns: int) -> None:
        """Start the clock: usage counts from now on, seconds and rates count from `start_ns`."""
        self._reporting.start(now_ns, start_ns)
        self._orders_sent = RateMeter(Meter.GATEWAY_ORDERS_SENT, start_ns)
        self._messages_received = RateMeter(Meter.GATEWAY_MESSAGES_RECEIVED, start_ns)

    def note_answered(self, sampled: npt.NDArray[np.int64]) -> None:
        """Report sampled orders that got their first answer, rows of `Tables.sampled`.

        All of an order's readings are reported only now: work between hand-over and answer would delay the answer.
        """
        for answered_ns, same_time in groupby(sampled.tolist(), itemgetter(ANSWERED_COLUMN)):
            rows = list(same_time)
            for order_id, handed_ns, due_ns, _, _ in rows:
                if order_id > self._newest_counted_id and handed_ns > self._newest_counted_ns:
                    self._newest_counted_id = order_id
                    self._newest_counted_ns = handed_ns
                    self._reporting.message(self._orders_sent.sample(order_id, handed_ns))
                self._reporting.message(Timestamp(Meter.ORDER_HANDED_OVER, order_id, handed_ns))
                if self._pacer.scheduled:
                    self._reporting.message(Timestamp(Meter.ORDER_DUE, order_id, due_ns))
                self._reporting.message(Timestamp(Meter.ORDER_ANSWERED, order_id, answered_ns))
            received = rows[-1][RECEIVED_COLUMN]  # the count only grows, so the last row has the latest
            self._reporting.message(self._messages_received.sample(received, answered_ns))
        self.samples += len(sampled)

    def close(self) -> None:
        """Report the last second, and the run's last order in separate records, so that the analysis can omit it."""
        self.close_second()
        self._report_completion(last=True)

    def _report_completion(self, last: bool) -> None:
        for clock, buckets in self._completion.close_second(last):
            fields = {"second": self._reporting.second, "clock": clock, "last_order": last}
            self._reporting.record_later(COMPLETION, partial(_completion_payload, fields, buckets))

    def close_second(self) -> None:
        """Report the current second; its records are written later, one by one."""
        self._report_completion(last=False)
        before = self._counts_before
        counts = self._counts()
        self._counts_before = counts
        traffic = {
            "second": self._reporting.second,
            "orders_sent": counts.sent - before.sent,
            "orders_answered": counts.answered - before.answered,
            "messages_received": counts.received - before.received,
        }
        self._reporting.record_later(TRAFFIC, lambda: traffic)

    def _counts(self) -> TrafficCounts:
        return TrafficCounts(
            sent=self._completion.newest,
            answered=self._completion.answered,
            received=self._completion.received,
        )


def _completion_payload(fields: dict[str, Any], buckets: LogBuckets) -> dict[str, Any]:
    """Return the payload of a record of completion times."""
    return {**fields, **buckets.sparse()}
