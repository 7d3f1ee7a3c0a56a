"""The gateway's reports: samples, meters, and the counts of each second."""

from __future__ import annotations

import numpy as np
import orjson
import pytest
from scripted_links import MS, SECOND, START_NS, ScriptedLink

from exchange.measurements import LogBuckets, Meter, Source
from exchange.messages import Confirmation, Quote, Statistics, Throughput, Timestamp, decode, encode
from exchange.session import Reporting, Terms
from exchange.settings import RunSettings
from gateway.completion import Completion
from gateway.meters import Meters
from gateway.pacer import Pacer
from transports.frames import FrameBatch
from transports.outbox import Outbox


class ReportedMessages(ScriptedLink):
    """The messages that the reporter would get."""

    def __init__(self) -> None:
        super().__init__()
        self.outbox = Outbox(self)
        self.write_all = lambda: None

    def those(self, kind: type) -> list:
        self.write_all()
        self.outbox.flush()
        return [message for message in map(decode, self.sent) if isinstance(message, kind)]

    def stamps(self, meter: Meter) -> list[tuple[int, int]]:
        return [(stamp.correlation_id, stamp.time_ns) for stamp in self.those(Timestamp) if stamp.meter == meter]

    def payloads(self, kind: str) -> list[dict]:
        records = [orjson.loads(message.document) for message in self.those(Statistics)]
        return [record["payload"] for record in records if record["kind"] == kind]


class Office:
    """Meters at 1000 orders/s, with all that it looks at."""

    def __init__(self, sampling_interval: int = 10, orders_per_s: float | None = 1_000.0) -> None:
        self.drawer = ReportedMessages()
        terms = Terms(run=1, policy="price-time", packing=1, max_price=999)
        self.reporting = Reporting(self.drawer.outbox, terms, Source.GATEWAY)
        self.drawer.write_all = self.reporting.write_all
        self.pacer = Pacer.of(RunSettings(orders_per_s=orders_per_s, orders=10_000))
        self.pacer.start(START_NS)
        self.completion = Completion(self.pacer.scheduled, sampling_interval)
        self.meters = Meters(self.reporting, self.completion, self.pacer)
        self.meters.start(START_NS, START_NS)

    def send(self, count: int, now_ns: int) -> None:
        first = self.completion.newest + 1
        self.completion.handed_over(count, now_ns, self.pacer.due_times(first, count))

    def answer(self, *messages, now_ns: int) -> None:
        frames = FrameBatch.of(*map(encode, messages))
        _, sampled = self.completion.take(frames, 0, now_ns)
        if len(sampled):
            self.meters.note_answered(sampled)


@pytest.fixture
def office():
    return Office()


def confirmed(*order_ids: int) -> list[Confirmation]:
    return [Confirmation(order_id) for order_id in order_ids]


def test_samples_are_the_ids_that_the_interval_divides(office):
    for count in (9, 1, 25, 4, 1):
        office.send(count, START_NS + 40 * MS)
    office.answer(*confirmed(*range(1, 41)), now_ns=START_NS + 41 * MS)
    assert [order_id for order_id, _ in office.drawer.stamps(Meter.ORDER_HANDED_OVER)] == [10, 20, 30, 40]


def test_nothing_is_reported_between_hand_over_and_answer(office):
    """Whatever the gateway does then, it does late for the sampled order's answer."""
    office.send(20, START_NS)
    office.drawer.write_all()
    assert office.drawer.stamps(Meter.ORDER_HANDED_OVER) == office.drawer.those(Throughput) == []


def test_every_order_is_a_sample_where_the_interval_is_one():
    office = Office(sampling_interval=1)
    office.send(3, START_NS + MS)
    office.answer(*confirmed(3, 1, 2), now_ns=START_NS + 2 * MS)
    assert [order_id for order_id, _ in office.drawer.stamps(Meter.ORDER_HANDED_OVER)] == [3, 1, 2]
    assert [rate for rate in office.drawer.those(Throughput) if rate.meter == 1] == [Throughput(1, 3_000)]  # one batch


def test_a_sample_has_its_due_time_from_the_schedule(office):
    office.send(10, START_NS + 500 * MS)
    office.send(10, START_NS + 600 * MS)
    office.answer(*confirmed(10, 20), now_ns=START_NS + 700 * MS)
    assert office.drawer.stamps(Meter.ORDER_HANDED_OVER) == [(10, START_NS + 500 * MS), (20, START_NS + 600 * MS)]
    assert office.drawer.stamps(Meter.ORDER_DUE) == [(10, START_NS + 9 * MS), (20, START_NS + 19 * MS)]


