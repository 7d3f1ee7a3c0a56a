"""The sessions of several gateways at one engine over scripted links: who gets what, and which gateway is dropped."""

from __future__ import annotations

import itertools
import math
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from operator import eq

import pytest

from exchange.market_ids import HIGHEST_NUMBER, market_id
from exchange.messages import (
    ASK,
    BID,
    CancelRequest,
    Confirmation,
    End,
    Hello,
    Message,
    Order,
    Quote,
    Rejection,
    ReplaceRequest,
    Timestamp,
    Trade,
    decode_all,
    encode,
)
from exchange.meters import Source
from exchange.results import EngineResult
from exchange.session import Terms
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.sessions import session as sessions
from matching_engine.sessions.service import SharedEngineService
from tests.machine import PATIENCE_S, until
from transports.base import Link, PeerGone
from transports.frames import FrameBatch
from transports.registry import connect, listen
from transports.together import SleepTogether

TERMS = Terms(7, policy="price-time", packing=1, max_price=999)
END = End(0, 0, 0, 0)


def hello(gateway: int) -> Hello:
    return replace(TERMS, instance=gateway).hello(Source.GATEWAY)


class Scripted(Link):
    """Delivers a batch at each receive, then nothing. It takes `room` frames in all, and leaves after its batches."""

    url = "scripted://gateway"

    def __init__(self, *batches: list[Message], room: int = 10**9, leaves: bool = False) -> None:
        self._batches = deque(batches)
        self._room = room
        self._leaves = leaves
        self.sent: list[Message] = []

    def receive(self, batch: FrameBatch) -> int:
        if not self._batches:
            if self._leaves:
                raise PeerGone("the peer left")
            return 0
        messages = self._batches.popleft()
        for message in messages:
            batch.append(encode(message))
        return len(messages)

    def send(self, batch: FrameBatch, first: int) -> int:
        end = min(batch.count, first + self._room)
        self._room -= end - first
        for index in range(first, end):
            self.sent += decode_all(batch[index])
        return end

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        pass

    def close(self, linger_s: float = 1.0) -> None:
        pass

    @property
    def answers(self) -> list[Message]:
        """Everything between the engine's hello and its end."""
        return [message for message in self.sent if not isinstance(message, Hello | End)]


def serve(*gateways: Scripted, with_ids: bool = False, timeout_s: float = 0.3) -> EngineResult:
    """Run an engine over these links to its end."""
    engine = MatchingEngine(OrderBook(999, "price-time", with_ids=with_ids), is_shared=True)
    reporter = Scripted([END])
    return SharedEngineService(engine, TERMS, gateways, reporter, 10**6, timeout_s).run()


def test_a_trade_goes_to_both_gateways_and_a_quote_to_all() -> None:
    seller = Scripted([hello(1)], [Order(1, ASK, 500, 10)], [], [END])
    buyer = Scripted([hello(2)], [], [Order(1, BID, 500, 4)], [END])
    watcher = Scripted([hello(3)], [END])
    result = serve(seller, buyer, watcher)
    assert result.stopped is None
    assert seller.answers == [Quote(0, 500), Confirmation(1), Trade(1, 500, 4)]
    assert buyer.answers == [Quote(0, 500), Trade(1, 500, 4)]
    assert watcher.answers == [Quote(0, 500)]
    assert [session.answers.messages for session in result.sessions] == [3, 2, 1]
    assert result.market is not None
    assert result.market.answers.messages == 4
    ends = [link.sent[-1] for link in (seller, buyer, watcher)]
    assert [end.sent for end in ends if isinstance(end, End)] == [3, 2, 1]


def test_a_gateway_that_trades_with_itself_gets_each_message_once() -> None:
    alone = Scripted([hello(1)], [Order(1, ASK, 500, 10), Order(2, BID, 500, 10), END])
    other = Scripted([hello(2)], [END])
    serve(alone, other)
    assert alone.answers == [Quote(0, 500), Confirmation(1), Trade(1, 500, 10), Trade(2, 500, 10), Quote(0, 1000)]
    assert other.answers == [Quote(0, 500), Quote(0, 1000)]


def test_no_gateway_may_cancel_or_replace_another_s_order() -> None:
    owner = Scripted([hello(1)], [Order(1, ASK, 500, 10)], [], [], [CancelRequest(2, market_id(1, 1)), END])
    other_requests = [
        CancelRequest(1, market_id(1, 1)),
        ReplaceRequest(2, market_id(1, 1), 501, 5),
        CancelRequest(3, 1),
    ]
    other = Scripted([hello(2)], [], other_requests, [END])
    serve(owner, other, with_ids=True)
    rejections = [answer for answer in other.answers if isinstance(answer, Rejection)]
    assert rejections == [Rejection(1, 10), Rejection(2, 10), Rejection(3, 6)]
    assert not any(isinstance(answer, Rejection) for answer in owner.answers)


def test_a_record_with_an_id_that_is_no_gateway_s_own_number_is_junk() -> None:
    wrong = Scripted([hello(1)], [Order(HIGHEST_NUMBER + 1, ASK, 500, 10), Order(1, ASK, 500, 10), END])
    other = Scripted([hello(2)], [END])
    result = serve(wrong, other)
    assert result.junk_frames == 1
    assert wrong.answers == [Quote(0, 500), Confirmation(1)]


