"""The meters of a run, the components that send their readings, and the meter of a throughput."""

from __future__ import annotations

from enum import IntEnum

from exchange.measurements import NS_PER_S
from exchange.messages import Throughput


class Meter(IntEnum):
    """Throughput (1-4, messages/s) and timestamp (0 and 5-7, ns of the reporting source's monotonic clock) meters."""

    ORDER_MATCHED = 0
    GATEWAY_ORDERS_SENT = 1
    ENGINE_ORDERS_RECEIVED = 2
    ENGINE_MESSAGES_SENT = 3
    GATEWAY_MESSAGES_RECEIVED = 4
    ORDER_HANDED_OVER = 5
    ORDER_ANSWERED = 6
    ORDER_DUE = 7


THROUGHPUT_METERS = (
    Meter.GATEWAY_ORDERS_SENT,
    Meter.ENGINE_ORDERS_RECEIVED,
    Meter.ENGINE_MESSAGES_SENT,
    Meter.GATEWAY_MESSAGES_RECEIVED,
)


class Source(IntEnum):
    """The sender of a hello."""

    GATEWAY = 1
    ENGINE = 2
    REPORTER = 3


class RateMeter:
    """A throughput meter: messages since the last sample, over the time since."""

    def __init__(self, meter: Meter, start_ns: int, total: int = 0) -> None:
        """`total` messages came before the start."""
        self._meter = meter
        self._last_total = total
        self._last_ns = start_ns

    def sample(self, total: int, now_ns: int) -> Throughput:
        """Return the message for the reporter; `total` is the number of messages so far."""
        elapsed_ns = max(now_ns - self._last_ns, 1)
        rate_per_s = (total - self._last_total) * NS_PER_S // elapsed_ns
        self._last_total = total
        self._last_ns = now_ns
        return Throughput(self._meter, rate_per_s)
