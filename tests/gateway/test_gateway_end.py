"""How a gateway's session ends: by the clock, by a stop, or by an engine or a reporter that falls silent."""

from __future__ import annotations

from collections import deque

import pytest
from gateway_session import RUN, GatewaySession
from scripted_links import MS, SECOND, START_NS, TURN_NS, SimulatedEngine

from exchange.measurements import Meter
from exchange.messages import (
    Confirmation,
    End,
    Order,
    encode,
)
from exchange.session import Disagreement, Terms
from transports.base import PeerGone
from transports.frames import FrameBatch


def test_the_clock_ends_a_run_of_some_duration(clock):
    session = GatewaySession(clock, orders=None, duration_s=0.05, orders_per_s=None, window=10)
    session.engine.delay_ns = MS
    result = session.run()
    assert result.stopped is None
    assert 400 <= result.orders.messages <= 510
    assert result.orders_answered == result.orders.messages == session.engine.end.sent
    assert 0.05 <= result.duration_s <= 0.06


def test_a_stop_in_the_middle_ends_in_band_as_a_partial_run(clock):
    session = GatewaySession(clock, orders=5_000)
    session.gateway.on_second = lambda sent, answered: session.gateway.stop("interrupted")
    result = session.run()
    assert result.stopped == "interrupted"
    assert 1_000 <= result.orders.messages <= 1_001
    assert result.orders_answered == result.orders.messages
    assert session.engine.end == End(result.orders.messages, int(result.orders.checksum, 16), 0, 0)
    assert result.engine_said is not None
    assert result.statistics_sent > 0


def test_the_first_reason_to_stop_stands(session):
    session.gateway.stop("first")
    session.gateway.stop("second")
    result = session.run()
    assert (result.stopped, result.orders.messages) == ("first", 0)
    assert (result.duration_s, result.handing_over_s) == (None, None)


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
    assert (result.stopped, result.orders.messages) == ("interrupted", 0)
    assert clock.now_ns < START_NS + 10 * MS


def test_a_stopped_gateway_bears_an_engine_s_silence_for_a_short_time_only(clock):
    session = GatewaySession(clock, orders=5_000, timeout_s=3600.0)
    session.engine.answers_end = False
    session.gateway.on_second = lambda sent, answered: session.gateway.stop("interrupted")
    assert session.run().stopped == "interrupted"
    assert clock.now_ns < START_NS + 5 * SECOND


