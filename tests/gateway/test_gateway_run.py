"""Whole sessions of the gateway on a simulated clock: what the gateway sends, counts and reports."""

from __future__ import annotations

from itertools import chain

import orjson
import pytest
import xxhash
from gateway_session import RUN, GatewaySession, stream_of
from schedules import KINDS, source, written
from scripted_links import MS, SECOND, START_NS, TURN_NS

from exchange.messages import (
    LAYOUTS,
    Confirmation,
    End,
    Hello,
    Order,
    Quote,
    Rejection,
    Trade,
    encode,
)
from exchange.meters import Meter, Source
from gateway.seeded_orders import ORDER_BYTES
from transports.outbox import frame_checksum


def test_a_session_consists_of_hello_orders_and_end(session):
    result = session.run()
    first, *between, last = session.engine.messages
    assert isinstance(first, Hello)
    assert first.run == RUN
    assert first.source == Source.GATEWAY
    assert b"".join(map(encode, between)) == stream_of(session.settings, 100)
    checksum = xxhash.xxh64_intdigest(stream_of(session.settings, 100))
    assert last == End(sent=100, sent_checksum=checksum, received=0, received_checksum=0)
    assert result.stopped is None


def test_the_result_counts_orders_and_answers_by_type(clock):
    session = GatewaySession(clock, orders=40)
    answers = {order_id: [Confirmation(order_id)] for order_id in range(1, 41)}
    answers[1] = [Quote(bid=1, ask=2), Confirmation(1)]
    answers[2] = [Trade(1, 500, 5), Trade(2, 500, 5)]
    answers[3] = [Rejection(3, 2)]
    session.engine.answers = lambda order: answers[order.id]
    result = session.run()
    assert result.trades == 2
    assert result.confirmations == 38
    assert result.quotes == 1
    assert result.rejections == 1
    assert result.orders.messages == 40
    assert result.orders_answered == 40
    assert result.answers.messages == 42
    assert result.orders.checksum == xxhash.xxh64_hexdigest(stream_of(session.settings, 40))
    all_answers = [encode(answer) for answer in chain(*answers.values())]
    assert result.answers.checksum == xxhash.xxh64_hexdigest(b"".join(all_answers))
    assert result.engine_said == {
        "sent": 42,
        "sent_checksum": int(result.answers.checksum, 16),
        "received": 40,
        "received_checksum": int(result.orders.checksum, 16),
    }
    assert result.samples == 4
    assert result.junk_frames == 0
    assert result.stopped is None
    assert result.settings == session.settings.as_dict()


def test_every_order_is_sent_when_it_is_due(session):
    result = session.run()
    due = session.stamps(Meter.ORDER_DUE)
    assert due == {order_id: (order_id - 1) * MS for order_id in range(10, 101, 10)}
    handed = session.stamps(Meter.ORDER_HANDED_OVER)
    for order_id, due_ns in due.items():
        assert due_ns <= handed[order_id] <= due_ns + 2 * TURN_NS
    assert session.completion("lag").max_ns <= 2 * TURN_NS
    assert result.duration_s == pytest.approx(0.0991, abs=0.0001)
    assert result.handing_over_s == pytest.approx(0.099, abs=2 * TURN_NS / 1e9)


def test_completion_counts_from_hand_over_to_the_first_answer(session):
    session.engine.delay_ns = 300_000
    session.run()
    handed_over = session.completion("handed_over")
    assert handed_over.count == 100
    assert handed_over.min_ns == 300_000 + TURN_NS
    assert handed_over.max_ns == 300_000 + TURN_NS
    handed = session.stamps(Meter.ORDER_HANDED_OVER)
    answered = session.stamps(Meter.ORDER_ANSWERED)
    assert set(handed) == set(answered) == set(range(10, 101, 10))
    for order_id, handed_ns in handed.items():
        assert answered[order_id] - handed_ns == 300_000 + TURN_NS


