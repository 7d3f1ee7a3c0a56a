"""A subscriber joins an engine's market data with a snapshot, counts what is missing, and ends with the engine."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from exchange.messages import ASK, BID, Hello, Order, Snapshot, SnapshotRequest, decode, encode
from exchange.results import SubscriberResult
from exchange.session import Disagreement, Terms
from gateway.market_data.subscriber import Subscriber
from matching_engine.market_data.feed import PublishingEngine
from matching_engine.market_data.publisher import MarketDataPublisher
from matching_engine.order_book import OrderBook
from tests.machine import until
from tests.matching_engine.order_streams import handled, uniform_orders
from transports.base import Link, Pattern
from transports.frames import FrameBatch
from transports.registry import connect, listen

TOKEN = "subscriber"
TERMS = Terms(7, "price-time", 1, 999)
FRAMES = [order.tobytes() for order in uniform_orders(400)]


@pytest.fixture
def url() -> str:
    return f"zeromq+inproc://{secrets.token_hex(8)}"


class Market:
    """An engine with its publisher, served by this thread, and subscribers in threads of their own."""

    def __init__(self, url: str, subscribers: int, with_depth: bool = False) -> None:
        self.engine = PublishingEngine(OrderBook(), with_depth)
        self.link = listen(url, TOKEN, Pattern.FANOUT)
        self.publisher = MarketDataPublisher(self.engine.feed, self.link, TERMS, subscribers, "wait", timeout_s=5.0)
        self.url = url
        self.results: dict[int, SubscriberResult] = {}
        self.subscribers: dict[int, Subscriber] = {}
        self._threads: list[threading.Thread] = []

    def subscribe(self, number: int, terms: Terms = TERMS, asks_after_gaps: bool = False) -> Subscriber:
        """Open a subscriber, and run it in a thread."""
        subscriber = Subscriber(self._connect(), terms, number, timeout_s=5.0, asks_after_gaps=asks_after_gaps)
        subscriber.warm()
        self.subscribers[number] = subscriber

        def run() -> None:
            self.results[number] = subscriber.run()

        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()
        return subscriber

    def _connect(self) -> Link:
        return connect(self.url, TOKEN, 0, Pattern.FANOUT)

    def trade(self, frames: list[bytes]) -> None:
        """Match the orders in these frames, and publish."""
        handled(self.engine, frames)
        self.publisher.publish()

    def serve_until(self, condition: Callable[[], bool]) -> None:
        """Serve the publisher until the condition holds."""

        def holds() -> bool:
            self.publisher._listen()
            return condition()

        until(holds, "what the market waits for")

    def finish(self) -> dict[int, SubscriberResult]:
        """End the market data; return every subscriber's result."""
        self.publisher.finish()
        for thread in self._threads:
            thread.join(10)
        return self.results

    def close(self) -> None:
        for subscriber in self.subscribers.values():
            subscriber.stop("the test is over")
        for thread in self._threads:
            thread.join(10)
        for subscriber in self.subscribers.values():
            subscriber.close()
        self.publisher.close()


@contextmanager
def market(url: str, subscribers: int, with_depth: bool = False) -> Iterator[Market]:
    with closing(Market(url, subscribers, with_depth)) as opened:
        yield opened


def test_an_engine_that_is_asked_to_stop_awaits_no_subscriber(url: str) -> None:
    """Regression: it waited for half of the timeout."""
    looks: list[int] = []

    def is_stopped() -> bool:
        looks.append(1)
        return len(looks) == 2

    with market(url, 1) as opened:
        opened.publisher.await_subscribers(is_stopped)
        assert len(looks) == 2


def test_every_subscriber_receives_all_messages_of_the_engine(url: str) -> None:
    with market(url, 3) as opened:
        for number in (1, 2, 3):
            opened.subscribe(number)
        opened.publisher.await_subscribers()
        for first in range(0, len(FRAMES), 50):
            opened.trade(FRAMES[first : first + 50])
        results = opened.finish()
        feed = opened.engine.feed
        assert feed.messages > 100
        for result in results.values():
            assert result.stopped is None
            assert result.messages == result.trades + result.quotes == feed.messages
            assert (result.before, result.gaps, result.missed, result.repeated) == (0, 0, 0, 0)
            assert result.checksum == feed.checksum.hex
            assert result.engine_said == {
                "sent": feed.messages,
                "sent_checksum": feed.checksum.value,
                "received": 0,
                "received_checksum": 0,
            }
            assert result.delivery is not None
            assert result.delivery["count"] == feed.messages
        assert opened.publisher.facts["joined"] == [1, 2, 3]


