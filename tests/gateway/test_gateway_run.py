"""Whole sessions of the gateway: on a simulated clock, to the nanosecond, and once between real threads.

Gateway ──orders──▶ SimulatedEngine          one thread, no wire; waiting moves the clock
        ◀─answers──
        ──records─▶ SimulatedReporter
"""

from __future__ import annotations

import threading
import time

import orjson
import pytest
import xxhash
from schedules import KINDS, source, written
from scripted_links import MS, SECOND, START_NS, TURN_NS, SimulatedEngine, SimulatedReporter

from exchange.checksum import StreamChecksum
from exchange.measurements import LogBuckets, Meter, Source
from exchange.messages import (
    Confirmation,
    End,
    Hello,
    Order,
    Quote,
    Rejection,
    Statistics,
    Timestamp,
    Trade,
    decode,
    encode,
)
from exchange.results import GatewayResult
from exchange.session import Disagreement, Terms
from exchange.settings import RunSettings
from gateway.seeded_orders import SeededOrders
from gateway.service import Gateway
from transports import registry
from transports.base import Link, PeerGone
from transports.frames import FrameBatch
from transports.outbox import frame_checksum

RUN = 0xFEED


class Session:
    """A gateway between a simulated engine and a simulated reporter."""

    def __init__(self, clock, **settings) -> None:
        self.clock = clock
        self.settings = RunSettings(**{"orders": 100, "orders_per_s": 1_000.0, "sampling_interval": 10, **settings})
        self.terms = Terms(RUN, self.settings.policy, self.settings.packing, self.settings.max_price)
        self.engine = SimulatedEngine(clock, self.terms)
        self.reporter = SimulatedReporter(clock)
        streams = (StreamChecksum(), StreamChecksum())
        self.gateway = Gateway(self.settings, RUN, self.engine, self.reporter, streams)

    def run(self) -> GatewayResult:
        return self.gateway.run()

    def records(self, kind: str) -> list[dict]:
        documents = [message.document for message in self.reporter.messages if isinstance(message, Statistics)]
        return [record["payload"] for record in map(orjson.loads, documents) if record["kind"] == kind]

    def completion(self, clock: str) -> LogBuckets:
        """All seconds of the run, the last order in."""
        whole = LogBuckets()
        for record in self.records("completion"):
            if record["clock"] == clock:
                whole.merge(LogBuckets.from_sparse(record))
        return whole

    def stamps(self, meter: Meter) -> dict[int, int]:
        """When, since the clock's start, by order."""
        stamps = [m for m in self.reporter.messages if isinstance(m, Timestamp) and m.meter == meter]
        return {stamp.correlation_id: stamp.time_ns - self.started_ns for stamp in stamps}

    @property
    def started_ns(self) -> int:
        """The first order's due time: the start of the run's clock."""
        due = [m for m in self.reporter.messages if isinstance(m, Timestamp) and m.meter == Meter.ORDER_DUE]
        period_ns = 1e9 / self.settings.orders_per_s
        return due[0].time_ns - int((due[0].correlation_id - 1) * period_ns)


@pytest.fixture
def session(clock):
    return Session(clock)


def stream_of(settings: RunSettings, count: int) -> bytes:
    return SeededOrders.of(settings).records(1, count)


def test_a_session_is_hello_orders_end(session):
    result = session.run()
    first, *between, last = session.engine.messages
    assert isinstance(first, Hello)
    assert (first.run, first.source) == (RUN, Source.GATEWAY)
    assert b"".join(map(encode, between)) == stream_of(session.settings, 100)
    assert last == End(100, xxhash.xxh64_intdigest(stream_of(session.settings, 100)), 0, 0)
    assert result.stopped is None