def test_a_blocked_link_delays_only_completion_from_due_time(session):
    session.engine.deaf = lambda now_ns: START_NS + 30 * MS <= now_ns < START_NS + 60 * MS
    result = session.run()
    assert result.orders_answered == 100
    assert result.stopped is None
    due = session.completion("due")
    lag = session.completion("lag")
    handed_over = session.completion("handed_over")
    assert 29 * MS <= lag.max_ns <= 32 * MS
    assert 29 * MS <= due.max_ns <= 32 * MS
    assert handed_over.max_ns <= 0.2 * MS
    assert due.sum_ns == lag.sum_ns + handed_over.sum_ns
    due_stamps = session.stamps(Meter.ORDER_DUE)
    assert due_stamps == {order_id: (order_id - 1) * MS for order_id in range(10, 101, 10)}
    handed_stamps = session.stamps(Meter.ORDER_HANDED_OVER)
    assert handed_stamps[100] - due_stamps[100] <= 2 * TURN_NS, "the gateway has caught up"


@pytest.mark.parametrize("arrivals", KINDS)
def test_a_stall_moves_no_due_time_under_any_schedule(clock, arrivals):
    session = GatewaySession(clock, arrivals=arrivals, sampling_interval=1)
    session.engine.deaf = lambda now_ns: START_NS + 10 * MS <= now_ns < START_NS + 50 * MS
    result = session.run()
    planned_ns = written(source(arrivals, orders=100, orders_per_s=1_000.0), 100).tolist()
    due = session.stamps(Meter.ORDER_DUE)
    handed = session.stamps(Meter.ORDER_HANDED_OVER)
    answered = session.stamps(Meter.ORDER_ANSWERED)
    assert due == dict(enumerate(planned_ns, start=1))
    assert session.completion("due").sum_ns == sum(answered[i] - due[i] for i in due)
    assert session.completion("lag").sum_ns == sum(handed[i] - due[i] for i in due)
    assert session.completion("lag").sum_ns > 0
    assert session.completion("handed_over").max_ns <= 0.2 * MS
    assert result.schedule_s == planned_ns[-1] / 1e9


@pytest.mark.parametrize("arrivals", KINDS)
def test_orders_are_sent_when_due_under_every_schedule(clock, arrivals):
    session = GatewaySession(clock, arrivals=arrivals)
    session.run()
    assert session.completion("lag").max_ns <= 2 * TURN_NS


def test_at_rate_max_the_window_bounds_the_unanswered_orders(clock):
    session = GatewaySession(clock, orders=5_000, orders_per_s=None, window=64)
    result = session.run()
    assert result.orders.messages == 5_000
    assert result.orders_answered == 5_000
    assert session.engine.most_unanswered == 64
    assert {record["clock"] for record in session.records("completion")} == {"handed_over"}
    assert session.stamps_sent(Meter.ORDER_DUE) == []