def test_a_late_subscriber_gets_a_snapshot_and_goes_on_by_sequence(url: str) -> None:
    with market(url, 1, with_depth=True) as opened:
        first = opened.subscribe(1)
        opened.publisher.await_subscribers()
        opened.trade(FRAMES[:200])
        before = opened.engine.feed.messages
        late = opened.subscribe(2)
        opened.serve_until(lambda: opened.publisher.facts["joined"] == [1, 2])
        assert late.best.tolist() == [[opened.engine.book.best_bid, opened.engine.book.best_ask]]
        opened.trade(FRAMES[200:])
        results = opened.finish()
        sent = opened.engine.feed.messages
        assert (results[1].messages, results[1].before) == (sent, 0)
        assert (results[2].messages, results[2].before) == (sent - before, before)
        assert results[2].missed == 0
        assert late.depth.tolist() == first.depth.tolist()
        assert late.depth[0, 0, 0, 0] == opened.engine.book.best_ask


@pytest.mark.parametrize("asks_after_gaps", [False, True])
def test_a_gap_is_counted_and_a_conflated_feed_fills_it_with_a_snapshot(url: str, asks_after_gaps: bool) -> None:
    with market(url, 1) as opened:
        subscriber = opened.subscribe(1, asks_after_gaps=asks_after_gaps)
        opened.publisher.await_subscribers()
        opened.trade(FRAMES[:200])
        handled(opened.engine, FRAMES[200:300])
        opened.engine.feed.take(lost := FrameBatch())
        missed = sum(map(len, lost)) // 23
        opened.trade(FRAMES[300:])
        if asks_after_gaps:
            opened.serve_until(lambda: opened.publisher.facts["snapshots"] > 1)
        results = opened.finish()
        assert (results[1].gaps, results[1].missed) == (1, missed)
        assert results[1].messages + missed == opened.engine.feed.messages
        assert (results[1].snapshots > 1) is asks_after_gaps
        assert subscriber.best.tolist() == [[opened.engine.book.best_bid, opened.engine.book.best_ask]]


def test_messages_lost_before_the_end_are_a_gap(url: str) -> None:
    with market(url, 1) as opened:
        opened.subscribe(1)
        opened.publisher.await_subscribers()
        handled(opened.engine, FRAMES)
        opened.engine.feed.take(FrameBatch())
        result = opened.finish()[1]
        assert (result.messages, result.missed, result.gaps) == (0, opened.engine.feed.messages, 1)


def test_an_older_engine_is_refused_with_a_sentence(url: str) -> None:
    with closing(listen(url, TOKEN, Pattern.FANOUT)) as link:
        subscriber = Subscriber(connect(url, TOKEN, 0, Pattern.FANOUT), TERMS, 1, timeout_s=5.0)
        with closing(subscriber):
            older = Hello(1, 7, 2, 1, 1, 999, 0, 0, 1, 1, 1, 1)
            requests = FrameBatch(4)

            def is_asked() -> bool:
                link.wait(0)
                subscriber._ask_if_due()
                return link.receive(requests) > 0

            until(is_asked, "a request")
            assert decode(requests[0]) == SnapshotRequest(1)
            link.send(FrameBatch.of(encode(older) + encode(Snapshot(0, 0, 1, 0, 1000))), 0)
            with pytest.raises(Disagreement, match="engine was started with protocol version 1"):
                subscriber.run()


def test_junk_is_counted_and_market_data_before_the_snapshot_is_left_out(url: str) -> None:
    with market(url, 1) as opened:
        opened.link.send(FrameBatch.of(b"\xff\xff"), 0)
        opened.subscribe(1)
        opened.publisher.await_subscribers()
        opened.link.send(FrameBatch.of(b"\xff\xff", b"\x18", encode(Order(1, ASK, 1, 1)), b""), 0)
        opened.trade([encode(Order(1, ASK, 500, 5)), encode(Order(2, BID, 500, 5))])
        result = opened.finish()[1]
        assert result.junk_frames == 3
        assert result.messages == opened.engine.feed.messages


def test_a_stopped_subscriber_leaves_a_result_without_an_end(url: str) -> None:
    with market(url, 1) as opened:
        subscriber = opened.subscribe(1)
        opened.publisher.await_subscribers()
        opened.trade(FRAMES)
        subscriber.stop("interrupted")
        until(lambda: 1 in opened.results, "the subscriber's result")
        assert opened.results[1].stopped == "interrupted"
        assert opened.results[1].engine_said is None