def test_the_result_counts_what_went_and_what_came(clock):
    session = Session(clock, orders=40)
    answers = {
        1: [Quote(bid=1, ask=2), Confirmation(1)],
        2: [Trade(1, 500, 5), Trade(2, 500, 5)],
        3: [Rejection(3, 2)],
    }
    session.engine.answers = lambda order: answers.get(order.id, [Confirmation(order.id)])
    result = session.run()
    assert (result.trades, result.confirmations, result.quotes, result.rejections) == (2, 38, 1, 1)
    assert (result.orders.messages, result.orders_answered, result.answers.messages) == (40, 40, 42)
    assert result.orders.checksum == xxhash.xxh64_hexdigest(stream_of(session.settings, 40))
    expected = b"".join(encode(answer) for i in range(1, 41) for answer in answers.get(i, [Confirmation(i)]))
    assert result.answers.checksum == xxhash.xxh64_hexdigest(expected)
    assert result.engine_said == {
        "sent": 42, "sent_checksum": int(result.answers.checksum, 16),
        "received": 40, "received_checksum": int(result.orders.checksum, 16),
    }  # fmt: skip
    assert (result.samples, result.junk_frames, result.stopped) == (4, 0, None)
    assert result.settings == session.settings.as_dict()


def test_every_order_goes_when_it_is_due(session):
    result = session.run()
    due = session.stamps(Meter.ORDER_DUE)
    assert due == {order_id: (order_id - 1) * MS for order_id in range(10, 101, 10)}
    handed = session.stamps(Meter.ORDER_HANDED_OVER)
    assert all(0 <= handed[order_id] - due[order_id] <= 2 * TURN_NS for order_id in due)
    assert session.completion("lag").max_ns <= 2 * TURN_NS
    assert result.duration_s == pytest.approx(0.0991, abs=0.0001)
    assert result.handing_over_s == pytest.approx(0.099, abs=2 * TURN_NS / 1e9)


def test_completion_is_from_handing_over_to_the_first_answer(session):
    session.engine.delay_ns = 300_000
    session.run()
    handed_over = session.completion("handed_over")
    assert handed_over.count == 100
    assert (handed_over.min_ns, handed_over.max_ns) == (300_000 + TURN_NS, 300_000 + TURN_NS)
    handed, answered = session.stamps(Meter.ORDER_HANDED_OVER), session.stamps(Meter.ORDER_ANSWERED)
    assert set(handed) == set(answered) == set(range(10, 101, 10))
    assert {answered[i] - handed[i] for i in handed} == {300_000 + TURN_NS}


def test_a_link_that_takes_nothing_for_a_while_delays_completion_from_due_time_alone(session):
    session.engine.deaf = lambda now_ns: START_NS + 30 * MS <= now_ns < START_NS + 60 * MS
    result = session.run()
    assert (result.orders_answered, result.stopped) == (100, None)
    due, lag, handed_over = map(session.completion, ("due", "lag", "handed_over"))
    assert 29 * MS <= lag.max_ns <= 32 * MS
    assert 29 * MS <= due.max_ns <= 32 * MS
    assert handed_over.max_ns <= 0.2 * MS
    assert due.sum_ns == lag.sum_ns + handed_over.sum_ns
    stamps = session.stamps(Meter.ORDER_DUE)
    assert stamps == {order_id: (order_id - 1) * MS for order_id in range(10, 101, 10)}
    late = session.stamps(Meter.ORDER_HANDED_OVER)
    assert late[100] - stamps[100] <= 2 * TURN_NS  # caught up


@pytest.mark.parametrize("arrivals", KINDS)
def test_under_every_schedule_a_stall_moves_no_due_time_and_delays_completion_from_it(clock, arrivals):
    session = Session(clock, arrivals=arrivals, sampling_interval=1)
    session.engine.deaf = lambda now_ns: START_NS + 10 * MS <= now_ns < START_NS + 50 * MS
    result = session.run()
    planned_ns = written(source(arrivals, orders=100, orders_per_s=1_000.0), 100).tolist()
    due, handed, answered = map(session.stamps, (Meter.ORDER_DUE, Meter.ORDER_HANDED_OVER, Meter.ORDER_ANSWERED))
    assert due == dict(enumerate(planned_ns, start=1))
    assert session.completion("due").sum_ns == sum(answered[i] - due[i] for i in due)
    assert session.completion("lag").sum_ns == sum(handed[i] - due[i] for i in due) > 0
    assert session.completion("handed_over").max_ns <= 0.2 * MS
    assert result.schedule_s == planned_ns[-1] / 1e9