def test_two_gateways_with_one_number_are_refused_by_a_sentence() -> None:
    twice = Scripted([hello(1)], [hello(1)])
    other = Scripted([hello(2)], [Order(1, ASK, 500, 10), END])
    result = serve(twice, other)
    assert result.sessions[0].dropped == "two gateways say that they are gateway: give each its own --instance"
    assert other.answers == [Quote(0, 500), Confirmation(1)]


def test_a_gateway_with_another_s_number_is_dropped_and_the_others_go_on() -> None:
    wrong = Scripted([hello(3)])
    other = Scripted([hello(2)], [Order(1, ASK, 500, 10), END])
    result = serve(wrong, other)
    assert "--instance 3" in str(result.sessions[0].dropped)
    assert result.stopped is None
    assert other.answers == [Quote(0, 500), Confirmation(1)]


def test_a_gateway_that_never_comes_is_dropped_and_the_others_go_on() -> None:
    other = Scripted([hello(2)], [Order(1, ASK, 500, 10), END])
    result = serve(Scripted(), other, timeout_s=0.1)
    assert str(result.sessions[0].dropped).startswith("no gateway came to scripted://gateway in time")
    assert other.answers == [Quote(0, 500), Confirmation(1)]


def test_answers_for_a_gateway_that_left_are_counted_as_undelivered() -> None:
    seller = Scripted([hello(1)], [Order(1, ASK, 500, 10)], leaves=True)
    buyer = Scripted([hello(2)], [], [], [], [Order(1, BID, 500, 4)], [END])
    result = serve(seller, buyer)
    assert result.sessions[0].dropped == "the peer left"
    assert result.sessions[0].undelivered == 1
    assert buyer.answers[-1] == Trade(1, 500, 4)


def test_a_gateway_for_which_too_many_answers_wait_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "WAITING_ANSWERS", 64)
    orders = [Order(number, ASK, 1000 - number, 1) for number in range(1, 101)]  # each improves the quote
    busy = Scripted([hello(1)], orders, [END])
    deaf = Scripted([hello(2)], room=1)
    result = serve(busy, deaf)
    assert "did not read" in str(result.sessions[1].dropped)
    assert result.sessions[1].undelivered == 100
    assert sum(isinstance(answer, Confirmation) for answer in busy.answers) < 100


def test_a_gateway_that_takes_no_answer_for_the_timeout_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(10**12, 5 * 10**6)  # moves by 5 ms at each reading
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(clock))
    busy = Scripted([hello(1)], [Order(1, ASK, 500, 1)], [END])
    deaf = Scripted([hello(2)], room=1)
    result = serve(busy, deaf, timeout_s=1.0)
    assert result.sessions[1].dropped == "gateway.2 took no answer for 1 s"
    assert busy.answers == [Quote(0, 500), Confirmation(1)]


SECOND = 10**9


