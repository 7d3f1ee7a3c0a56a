"""How a gateway's session ends: by the clock, by a stop, or because an engine or reporter falls silent."""

from __future__ import annotations

import pytest
from gateway_session import RUN, GatewaySession
from scripted_links import MS, SECOND, START_NS, TURN_NS, SimulatedEngine

from exchange.checksum import StreamChecksum
from exchange.messages import (
    Confirmation,
    End,
    Order,
    encode,
)
from exchange.meters import Meter
from exchange.session import Disagreement, Terms
from transports.base import PeerGone
from transports.frames import FrameBatch


def test_a_run_with_a_duration_ends_by_the_clock(clock):
    session = GatewaySession(clock, orders=None, duration_s=0.05, orders_per_s=None, window=10)
    session.engine.delay_ns = MS
    result = session.run()
    assert result.stopped is None
    assert 400 <= result.orders.messages <= 510
    assert result.orders_answered == result.orders.messages == session.engine.end.sent
    assert 0.05 <= result.duration_s <= 0.06


def test_a_stopped_gateway_still_exchanges_ends_with_the_engine(clock):
    session = GatewaySession(clock, orders=5_000)
    session.gateway.on_second = lambda sent, answered: session.gateway.stop("interrupted")
    result = session.run()
    assert result.stopped == "interrupted"
    assert 1_000 <= result.orders.messages <= 1_001
    assert result.orders_answered == result.orders.messages
    orders = result.orders
    assert session.engine.end == End(orders.messages, int(orders.checksum, 16), received=0, received_checksum=0)
    assert result.engine_said is not None
    assert result.statistics_sent > 0


def test_a_second_stop_does_not_replace_the_reason(session):
    session.gateway.stop("first")
    session.gateway.stop("second")
    result = session.run()
    assert result.stopped == "first"
    assert result.orders.messages == 0
    assert result.duration_s is None
    assert result.handing_over_s is None


