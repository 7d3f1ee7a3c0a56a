"""The gateway's reports while it runs: sampled orders, its meters, and every second its buckets."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange.measurements import LogBuckets, Meter, RateMeter
from exchange.messages import Timestamp
from exchange.records import COMPLETION, TRAFFIC
from exchange.session import Reporting
from gateway.completion import Completion
from gateway.pacer import Pacer


class Journal:
    """Reports to the stats reporter. Every order whose id the sampling interval divides is a sample."""

    def __init__(self, reporting: Reporting, completion: Completion, pacer: Pacer, sampling_interval: int) -> None:
        self._reporting, self._completion, self._pacer = reporting, completion, pacer
        self._interval = sampling_interval
        self._sent = self._sent_before = self._answered_before = self._received_before = 0
        self.samples = 0

    def start(self, now_ns: int) -> None:
        self._reporting.start(now_ns)
        self._orders_sent = RateMeter(Meter.GATEWAY_ORDERS_SENT, now_ns)
        self._messages_received = RateMeter(Meter.GATEWAY_MESSAGES_RECEIVED, now_ns)

    def note_sent(self, first_id: int, last_id: int, handed_ns: int) -> None:
        """Report the samples among orders first_id..last_id, which were handed over."""
        self._sent = last_id
        sampled = range(last_id - last_id % self._interval, first_id - 1, -self._interval)
        for order_id in reversed(sampled):
            self._stamp(Meter.ORDER_HANDED_OVER, order_id, handed_ns)
            if self._pacer.scheduled:
                self._stamp(Meter.ORDER_DUE, order_id, self._pacer.due_ns(order_id))
        if sampled:
            self._reporting.message(self._orders_sent.sample(last_id, handed_ns))

    def note_answered(self, order_ids: npt.NDArray[np.int64], answered_ns: int) -> None:
        """Report that sampled orders got their first answer."""
        for order_id in order_ids.tolist():
            self._stamp(Meter.ORDER_ANSWERED, order_id, answered_ns)
        self.samples += len(order_ids)
        self._reporting.message(self._messages_received.sample(self.messages_received, answered_ns))

    def _stamp(self, meter: Meter, order_id: int, time_ns: int) -> None:
        self._reporting.message(Timestamp(meter, order_id, time_ns))

    @property
    def messages_received(self) -> int:
        return int(self._completion.by_type.sum())

    def close(self) -> None:
        """Report the last second. The last order has records of its own, since analysis leaves it out."""
        self.close_second()
        self._report_completion(last=True)

    def _report_completion(self, last: bool) -> None:
        for clock, buckets in self._completion.close_second(last):
            about = {"second": self._reporting.second, "clock": clock, "last_order": last}
            self._reporting.record_later(COMPLETION, partial(_completion, about, buckets))

    def close_second(self) -> None:
        """Report the current second; its records are written later, one by one."""
        second = self._reporting.second
        self._report_completion(last=False)
        sent, answered, received = self._sent, self._completion.answered, self.messages_received
        traffic = {
            "second": second,
            "orders_sent": sent - self._sent_before,
            "orders_answered": answered - self._answered_before,
            "messages_received": received - self._received_before,
        }
        self._reporting.record_later(TRAFFIC, lambda: traffic)
        self._sent_before, self._answered_before, self._received_before = sent, answered, received


def _completion(about: dict[str, Any], buckets: LogBuckets) -> dict[str, Any]:
    """The payload of a record of completion times."""
    return {**about, **buckets.sparse()}