class Clock:
    """Stands for the monotonic clock. It moves by 1 us at each reading, and to the end of each sleep.

    Every sleep longer than a millisecond takes `oversleeps_s` longer than planned, one after the other.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *oversleeps_s: float) -> None:
        self.now_ns = 10**12
        self.stalled_until_ns = 0
        """When the latest sleep ended that took longer than planned."""
        self._oversleeps_s = deque(oversleeps_s)
        monkeypatch.setattr(time, "monotonic_ns", self.read)
        monkeypatch.setattr(SleepTogether, "sleep", lambda _together, _links, until_ns: self._sleep(until_ns))

    def read(self) -> int:
        self.now_ns += 1_000
        return self.now_ns

    def _sleep(self, until_ns: int) -> None:
        if until_ns - self.now_ns > SECOND // 1_000 and self._oversleeps_s:
            until_ns += int(self._oversleeps_s.popleft() * SECOND)
            self.stalled_until_ns = until_ns
        self.now_ns = max(self.now_ns, until_ns)


class Idle(Scripted):
    """Says hello. Then it sends an empty frame a second, as a gateway without orders does, and its end at `end_s`.

    From `silent_from_s` on it sends nothing. After a stall of the engine, its frames come `late_s` later, as if the
    thread of a library was stalled, too.
    """

    def __init__(
        self, clock: Clock, gateway: int, end_s: float, silent_from_s: float = math.inf, late_s: float = 0.0
    ) -> None:
        super().__init__([hello(gateway)])
        self._clock = clock
        self._end_ns = clock.now_ns + end_s * SECOND
        self._silent_from_ns = clock.now_ns + silent_from_s * SECOND
        self._late_ns = late_s * SECOND
        self.last_ns = clock.now_ns
        """When the latest frame came."""

    def receive(self, batch: FrameBatch) -> int:
        if self._batches:
            return super().receive(batch)
        now_ns = self._clock.now_ns
        comes_ns = max(self.last_ns + SECOND, self._clock.stalled_until_ns + self._late_ns)
        if now_ns < comes_ns or now_ns >= self._silent_from_ns:
            return 0
        self.last_ns = now_ns
        batch.append(encode(END) if now_ns >= self._end_ns else b"")
        return 1


@pytest.mark.parametrize("stall_s", [0, 20])
def test_a_gateway_that_falls_silent_is_dropped_in_time_although_the_engine_sleeps_long(
    monkeypatch: pytest.MonkeyPatch, stall_s: float
) -> None:
    clock = Clock(monkeypatch, stall_s)
    frozen = Idle(clock, 1, end_s=60, silent_from_s=stall_s + 2.5)
    service = SharedEngineService(
        MatchingEngine(OrderBook(999, "price-time"), is_shared=True),
        TERMS,
        [frozen, Idle(clock, 2, end_s=60)],
        Scripted([END]),
        sampling_interval=10**6,
        timeout_s=5.5,
    )
    dropped_ns: list[int] = []
    service.on_dropped = lambda _gateway: dropped_ns.append(clock.now_ns)
    result = service.run()
    assert [session.dropped for session in result.sessions] == ["gateway said nothing for 7.5 s", None]
    [drop_ns] = dropped_ns
    assert 7.5 < (drop_ns - frozen.last_ns) / SECOND < 7.6


@pytest.mark.parametrize("stalls_s", [[20], [0, 3, 20], [0.9] * 20])
def test_while_the_engine_itself_stood_still_no_gateway_is_taken_for_silent(
    monkeypatch: pytest.MonkeyPatch, stalls_s: list[float]
) -> None:
    clock = Clock(monkeypatch, *stalls_s)
    result = serve(Idle(clock, 1, end_s=40, late_s=0.05), Idle(clock, 2, end_s=40, late_s=0.05), timeout_s=5)
    assert [session.dropped for session in result.sessions] == [None, None]


class Slow(Idle):
    """Takes an answer every three seconds, behind the hello."""

    def send(self, batch: FrameBatch, first: int) -> int:
        if self.sent and self._clock.now_ns < self._takes_next_ns:
            return first
        self._takes_next_ns = self._clock.now_ns + 3 * SECOND
        return super().send(FrameBatch.of(batch[first]), 0) + first


def test_a_gateway_that_reads_slowly_is_not_taken_for_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the engine receives nothing from it while many answers wait for it, and took that for its silence."""
    monkeypatch.setattr(sessions, "WAITING_ANSWERS", 64)
    clock = Clock(monkeypatch)
    busy = Idle(clock, 1, end_s=300)
    orders: list[Message] = [Order(number, ASK, 1000 - number, 1) for number in range(1, 41)]  # each improves the quote
    busy._batches += [orders[:20], orders[20:]]
    slow = Slow(clock, 2, end_s=300)
    result = serve(busy, slow, timeout_s=5)
    assert [session.dropped for session in result.sessions] == [None, None]
    assert len(slow.answers) == 40


class SmallBook(OrderBook):
    """A book that grows after a few orders."""

    first_capacity = 1 << 8


def brings(link: Link, is_awaited: Callable[[Message], bool]) -> bool:
    """Wait for a moment, receive once, and return whether an awaited message came."""
    received = FrameBatch(2000)
    link.wait(time.monotonic_ns() + SECOND // 20)
    link.receive(received)
    messages = [message for frame in received for message in decode_all(frame)]
    return any(is_awaited(message) for message in messages)


def is_hello(message: Message) -> bool:
    return isinstance(message, Hello)


def test_each_sampled_order_is_reported_also_if_the_book_grows_in_the_middle_of_its_batch() -> None:
    """Over links that lend their calls, the rest of such a batch is matched in Python."""
    listeners = [listen("tcp://127.0.0.1:0", "token") for _ in range(2)]
    reporter = Scripted([END])
    engine = MatchingEngine(SmallBook(999, "price-time"), is_shared=True)
    service = SharedEngineService(engine, TERMS, listeners, reporter, sampling_interval=270, timeout_s=PATIENCE_S)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(service.run)
        gateways = [connect(link.url, "token", time.monotonic_ns() + int(PATIENCE_S * 1e9)) for link in listeners]
        for number, gateway in enumerate(gateways, start=1):
            assert gateway.send(FrameBatch.of(encode(hello(number))), 0) == 1
        for gateway in gateways:
            until(partial(brings, gateway, is_hello), "the engine's hello")
        first_id = 1
        for last_id in (280, 560):  # the book grows at order 257, and again at order 513
            orders = [encode(Order(number, ASK, 500, 1)) for number in range(first_id, last_id + 1)]
            assert gateways[0].send(FrameBatch.of(*orders), 0) == len(orders)
            until(partial(brings, gateways[0], partial(eq, Confirmation(last_id))), f"the answer to order {last_id}")
            first_id = last_id + 1
        for gateway in gateways:
            assert gateway.send(FrameBatch.of(encode(END)), 0) == 1
        assert running.result().stopped is None
        for link in gateways + listeners:
            link.close()
    sampled = [message for message in reporter.sent if isinstance(message, Timestamp)]
    assert [message.correlation_id for message in sampled] == [270, 540]