@pytest.mark.parametrize("deaf", [True, False], ids=["takes no hello", "answers none"])
def test_a_stop_ends_the_wait_for_a_silent_engine_at_once(clock, deaf):
    session = GatewaySession(clock, timeout_s=3600.0)
    session.engine.deaf = lambda now_ns: deaf
    session.engine._take = lambda frame: None
    wait = session.engine.wait

    def interrupted(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        session.gateway.stop("interrupted")
        wait(min(until_ns, clock.now_ns + MS), readable, writable)  # a signal ends the sleep

    session.engine.wait = interrupted
    result = session.run()
    assert result.stopped == "interrupted"
    assert result.orders.messages == 0
    assert clock.now_ns < START_NS + 10 * MS


def test_a_stopped_gateway_waits_briefly_for_a_silent_engine(clock):
    session = GatewaySession(clock, orders=5_000, timeout_s=3600.0)
    session.engine.answers_end = False
    session.gateway.on_second = lambda sent, answered: session.gateway.stop("interrupted")
    assert session.run().stopped == "interrupted"
    assert clock.now_ns < START_NS + 5 * SECOND


def test_a_stopped_gateway_waits_briefly_for_a_silent_reporter(clock):
    session = GatewaySession(clock, orders=5_000, timeout_s=3600.0)
    session.reporter.answers_end = False
    wait = session.reporter.wait

    def interrupted(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        session.gateway.stop("interrupted")
        wait(min(until_ns, clock.now_ns + 250 * MS), readable, writable)

    session.reporter.wait = interrupted
    assert session.run().stopped == "interrupted"
    assert clock.now_ns < START_NS + 8 * SECOND, "5 s of orders, then less than 3 s of waiting"


@pytest.mark.parametrize(
    "arrival_ns", [0, 49_500_000, 99_500_000], ids=["before the orders", "between orders", "after the last order"]
)
def test_an_unasked_end_of_the_engine_ends_the_run_with_a_reason(session, arrival_ns):
    session.engine.say(encode(End(0, 0, 0, 0)), delay_ns=arrival_ns)
    result = session.run()
    assert result.stopped == "the engine ended the session before the gateway did"
    assert result.orders.messages <= 100


def test_an_unasked_end_in_the_turn_of_the_last_order_is_noticed(clock):
    session = GatewaySession(clock, orders=2)

    def end_with_the_second_order(order: Order) -> list:
        in_the_same_turn_ns = session.gateway._pacer.due_ns(2) + TURN_NS // 2
        session.engine.say(encode(End(0, 0, 0, 0)), delay_ns=in_the_same_turn_ns - clock.now_ns)
        return []

    session.engine.answers = end_with_the_second_order
    assert session.run().stopped == "the engine ended the session before the gateway did"


def test_an_engine_that_falls_silent_ends_the_run_after_the_timeout(clock):
    session = GatewaySession(clock, orders=5_000, timeout_s=2.0)
    session.engine.answers = lambda order: [Confirmation(order.id)] if order.id <= 500 else []
    session.engine.deaf = lambda now_ns: now_ns > START_NS + SECOND
    result = session.run()
    assert result.stopped == "the engine said nothing for 2 s"
    assert result.orders_answered == 500
    assert result.engine_said is None
    assert clock.now_ns < START_NS + 4 * SECOND


def test_a_stalled_gateway_does_not_blame_the_engine(clock):
    session = GatewaySession(clock, orders=2_000, timeout_s=2.0)
    has_stalled = False

    def stall_once(sent: int, answered: int) -> None:
        nonlocal has_stalled
        if not has_stalled:
            has_stalled = True
            clock.now_ns += 10 * SECOND  # meanwhile the answers to all orders arrive

    session.gateway.on_second = stall_once
    result = session.run()
    assert has_stalled
    assert result.stopped is None
    assert result.orders_answered == 2_000


def test_a_hello_that_arrives_during_a_stall_is_taken(clock):
    session = GatewaySession(clock, timeout_s=0.5)
    wait = session.engine.wait

    def stalled(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        session.engine.wait = wait
        clock.now_ns += SECOND

    session.engine.wait = stalled
    assert session.run().stopped is None


def test_the_gateway_gives_up_an_engine_that_never_ends(clock):
    session = GatewaySession(clock, timeout_s=1.0)
    session.engine.answers_end = False
    result = session.run()
    assert result.stopped == "the engine said nothing for 1 s"
    assert result.orders_answered == 100
    assert result.engine_said is None


@pytest.mark.parametrize("timeout_s", [2.5, 1.0, 0.5])
def test_a_period_longer_than_the_timeout_is_no_silence(clock, timeout_s):
    session = GatewaySession(clock, orders=4, orders_per_s=0.2, sampling_interval=1, timeout_s=timeout_s)
    result = session.run()
    assert result.stopped is None
    assert result.orders_answered == 4
    assert session.stamps(Meter.ORDER_DUE)[4] == 15 * SECOND


def test_completion_times_survive_an_engine_that_goes_away(session):
    session.engine.gone_at_ns = START_NS + 50 * MS
    result = session.run()
    assert result.stopped == "the engine went away"
    assert 45 <= result.orders_answered <= 50
    assert session.completion("handed_over").count == result.orders_answered
    assert session.records("result")[0]["stopped"] == "the engine went away"


def test_a_missing_engine_is_reported_with_its_address(clock):
    session = GatewaySession(clock, timeout_s=0.5)
    session.engine.deaf = lambda now_ns: True
    with pytest.raises(PeerGone, match=r"no engine answered at scripted://engine within 0.5 s"):
        session.run()
    assert clock.now_ns < START_NS + SECOND


@pytest.mark.parametrize("late_ns", [0, 50 * MS])
def test_a_stalled_gateway_that_resumes_does_not_blame_the_engine(clock, late_ns):
    """The engine's frames arrive during the stall, or `late_ns` after the stall."""
    session = GatewaySession(clock, recover=True, timeout_s=0.5)
    wait = session.engine.wait

    def stalled(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        clock.now_ns += 3 * SECOND
        session.engine.arrive_at(clock.now_ns + late_ns)
        session.engine.wait = wait

    session.engine.wait = stalled
    result = session.run()
    assert result.stopped is None
    assert result.orders_answered == 100


def test_the_gateway_gives_up_an_engine_that_never_resumes(clock):
    session = GatewaySession(clock, recover=True, timeout_s=0.5)
    session.engine.deaf = lambda now_ns: True
    with pytest.raises(PeerGone, match=r"no engine answered at scripted://engine within 0.5 s"):
        session.run()
    assert clock.now_ns < START_NS + SECOND


def test_an_engine_with_other_settings_is_refused_before_any_order(session):
    session.engine._terms = Terms(RUN, "exact-price", 1, 999)
    with pytest.raises(Disagreement, match=r"engine was started with .*exact-price, this end with price-time"):
        session.run()
    assert session.engine.orders == []


def test_a_session_has_a_result_if_the_engine_returns_with_other_settings(clock):
    session = GatewaySession(clock, recover=True)
    receive = session.engine.receive
    has_gone = False

    def go_away_once(batch: FrameBatch) -> int:
        nonlocal has_gone
        if clock.now_ns > START_NS + 50 * MS and not has_gone:
            has_gone = True
            session.engine._terms = Terms(RUN, "exact-price", 1, 999)
            raise PeerGone("the engine went away")
        return receive(batch)

    session.engine.receive = go_away_once
    result = session.run()
    assert "engine was started with" in result.stopped
    assert 0 < result.orders_answered < 100


def test_a_missing_confirmation_of_the_reporter_is_reported(clock):
    session = GatewaySession(clock, timeout_s=1.0)
    session.reporter.answers_end = False
    result = session.run()
    assert result.stopped == "the reporter did not confirm the statistics"
    assert result.orders_answered == 100


def test_the_session_ends_as_soon_as_the_engine_ends(session):
    session.run()
    assert session.clock.now_ns - START_NS <= 100 * MS


def test_a_gateway_that_cannot_send_its_end_still_receives(clock):
    session = GatewaySession(clock, orders=2_000, orders_per_s=None, timeout_s=0.1)
    session.engine.delay_ns = 0
    # An engine that cannot send its answers takes no more frames.
    session.engine.deaf = lambda now_ns: session.engine.unanswered > 0
    result = session.run()
    assert result.stopped is None
    assert result.orders_answered == 2_000


def test_a_delayed_end_is_sent_once_the_engine_takes_frames_again(session):
    engine = session.engine
    engine.deaf = lambda now_ns: len(engine.orders) == 100 and now_ns < START_NS + 150 * MS
    result = session.run()
    assert result.stopped is None
    assert result.orders_answered == 100
    assert 150 * MS <= session.clock.now_ns - START_NS <= 152 * MS


def test_the_gateway_gives_up_an_engine_that_takes_no_end(clock):
    session = GatewaySession(clock, timeout_s=1.0)

    def deaf(now_ns: int) -> bool:
        assert now_ns < START_NS + 3 * SECOND, "the session does not end"
        return len(session.engine.orders) == 100

    session.engine.deaf = deaf
    result = session.run()
    assert result.stopped == "the engine said nothing for 1 s"
    assert result.orders_answered == 100


def test_a_recovering_gateway_reports_progress_before_its_first_order(clock) -> None:
    """If the gateway is killed in between, its successor must recognize the journal as the journal of this run."""
    session = GatewaySession(clock, recover=True)
    sent: list[int] = []
    session.gateway.on_progress = lambda progress: sent.append(len(session.engine.orders))
    session.run()
    assert sent[0] == 0


def test_without_recovery_nothing_is_reported_before_the_first_order(clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report at that moment takes up to 0.2 ms, and would delay the first order of every run."""
    session = GatewaySession(clock)
    reported: list[int] = []

    def send(batch: FrameBatch, first: int) -> int:
        reported.append(len(session.reporter.sent))
        return SimulatedEngine.send(session.engine, batch, first)

    monkeypatch.setattr(session.engine, "send", send)
    session.run()
    assert reported[:2] == [0, 0], "the hello to the engine, and the first order"


def test_the_streams_are_flushed_before_the_result_is_sent(clock, monkeypatch):
    """A gateway that was killed after its result left fewer answers in its recorded stream than in the record."""
    session = GatewaySession(clock)
    results_at_flush = []
    monkeypatch.setattr(StreamChecksum, "flush", lambda _: results_at_flush.append(session.records("result")))
    session.run()
    assert results_at_flush == [[], []]
    assert len(session.records("result")) == 1
