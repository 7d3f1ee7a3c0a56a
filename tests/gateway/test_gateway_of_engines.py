"""A gateway with sessions at several engines: who gets which order, and what one engine's trouble does to the rest."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

import numpy as np
import pytest

from exchange.checksum import StreamChecksum
from exchange.instruments import engine_of
from exchange.messages import (
    CancelRequest,
    Confirmation,
    End,
    Hello,
    InstrumentOrder,
    Message,
    ReplaceRequest,
    decode,
    encode,
)
from exchange.meters import Source
from exchange.results import GatewayResult
from exchange.session import Disagreement, Terms
from exchange.settings import RunSettings
from gateway.due_times import NEVER_NS
from gateway.engines.gateway import GatewayOfEngines
from gateway.engines.sessions import EngineLinks, EngineSession
from transports.base import Link, PeerGone
from transports.frames import FrameBatch
from transports.together import SleepTogether

RUN = 7
INSTRUMENTS = 10
MIX = "limit=60,cancel=30,replace=10"


class Engine(Link):
    """Confirms every order at once, and ends after the gateway's end."""

    url = "scripted://engine"

    def __init__(self, settings: RunSettings, number: int = 1) -> None:
        self._terms = Terms(
            RUN,
            settings.policy,
            settings.packing,
            settings.max_price,
            instruments=settings.instruments,
            engines=settings.engines,
            engine=number,
        )
        self._answers: deque[Message] = deque()
        self.orders: list[Message] = []
        self.bytes_of_orders = StreamChecksum()
        self.bytes_of_answers = StreamChecksum()
        self.end: End | None = None
        self.says_hello = True
        self.takes_orders = True
        self.leaves_after: int | None = None

    def send(self, batch: FrameBatch, first: int) -> int:
        for index in range(first, batch.count):
            if not batch[index]:
                continue
            message = decode(batch[index])
            if isinstance(message, Hello | End):
                self._take(message)
                continue
            if self.leaves_after is not None and len(self.orders) >= self.leaves_after:
                raise PeerGone("the engine left")
            if not self.takes_orders:
                return index
            self.orders.append(message)
            self.bytes_of_orders.update(batch.span(index, index + 1))
            self._answers.append(Confirmation(message.id))  # type: ignore[union-attr]
        return batch.count

    def _take(self, message: Hello | End) -> None:
        if isinstance(message, Hello):
            if self.says_hello:
                self._answers.append(self._terms.hello(Source.ENGINE))
            return
        self.end = message
        count = len(self.orders)
        self._answers.append(End(count, self.bytes_of_answers.value, count, self.bytes_of_orders.value))

    def receive(self, batch: FrameBatch) -> int:
        frames = 0
        while self._answers:
            message = self._answers.popleft()
            if isinstance(message, End):  # its checksum is that of all answers before
                message = message._replace(sent_checksum=self.bytes_of_answers.value)
            batch.append(encode(message))
            if isinstance(message, Confirmation):
                self.bytes_of_answers.update(batch.span(batch.count - 1, batch.count))
            frames += 1
        return frames

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        pass

    def close(self, linger_s: float = 1.0) -> None:
        pass


class Reporter(Engine):
    """Confirms at once that everything came."""

    def send(self, batch: FrameBatch, first: int) -> int:
        self._answers.append(End(0, 0, 0, 0))
        return batch.count


class Market:
    """A gateway and its engines."""

    def __init__(self, engines: int = 3, **given: object) -> None:
        defaults = {"orders": 300, "orders_per_s": None, "mix": MIX, "timeout_s": 0.3}
        values = {**defaults, "engines": engines, "instruments": INSTRUMENTS, **given}
        self.settings = RunSettings(**values)  # type: ignore[arg-type]
        self.engines = [Engine(self.settings, number) for number in range(1, engines + 1)]

    def run(self, prepare: Callable[[GatewayOfEngines], None] = lambda gateway: None) -> GatewayResult:
        sessions = []
        for number, engine in enumerate(self.engines, start=1):
            sessions.append(EngineSession(number, engine, StreamChecksum()))
        links = EngineLinks(sessions)
        reporter = Reporter(self.settings)
        gateway = GatewayOfEngines(self.settings, RUN, links, reporter, StreamChecksum())
        prepare(gateway)
        return gateway.run()


def test_each_order_goes_to_the_engine_of_its_instrument_and_a_request_to_that_of_its_order() -> None:
    market = Market()
    result = market.run()
    assert result.stopped is None
    assert result.orders_answered == 300
    engine_of_order: dict[int, int] = {}
    for number, engine in enumerate(market.engines, start=1):
        for order in engine.orders:
            if isinstance(order, InstrumentOrder):
                assert engine_of(order.instrument, 3) == number
                engine_of_order[order.id] = number
    requests = 0
    for number, engine in enumerate(market.engines, start=1):
        for order in engine.orders:
            if isinstance(order, CancelRequest | ReplaceRequest):
                assert engine_of_order[order.order_id] == number
                requests += 1
    assert requests > 50


