"""The engine's session over a scripted link: the frames that it takes, its waits and its end."""

from __future__ import annotations

import itertools
import time
from collections import deque

import pytest

from exchange.messages import ASK, Cancel, Confirmation, End, Hello, Message, Order, Throughput, decode_all, encode
from exchange.meters import Meter, Source
from exchange.results import EngineResult
from exchange.session import Terms
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.service import EngineService
from transports.base import Link, PeerGone
from transports.frames import FrameBatch

TERMS = Terms(7, policy="price-time", packing=1, max_price=999)
HELLO = TERMS.hello(Source.GATEWAY)
END = End(0, 0, 0, 0)
ORDERS = [Order(number, ASK, 500, 10) for number in range(1, 7)]


class BatchedLink(Link):
    """Delivers one batch at a time, and takes `room` frames in all. The peer leaves after the last batch."""

    url = "scripted://gateway"

    def __init__(self, *batches: list[Message], room: int = 10**6) -> None:
        self._batches = deque(batches)
        self.room = room
        self.sent: list[Message] = []
        self.waits: list[tuple[bool, bool]] = []

    def receive(self, batch: FrameBatch) -> int:
        if not self._batches:
            return 0
        messages = self._batches.popleft()
        for message in messages:
            batch.append(encode(message))
        return len(messages)

    def send(self, batch: FrameBatch, first: int) -> int:
        end = min(batch.count, first + self.room)
        self.room -= end - first
        for index in range(first, end):
            self.sent += decode_all(batch[index])
        return end

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self.waits.append((readable, writable))
        assert len(self.waits) < 100, "the engine spins"
        if not (readable and self._batches):
            raise PeerGone("the peer left")

    def close(self, linger_s: float = 1.0) -> None:
        pass


def session(gateway: BatchedLink, interval: int = 10**6, with_ids: bool = False) -> tuple[EngineResult, BatchedLink]:
    """Run an engine over this link. Returns its result and the reporter's link."""
    reporter = BatchedLink([END])
    engine = MatchingEngine(OrderBook(999, "price-time", with_ids=with_ids))
    return EngineService(engine, TERMS, gateway, reporter, interval, timeout_s=1.0).run(), reporter


@pytest.mark.parametrize("cut", range(1, 9))
def test_hello_orders_and_end_may_come_in_any_batches(cut: int) -> None:
    messages = [HELLO, *ORDERS, END]
    gateway = BatchedLink(messages[:cut], messages[cut:])
    result, reporter = session(gateway, interval=2)
    assert result.stopped is None
    assert result.orders.messages == 6
    assert result.answers.messages == 7
    confirmations = [message for message in gateway.sent if isinstance(message, Confirmation)]
    assert len(confirmations) == 6
    assert isinstance(gateway.sent[0], Hello)
    assert gateway.sent[-1].sent == 7
    meters = [message.meter for message in reporter.sent if isinstance(message, Throughput)]
    assert Meter.ENGINE_ORDERS_RECEIVED in meters


def test_an_engine_waits_for_a_gateway_that_reads_nothing_until_it_leaves() -> None:
    gateway = BatchedLink([HELLO], ORDERS, ORDERS, room=3)
    result, _ = session(gateway)
    assert result.stopped == "the peer left"
    assert gateway.waits[-1] == (False, True)


def test_an_engine_waits_for_a_gateway_that_takes_no_hello_until_it_leaves() -> None:
    gateway = BatchedLink([HELLO], ORDERS, room=0)
    result, _ = session(gateway)
    assert result.stopped == "the peer left"
    assert gateway.waits == [(False, True)]


def test_a_gateway_that_arrives_during_a_stall_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = BatchedLink([], [HELLO, *ORDERS, END])
    clock = itertools.count(10**12, 10**10)  # moves by 10 s at each reading
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(clock))
    result, _ = session(gateway)
    assert result.stopped is None
    assert result.orders.messages == 6


def test_cancels_are_counted_for_samples_as_orders_are() -> None:
    gateway = BatchedLink([HELLO], [ORDERS[0], Cancel(8), Cancel(9)], [END])
    result, reporter = session(gateway, interval=2, with_ids=True)
    assert result.stopped is None
    assert result.orders.messages == 3
    readings = [message for message in reporter.sent if isinstance(message, Throughput)]
    assert [reading.meter for reading in readings] == [Meter.ENGINE_ORDERS_RECEIVED, Meter.ENGINE_MESSAGES_SENT]


def test_the_result_counts_itself_among_the_statistics() -> None:
    result, reporter = session(BatchedLink([HELLO, *ORDERS, END]))
    [end] = [message for message in reporter.sent if isinstance(message, End)]
    assert result.statistics_sent == end.sent