def test_without_a_schedule_nothing_is_due():
    office = Office(orders_per_s=None)
    office.send(20, START_NS)
    office.answer(*confirmed(10, 20), now_ns=START_NS + MS)
    assert office.drawer.stamps(Meter.ORDER_DUE) == []
    assert len(office.drawer.stamps(Meter.ORDER_HANDED_OVER)) == 2


def test_the_rate_of_orders_sent_is_that_since_the_last_sample(office):
    office.send(9, START_NS)
    office.send(1, START_NS + 10 * MS)
    office.send(10, START_NS + 15 * MS)
    office.answer(*confirmed(9, 10, 20), now_ns=START_NS + 20 * MS)
    sent = [message for message in office.drawer.those(Throughput) if message.meter == Meter.GATEWAY_ORDERS_SENT]
    assert sent == [Throughput(1, 1_000), Throughput(1, 2_000)]


def test_an_answered_sample_is_stamped_and_counted(office):
    office.send(20, START_NS + MS)
    office.answer(Confirmation(20), Quote(bid=1, ask=2), Confirmation(11), Confirmation(10), now_ns=START_NS + 4 * MS)
    assert office.drawer.stamps(Meter.ORDER_ANSWERED) == [(20, START_NS + 4 * MS), (10, START_NS + 4 * MS)]
    assert office.meters.samples == 2
    received = [message for message in office.drawer.those(Throughput) if message.meter == 4]
    assert received == [Throughput(4, 4 * 250)]
    assert office.completion.received == 4


def test_a_second_tells_what_happened_within_it_alone(office):
    office.send(5, START_NS)
    office.answer(Confirmation(1), Quote(bid=1, ask=2), now_ns=START_NS + MS)
    office.meters.close_second()
    office.reporting.next_second(START_NS + SECOND)
    office.send(2, START_NS + SECOND)
    office.answer(*map(Confirmation, range(2, 7)), now_ns=START_NS + SECOND + MS)
    office.meters.close_second()
    office.reporting.next_second(START_NS + 2 * SECOND)
    office.meters.close_second()
    assert office.drawer.payloads("traffic") == [
        {"second": 0, "orders_sent": 5, "orders_answered": 1, "messages_received": 2},
        {"second": 1, "orders_sent": 2, "orders_answered": 5, "messages_received": 5},
        {"second": 2, "orders_sent": 0, "orders_answered": 0, "messages_received": 0},
    ]


def test_a_seconds_completions_are_told_once_for_each_clock(office):
    office.send(2, START_NS + 10 * MS)
    office.answer(Confirmation(1), Confirmation(2), now_ns=START_NS + 30 * MS)
    office.meters.close_second()
    office.meters.close_second()
    told = office.drawer.payloads("completion")
    assert [(record["second"], record["clock"], record["last_order"]) for record in told] == [
        (0, "handed_over", False),
        (0, "due", False),
        (0, "lag", False),
    ]
    buckets = [LogBuckets.from_sparse(record) for record in told]
    assert [b.count for b in buckets] == [2, 2, 2]
    assert [(b.min_ns // MS, b.max_ns // MS) for b in buckets] == [(20, 20), (29, 30), (9, 10)]
    assert [record["sum_ns"] // MS for record in told] == [40, 59, 19]


def test_a_second_without_an_answer_tells_of_no_completion(office):
    office.send(3, START_NS)
    office.meters.close_second()
    assert office.drawer.payloads("completion") == []


def test_the_last_order_has_a_record_of_its_own(office):
    office.completion.last_id = 3
    office.send(3, START_NS)
    office.answer(*map(Confirmation, (1, 2, 3)), now_ns=START_NS + MS)
    office.meters.close()
    told = [record for record in office.drawer.payloads("completion") if record["clock"] == "handed_over"]
    assert [(record["last_order"], record["count"]) for record in told] == [(False, 2), (True, 1)]


def test_seconds_add_up_to_the_run(office):
    generator = np.random.default_rng(4)
    office.completion.last_id = 10**6
    for second in range(5):
        office.send(int(generator.integers(1, 50)), START_NS + second * SECOND)
        waiting = range(office.completion.answered + 1, office.completion.newest)
        office.answer(*map(Confirmation, waiting), now_ns=START_NS + second * SECOND + MS)
        office.meters.close_second()
        office.reporting.next_second(START_NS + (second + 1) * SECOND)
    traffic = office.drawer.payloads("traffic")
    completion = [record for record in office.drawer.payloads("completion") if record["clock"] == "due"]
    assert sum(second["orders_sent"] for second in traffic) == office.completion.newest
    assert sum(second["orders_answered"] for second in traffic) == office.completion.answered
    assert [second["orders_answered"] for second in traffic] == [record["count"] for record in completion]