def test_each_engine_gets_its_orders_in_the_gateway_s_order_and_all_of_them_together() -> None:
    market = Market()
    market.run()
    ids: list[int] = []
    for engine in market.engines:
        ids_of_engine = [order.id for order in engine.orders]  # type: ignore[union-attr]
        assert ids_of_engine == sorted(ids_of_engine)
        assert ids_of_engine
        ids += ids_of_engine
    assert sorted(ids) == list(range(1, 301))


def test_each_session_has_the_counts_and_checksums_of_its_engine() -> None:
    market = Market()
    result = market.run()
    for engine, session in zip(market.engines, result.sessions, strict=True):
        assert session.orders.messages == len(engine.orders)
        assert session.orders.checksum == engine.bytes_of_orders.hex
        assert session.answers.checksum == engine.bytes_of_answers.hex
        assert engine.end is not None
        assert engine.end.sent == len(engine.orders)
        assert engine.end.sent_checksum == engine.bytes_of_orders.value
    total = sum(int(session.answers.checksum, 16) for session in result.sessions) % 2**64
    assert int(result.answers.checksum, 16) == total


def test_the_orders_are_those_of_one_engine_whatever_the_number_of_engines() -> None:
    checksums = {Market(engines).run().orders.checksum for engines in (2, 3, 5)}
    assert len(checksums) == 1


def test_a_due_schedule_is_one_for_all_engines() -> None:
    result = Market(orders_per_s=20_000.0).run()
    assert result.stopped is None
    assert result.schedule_s == pytest.approx(299 / 20_000, rel=1e-6)


def test_an_engine_that_takes_nothing_more_holds_up_the_gateway_until_the_timeout() -> None:
    market = Market()
    market.engines[1].takes_orders = False
    result = market.run()
    assert "said nothing for 0.3 s" in str(result.stopped)
    assert not market.engines[1].orders


def test_an_engine_that_never_answers_the_hello_is_named() -> None:
    market = Market()
    market.engines[2].says_hello = False
    with pytest.raises(PeerGone, match=re.escape("no engine 3 answered at scripted://engine within 0.3 s")):
        market.run()


def test_engines_in_another_order_than_their_addresses_are_refused() -> None:
    market = Market()
    market.engines.reverse()
    with pytest.raises(Disagreement, match="address 1 of --engine leads to engine 3"):
        market.run()


def test_if_an_engine_is_gone_the_others_get_the_gateway_s_end() -> None:
    market = Market()
    market.engines[0].leaves_after = 5
    result = market.run()
    assert result.stopped == "the engine left"
    assert market.engines[1].end is not None
    assert market.engines[2].end is not None


def test_an_engine_that_ends_first_ends_the_gateway_s_run() -> None:
    market = Market(orders_per_s=100.0)
    market.engines[1]._answers.append(End(0, 0, 0, 0))
    result = market.run()
    assert result.stopped == "engine 2 ended the session before the gateway did"
    assert market.engines[0].end is not None


def test_an_idle_session_shows_life_although_the_gateway_sends_to_another_engine() -> None:
    session = EngineSession(2, Engine(RunSettings()), StreamChecksum())
    frames: list[bytes] = []

    def note(frame: bytes) -> bool:
        frames.append(frame)
        return True

    session.send_frame = note  # type: ignore[method-assign]
    session.orders_sent = 3
    session.show_life()
    assert frames == []
    session.show_life()
    assert frames == [b""]


def test_a_gateway_sleeps_while_a_link_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: each attempt to send counted as a frame that moved, so the gateway never slept."""
    sleeps: list[int] = []
    monkeypatch.setattr(SleepTogether, "sleep", lambda _together, _links, until_ns: sleeps.append(until_ns))
    engine = Engine(RunSettings())
    monkeypatch.setattr(engine, "send", lambda _batch, first: first)
    session = EngineSession(1, engine, StreamChecksum())
    links = EngineLinks([session])
    session.add(FrameBatch.of(encode(InstrumentOrder(1, 0, 1, 500, 1, 0))), 0, np.ones(1, np.int64))
    for _turn in range(4):
        session.send_waiting()
        assert not session.send_frame(b"")
        links.wait(NEVER_NS, writable=True)
    assert session.has_waiting
    assert len(sleeps) == 2, "every second wait serves the links first"
