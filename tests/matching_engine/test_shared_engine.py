"""The sessions of several gateways at one engine over scripted links: who gets what, and which gateway is dropped."""

from __future__ import annotations

import itertools
import time
from collections import deque
from dataclasses import replace

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
from transports.base import Link, PeerGone
from transports.frames import FrameBatch

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