@pytest.mark.parametrize("arrivals", KINDS)
def test_under_every_schedule_an_order_goes_when_it_is_due(clock, arrivals):
    session = Session(clock, arrivals=arrivals)
    session.run()
    assert session.completion("lag").max_ns <= 2 * TURN_NS


def test_at_rate_max_a_window_bounds_what_the_engine_has_not_answered(clock):
    session = Session(clock, orders=5_000, orders_per_s=None, window=64)
    result = session.run()
    assert (result.orders.messages, result.orders_answered) == (5_000, 5_000)
    assert session.engine.most_unanswered == 64
    assert {record["clock"] for record in session.records("completion")} == {"handed_over"}
    assert not any(isinstance(m, Timestamp) and m.meter == Meter.ORDER_DUE for m in session.reporter.messages)


def test_packs_go_to_the_engine_whole(clock):
    session = Session(clock, orders=50, packing=8)
    session.run()
    packs = [len(frame) // 10 for frame in session.engine.sent if frame[0] == 1]
    assert packs == [8] * 6 + [2]
    the_first_of_a_pack_waits_ns = 7 * MS
    due, handed_over = session.completion("due"), session.completion("handed_over")
    assert due.max_ns - handed_over.max_ns == pytest.approx(the_first_of_a_pack_waits_ns, abs=2 * TURN_NS)
    assert session.completion("lag").max_ns <= 2 * TURN_NS  # a pack may go once its last order is due


def test_the_clock_ends_a_run_of_some_duration(clock):
    session = Session(clock, orders=None, duration_s=0.05, orders_per_s=None, window=10)
    session.engine.delay_ns = MS
    result = session.run()
    assert result.stopped is None
    assert 400 <= result.orders.messages <= 510
    assert result.orders_answered == result.orders.messages == session.engine.end.sent
    assert 0.05 <= result.duration_s <= 0.06


def test_a_stop_in_the_middle_ends_in_band_as_a_partial_run(clock):
    session = Session(clock, orders=5_000)
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
    session = Session(clock, timeout_s=3600.0)
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
    session = Session(clock, orders=5_000, timeout_s=3600.0)
    session.engine.answers_end = False
    session.gateway.on_second = lambda sent, answered: session.gateway.stop("interrupted")
    assert session.run().stopped == "interrupted"
    assert clock.now_ns < START_NS + 5 * SECOND


def test_a_stopped_gateway_gives_a_silent_reporter_a_short_time_only(clock):
    session = Session(clock, orders=5_000, timeout_s=3600.0)
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


def test_an_end_that_nobody_asked_for_is_known_as_such_even_when_it_comes_with_the_last_order(clock):
    session = Session(clock, orders=2)

    def end_it(order: Order) -> list:
        early_ns = session.gateway._pacer.due_ns(2) + TURN_NS // 2 - clock.now_ns
        session.engine.say(encode(End(0, 0, 0, 0)), delay_ns=early_ns)
        return []

    session.engine.answers = end_it
    assert session.run().stopped == "the engine ended the session before the gateway did"


def test_the_result_counts_itself_among_the_statistics(session):
    result = session.run()
    told = len(session.reporter.messages) - 2  # hello and end
    assert session.records("result")[0]["statistics_sent"] == result.statistics_sent == told


def test_an_engine_that_falls_silent_ends_the_run_after_the_timeout(clock):
    session = Session(clock, orders=5_000, timeout_s=2.0)
    session.engine.answers = lambda order: [Confirmation(order.id)] if order.id <= 500 else []
    session.engine.deaf = lambda now_ns: now_ns > START_NS + SECOND
    result = session.run()
    assert result.stopped == "the engine said nothing for 2 s"
    assert (result.orders_answered, result.engine_said) == (500, None)
    assert clock.now_ns < START_NS + 4 * SECOND


def test_an_engine_that_never_answers_the_end_is_given_up_after_the_timeout(clock):
    session = Session(clock, timeout_s=1.0)
    session.engine.answers_end = False
    result = session.run()
    assert result.stopped == "the engine said nothing for 1 s"
    assert (result.orders_answered, result.engine_said) == (100, None)


@pytest.mark.parametrize("timeout_s", [2.5, 1.0, 0.5])
def test_a_slow_schedule_is_no_silence(clock, timeout_s):
    session = Session(clock, orders=4, orders_per_s=0.2, sampling_interval=1, timeout_s=timeout_s)
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
    session = Session(clock, timeout_s=0.5)
    session.engine.deaf = lambda now_ns: True
    with pytest.raises(PeerGone, match=r"no engine answered at scripted://engine within 0.5 s"):
        session.run()
    assert clock.now_ns < START_NS + SECOND


def test_an_engine_of_other_settings_is_refused_before_any_order(session):
    session.engine._terms = Terms(RUN, "exact-price", 1, 999)
    with pytest.raises(Disagreement, match=r"engine was started with .*exact-price, this end with price-time"):
        session.run()
    assert session.engine.orders == []


def test_junk_is_counted_and_does_not_disturb(session):
    session.engine.answers = lambda order: [Confirmation(order.id)]
    session.engine.say(b"\xffgarbage", delay_ns=20 * MS)
    session.engine.say(b"", delay_ns=20 * MS)
    result = session.run()
    assert (result.junk_frames, result.orders_answered, result.stopped) == (2, 100, None)


def test_a_reporter_that_does_not_confirm_is_said(clock):
    session = Session(clock, timeout_s=1.0)
    session.reporter.answers_end = False
    result = session.run()
    assert result.stopped == "the reporter did not confirm the statistics"
    assert result.orders_answered == 100


def test_the_reporter_gets_hello_records_result_end(session):
    result = session.run()
    first, *between, last = session.reporter.messages
    assert isinstance(first, Hello)
    assert result.statistics_sent == len(between)
    checksum = sum(frame_checksum(frame) for frame in session.reporter.sent[1:-1]) % 2**64
    assert last == End(len(between), checksum, 0, 0)
    record = orjson.loads(between[-1].document)
    assert (record["kind"], record["source"], record["run"]) == ("result", "gateway", f"{RUN:016x}")
    assert record["payload"]["orders_answered"] == 100


def test_seconds_are_told_as_they_pass_and_add_up(clock):
    session = Session(clock, orders=2_500)
    progress = []
    session.gateway.on_second = lambda *counts: progress.append(counts)
    session.run()
    traffic = session.records("traffic")
    assert [record["second"] for record in traffic] == [0, 1, 2]
    assert [record["orders_sent"] for record in traffic] == pytest.approx([1_000, 1_000, 500], abs=1)
    assert sum(record["orders_answered"] for record in traffic) == 2_500
    assert progress == [pytest.approx((1_000, 1_000), abs=1), pytest.approx((2_000, 2_000), abs=1)]
    assert [record["second"] for record in session.records("process")] == [0, 1, 2]
    per_second = [r["count"] for r in session.records("completion") if r["clock"] == "due" and not r["last_order"]]
    assert per_second == pytest.approx([1_000, 1_000, 499], abs=1)
    [last] = [r for r in session.records("completion") if r["clock"] == "due" and r["last_order"]]
    assert (last["count"], last["second"]) == (1, 2)


def test_a_growing_backlog_shows(clock):
    steady, growing = Session(clock, orders=1_000), Session(clock, orders=1_000)
    assert steady.run().backlog_growth == 0
    growing.engine.answers = lambda order: [Confirmation(order.id)] if order.id <= 750 else []
    growing.engine.answers_end = True
    result = growing.run()
    assert 245 <= result.backlog_growth <= 250


def test_later_trades_on_resting_orders_change_no_completion(clock):
    session = Session(clock, orders=60)
    session.engine.answers = lambda order: [Trade(max(order.id - 5, 1), 500, 1), Confirmation(order.id)]
    result = session.run()
    assert (result.trades, result.orders_answered) == (60, 60)
    assert session.completion("handed_over").count == 60


def test_closing_releases_both_links(session):
    session.gateway.close()
    assert session.engine.closed
    assert session.reporter.closed


def test_warming_up_leaves_no_trace(session):
    session.gateway.warm()
    assert (session.engine.sent, session.reporter.sent) == ([], [])
    assert session.run().orders_answered == 100


def test_the_engines_end_ends_the_session_at_once(session):
    session.run()
    assert session.clock.now_ns - START_NS <= 100 * MS


def test_a_gateway_that_cannot_send_its_end_goes_on_receiving(clock):
    session = Session(clock, orders=2_000, orders_per_s=None, timeout_s=0.1)
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
    session = Session(clock, timeout_s=1.0)

    def deaf(now_ns: int) -> bool:
        assert now_ns < START_NS + 3 * SECOND, "the session does not end"
        return len(session.engine.orders) == 100

    session.engine.deaf = deaf
    result = session.run()
    assert result.stopped == "the engine said nothing for 1 s"
    assert result.orders_answered == 100


def test_an_answer_is_counted_in_the_second_in_which_it_came(clock):
    session = Session(clock, orders=200, orders_per_s=100.0, sampling_interval=1)
    session.engine.delay_ns = 950 * MS
    session.run()
    seconds = [answered_ns // SECOND for answered_ns in session.stamps(Meter.ORDER_ANSWERED).values()]
    traffic = {record["second"]: record["orders_answered"] for record in session.records("traffic")}
    assert traffic == {second: seconds.count(second) for second in traffic}


def memory_engine(link: Link, terms: Terms, until_ns: int) -> None:
    """The least that a gateway takes for an engine: hello, a confirmation for each order, end."""
    orders, answers, batch, ended = [], [], FrameBatch(4_096), False
    while not ended and time.monotonic_ns() < until_ns:
        batch.clear()
        replies = []
        if not link.receive(batch):
            link.wait(until_ns)
        for frame in batch:
            match decode(frame):
                case Hello():
                    replies.append(encode(terms.hello(Source.ENGINE)))
                case Order(id=order_id):
                    orders.append(frame)
                    replies.append(encode(Confirmation(order_id)))
                    answers.append(replies[-1])
                case End():
                    sums = [xxhash.xxh64_intdigest(b"".join(part)) for part in (answers, orders)]
                    replies.append(encode(End(len(answers), sums[0], len(orders), sums[1])))
                    ended = True
        if replies:
            link.send(FrameBatch.of(*replies), 0)


def memory_reporter(link: Link, until_ns: int) -> None:
    """Takes everything, and answers the end."""
    batch = FrameBatch(4_096)
    while time.monotonic_ns() < until_ns:
        batch.clear()
        if not link.receive(batch):
            link.wait(until_ns)
        if any(isinstance(decode(frame), End) for frame in batch):
            link.send(FrameBatch.of(encode(End(0, 0, 0, 0))), 0)
            return


@pytest.mark.parametrize(
    "settings",
    [
        {"orders_per_s": 20_000.0, "orders": 3_000},
        {"orders_per_s": None, "orders": 20_000, "window": 500},
    ],
    ids=["schedule", "rate max"],
)
def test_between_threads_every_order_is_sent_and_answered(settings):
    settings = RunSettings(timeout_s=10.0, sampling_interval=1_000, **settings)
    terms = Terms(RUN, settings.policy, settings.packing, settings.max_price)
    until_ns = time.monotonic_ns() + 20 * SECOND
    urls = [f"memory://gateway-run-{settings.orders}-{role}" for role in ("engine", "reporter")]
    theirs = [registry.listen(url, "token") for url in urls]
    ours = [registry.connect(url, "token", until_ns) for url in urls]
    threads = [
        threading.Thread(target=memory_engine, args=(theirs[0], terms, until_ns)),
        threading.Thread(target=memory_reporter, args=(theirs[1], until_ns)),
    ]
    for thread in threads:
        thread.start()
    gateway = Gateway(settings, RUN, *ours, (StreamChecksum(), StreamChecksum()), of_thread=True)
    gateway.warm()
    result = gateway.run()
    for thread in threads:
        thread.join()
    gateway.close()
    for link in theirs:
        link.close()
    assert result.stopped is None
    assert (result.orders.messages, result.orders_answered) == (settings.orders, settings.orders)
    assert result.orders.checksum == xxhash.xxh64_hexdigest(stream_of(settings, settings.orders))
    assert result.engine_said == {
        "sent": settings.orders, "sent_checksum": int(result.answers.checksum, 16),
        "received": settings.orders, "received_checksum": int(result.orders.checksum, 16),
    }  # fmt: skip
    assert result.samples == settings.orders // 1_000