def test_orders_are_sent_in_whole_packs(clock):
    session = GatewaySession(clock, orders=50, packing=8)
    session.run()
    order_frames = [frame for frame in session.engine.sent if frame[0] == LAYOUTS[Order].code]
    assert [len(frame) // ORDER_BYTES for frame in order_frames] == [8] * 6 + [2]
    first_order_of_a_pack_waits_ns = 7 * MS
    due = session.completion("due")
    handed_over = session.completion("handed_over")
    assert due.max_ns - handed_over.max_ns == pytest.approx(first_order_of_a_pack_waits_ns, abs=2 * TURN_NS)
    assert session.completion("lag").max_ns <= 2 * TURN_NS  # a pack may go once its last order is due


def test_the_result_counts_itself_among_the_statistics(session):
    result = session.run()
    statistics_sent = len(session.reporter.messages) - 2  # without hello and end
    assert result.statistics_sent == statistics_sent
    assert session.records("result")[0]["statistics_sent"] == statistics_sent


def test_junk_is_counted_and_does_not_disturb_the_session(session):
    session.engine.say(b"\xffgarbage", delay_ns=20 * MS)
    session.engine.say(b"", delay_ns=20 * MS)
    result = session.run()
    assert result.junk_frames == 1, "an empty frame is no junk"
    assert result.orders_answered == 100
    assert result.stopped is None


def test_the_reporter_gets_hello_records_result_and_end(session):
    result = session.run()
    first, *between, last = session.reporter.messages
    assert isinstance(first, Hello)
    assert result.statistics_sent == len(between)
    checksum = sum(frame_checksum(frame) for frame in session.reporter.sent[1:-1]) % 2**64
    assert last == End(len(between), checksum, 0, 0)
    record = orjson.loads(between[-1].document)
    assert record["kind"] == "result"
    assert record["source"] == "gateway"
    assert record["run"] == f"{RUN:016x}"
    assert record["payload"]["orders_answered"] == 100


def test_each_second_is_reported_and_all_add_up(clock):
    session = GatewaySession(clock, orders=2_500)
    progress = []
    session.gateway.on_second = lambda *counts: progress.append(counts)
    session.run()
    traffic = session.records("traffic")
    assert [record["second"] for record in traffic] == [0, 1, 2]
    assert [record["orders_sent"] for record in traffic] == pytest.approx([1_000, 1_000, 500], abs=1)
    assert sum(record["orders_answered"] for record in traffic) == 2_500
    assert progress == [pytest.approx((1_000, 1_000), abs=1), pytest.approx((2_000, 2_000), abs=1)]
    assert [record["second"] for record in session.records("process")] == [0, 1, 2]
    from_due_time = [record for record in session.records("completion") if record["clock"] == "due"]
    counts = [record["count"] for record in from_due_time if not record["last_order"]]
    assert counts == pytest.approx([1_000, 1_000, 499], abs=1)
    [last] = [record for record in from_due_time if record["last_order"]]
    assert last["count"] == 1
    assert last["second"] == 2


def test_the_result_has_the_growth_of_the_backlog(clock):
    steady = GatewaySession(clock, orders=1_000)
    assert steady.run().backlog_growth == 0
    growing = GatewaySession(clock, orders=1_000)
    growing.engine.answers = lambda order: [Confirmation(order.id)] if order.id <= 750 else []
    result = growing.run()
    assert 245 <= result.backlog_growth <= 250


def test_later_trades_on_resting_orders_change_no_completion(clock):
    session = GatewaySession(clock, orders=60)
    session.engine.answers = lambda order: [Trade(max(order.id - 5, 1), 500, 1), Confirmation(order.id)]
    result = session.run()
    assert result.trades == 60
    assert result.orders_answered == 60
    assert session.completion("handed_over").count == 60


def test_closing_a_gateway_closes_both_links(session):
    session.gateway.close()
    assert session.engine.closed
    assert session.reporter.closed


def test_warming_up_sends_nothing(session):
    session.gateway.warm()
    assert session.engine.sent == []
    assert session.reporter.sent == []
    assert session.run().orders_answered == 100


def test_an_answer_is_counted_in_the_second_of_its_arrival(clock):
    session = GatewaySession(clock, orders=200, orders_per_s=100.0, sampling_interval=1)
    session.engine.delay_ns = 950 * MS
    session.run()
    seconds = [answered_ns // SECOND for answered_ns in session.stamps(Meter.ORDER_ANSWERED).values()]
    traffic = {record["second"]: record["orders_answered"] for record in session.records("traffic")}
    assert traffic == {second: seconds.count(second) for second in traffic}


def test_a_gateway_that_spins_sleeps_until_shortly_before_each_due_time(clock):
    session = GatewaySession(clock, orders=20, pace="spin:300")
    assert session.run().stopped is None
    due = session.stamps(Meter.ORDER_DUE)
    handed = session.stamps(Meter.ORDER_HANDED_OVER)
    for order_id, due_ns in due.items():
        assert due_ns <= handed[order_id] <= due_ns + 2 * TURN_NS
    sleeps_before_due_times = [until_ns for until_ns, _ in session.engine.waits if (until_ns - START_NS) % MS > MS // 2]
    assert len(sleeps_before_due_times) >= 18
    for until_ns in sleeps_before_due_times:
        assert (until_ns - session.started_ns) % MS == MS - 300_000