def test_a_stopped_gateway_gives_a_silent_reporter_a_short_time_only(clock):
    session = GatewaySession(clock, orders=5_000, timeout_s=3600.0)
    session.reporter.answers_end = False
    wait = session.reporter.wait

    def interrupted(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        session.gateway.stop("interrupted")
        wait(min(until_ns, clock.now_ns + 250 * MS), readable, writable)

    session.reporter.wait = interrupted
    assert session.run().stopped == "interrupted"
    assert clock.now_ns < START_NS + 8 * SECOND  # five of them is the session


@pytest.mark.parametrize("after", [0, 50, 100])
def test_an_end_that_nobody_asked_for_ends_the_run_with_a_sentence(session, after):
    session.engine.answers = lambda order: [Confirmation(order.id)]
    session.engine.say(encode(End(0, 0, 0, 0)), delay_ns=after * MS - MS // 2)
    result = session.run()
    assert result.stopped == "the engine ended the session before the gateway did"
    assert result.orders.messages <= 100


def test_an_unasked_end_is_known_even_with_the_last_order(clock):
    session = GatewaySession(clock, orders=2)

    def end_it(order: Order) -> list:
        early_ns = session.gateway._pacer.due_ns(2) + TURN_NS // 2 - clock.now_ns
        session.engine.say(encode(End(0, 0, 0, 0)), delay_ns=early_ns)
        return []

    session.engine.answers = end_it
    assert session.run().stopped == "the engine ended the session before the gateway did"


def test_an_engine_that_falls_silent_ends_the_run_after_the_timeout(clock):
    session = GatewaySession(clock, orders=5_000, timeout_s=2.0)
    session.engine.answers = lambda order: [Confirmation(order.id)] if order.id <= 500 else []
    session.engine.deaf = lambda now_ns: now_ns > START_NS + SECOND
    result = session.run()
    assert result.stopped == "the engine said nothing for 2 s"
    assert (result.orders_answered, result.engine_said) == (500, None)
    assert clock.now_ns < START_NS + 4 * SECOND


def test_a_stall_of_the_gateway_is_no_silence_of_the_engine(clock):
    session = GatewaySession(clock, orders=2_000, timeout_s=2.0)
    stalls_ns = [10 * SECOND]

    def stall(sent: int, answered: int) -> None:
        clock.now_ns += stalls_ns.pop() if stalls_ns else 0  # meanwhile the answer to the last order comes

    session.gateway.on_second = stall
    result = session.run()
    assert (stalls_ns, result.stopped, result.orders_answered) == ([], None, 2_000)


def test_a_hello_that_came_while_the_gateway_was_stalled_is_taken(clock):
    session = GatewaySession(clock, timeout_s=0.5)
    wait = session.engine.wait

    def stalled(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        session.engine.wait = wait
        clock.now_ns += SECOND

    session.engine.wait = stalled
    assert session.run().stopped is None


def test_an_engine_that_never_answers_the_end_is_given_up(clock):
    session = GatewaySession(clock, timeout_s=1.0)
    session.engine.answers_end = False
    result = session.run()
    assert result.stopped == "the engine said nothing for 1 s"
    assert (result.orders_answered, result.engine_said) == (100, None)


@pytest.mark.parametrize("timeout_s", [2.5, 1.0, 0.5])
def test_a_slow_schedule_is_no_silence(clock, timeout_s):
    session = GatewaySession(clock, orders=4, orders_per_s=0.2, sampling_interval=1, timeout_s=timeout_s)
    result = session.run()
    assert (result.stopped, result.orders_answered) == (None, 4)
    assert session.stamps(Meter.ORDER_DUE)[4] == 15 * SECOND


def test_an_engine_that_goes_away_leaves_what_was_measured(session):
    session.engine.gone_at_ns = START_NS + 50 * MS
    result = session.run()
    assert result.stopped == "the engine went away"
    assert 45 <= result.orders_answered <= 50
    assert session.completion("handed_over").count == result.orders_answered
    assert session.records("result")[0]["stopped"] == "the engine went away"


def test_no_engine_is_said_with_the_place_where_it_was_looked_for(clock):
    session = GatewaySession(clock, timeout_s=0.5)
    session.engine.deaf = lambda now_ns: True
    with pytest.raises(PeerGone, match=r"no engine answered at scripted://engine within 0.5 s"):
        session.run()
    assert clock.now_ns < START_NS + SECOND


@pytest.mark.parametrize("late_ns", [0, 50 * MS])
def test_a_stall_of_a_resuming_gateway_is_no_silent_engine(clock, late_ns):
    """The engine's word came meanwhile, or a moment after the gateway woke."""
    session = GatewaySession(clock, recover=True, timeout_s=0.5)
    wait = session.engine.wait

    def stalled(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        clock.now_ns += 3 * SECOND
        session.engine._on_the_way = deque((clock.now_ns + late_ns, frame) for _, frame in session.engine._on_the_way)
        session.engine.wait = wait

    session.engine.wait = stalled
    result = session.run()
    assert (result.stopped, result.orders_answered) == (None, 100)


def test_an_engine_that_never_resumes_is_given_up(clock):
    session = GatewaySession(clock, recover=True, timeout_s=0.5)
    session.engine.deaf = lambda now_ns: True
    with pytest.raises(PeerGone, match=r"no engine answered at scripted://engine within 0.5 s"):
        session.run()
    assert clock.now_ns < START_NS + SECOND


def test_an_engine_of_other_settings_is_refused_before_any_order(session):
    session.engine._terms = Terms(RUN, "exact-price", 1, 999)
    with pytest.raises(Disagreement, match=r"engine was started with .*exact-price, this end with price-time"):
        session.run()
    assert session.engine.orders == []


def test_an_engine_back_with_other_settings_ends_a_finished_session(clock):
    """The result of the session is there."""
    session = GatewaySession(clock, recover=True)
    receive = session.engine.receive

    def broken(batch: FrameBatch) -> int:
        if clock.now_ns > START_NS + 50 * MS and session.engine._terms is session.terms:
            session.engine._terms = Terms(RUN, "exact-price", 1, 999)
            raise PeerGone("the engine went away")
        return receive(batch)

    session.engine.receive = broken
    result = session.run()
    assert "engine was started with" in result.stopped
    assert 0 < result.orders_answered < 100


def test_a_reporter_that_does_not_confirm_is_said(clock):
    session = GatewaySession(clock, timeout_s=1.0)
    session.reporter.answers_end = False
    result = session.run()
    assert result.stopped == "the reporter did not confirm the statistics"
    assert result.orders_answered == 100


def test_the_engines_end_ends_the_session_at_once(session):
    session.run()
    assert session.clock.now_ns - START_NS <= 100 * MS


def test_a_gateway_that_cannot_send_its_end_goes_on_receiving(clock):
    session = GatewaySession(clock, orders=2_000, orders_per_s=None, timeout_s=0.1)
    session.engine.delay_ns = 0
    session.engine.deaf = lambda now_ns: session.engine.unanswered > 0  # as one whose answers find no room
    result = session.run()
    assert (result.stopped, result.orders_answered) == (None, 2_000)


def test_an_end_that_found_no_room_goes_when_there_is_some(session):
    engine = session.engine
    engine.deaf = lambda now_ns: len(engine.orders) == 100 and now_ns < START_NS + 150 * MS
    result = session.run()
    assert (result.stopped, result.orders_answered) == (None, 100)
    assert 150 * MS <= session.clock.now_ns - START_NS <= 152 * MS


def test_an_engine_that_takes_no_end_is_given_up_after_the_timeout(clock):
    session = GatewaySession(clock, timeout_s=1.0)

    def deaf(now_ns: int) -> bool:
        assert now_ns < START_NS + 3 * SECOND, "the session does not end"
        return len(session.engine.orders) == 100

    session.engine.deaf = deaf
    result = session.run()
    assert result.stopped == "the engine said nothing for 1 s"
    assert result.orders_answered == 100


def test_the_launcher_knows_a_gateway_before_its_first_order_is_sent(clock) -> None:
    """Else a gateway that takes the place of one killed in between takes the journal for that of another run."""
    session = GatewaySession(clock, recover=True)
    sent: list[int] = []
    session.gateway.on_progress = lambda progress: sent.append(len(session.engine.orders))
    session.run()
    assert sent[0] == 0


def test_nothing_is_reported_before_the_first_order_without_recovery(clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took up to 0.2 ms, by which the first order of every run was late."""
    session = GatewaySession(clock)
    reported: list[int] = []

    def send(batch: FrameBatch, first: int) -> int:
        reported.append(len(session.reporter.sent))
        return SimulatedEngine.send(session.engine, batch, first)

    monkeypatch.setattr(session.engine, "send", send)
    session.run()
    assert reported[:2] == [0, 0], "the hello to the engine, and the first order"
