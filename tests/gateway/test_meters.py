"""The gateway's reports: samples, meters, and the counts of each second."""

from __future__ import annotations

import numpy as np
import orjson
import pytest
from scripted_links import MS, SECOND, START_NS, ScriptedLink

from exchange.measurements import LogBuckets
from exchange.messages import Confirmation, Quote, Statistics, Throughput, Timestamp, decode, encode
from exchange.meters import Meter, Source
from exchange.session import Reporting, Terms
from exchange.settings import RunSettings
from gateway.completion import Completion
from gateway.meters import Meters
from gateway.pacer import Pacer
from transports.frames import FrameBatch
from transports.outbox import Outbox


class FakeReporter(ScriptedLink):
    """A reporter that decodes what a gateway reports to it."""

    def __init__(self) -> None:
        super().__init__()
        self._outbox = Outbox(self)
        terms = Terms(run=1, policy="price-time", packing=1, max_price=999)
        self.reporting = Reporting(self._outbox, terms, Source.GATEWAY)

    def messages_of(self, kind: type) -> list:
        """Return the messages of this type so far."""
        self.reporting.write_all()
        self._outbox.flush()
        messages = [decode(frame) for frame in self.sent]
        return [message for message in messages if isinstance(message, kind)]

    def stamps(self, meter: Meter) -> list[tuple[int, int]]:
        """Return the order id and the time of each stamp of this meter."""
        stamps = [stamp for stamp in self.messages_of(Timestamp) if stamp.meter == meter]
        return [(stamp.correlation_id, stamp.time_ns) for stamp in stamps]

    def rates(self, meter: Meter) -> list[int]:
        """Return the rates that this meter reported, in messages/s."""
        return [rate.rate_per_s for rate in self.messages_of(Throughput) if rate.meter == meter]

    def payloads(self, kind: str) -> list[dict]:
        records = [orjson.loads(message.document) for message in self.messages_of(Statistics)]
        return [record["payload"] for record in records if record["kind"] == kind]


class MeteredGateway:
    """The meters of a gateway at 1000 orders/s, with its pacer, its completion times and a reporter."""

    def __init__(self, sampling_interval: int = 10, orders_per_s: float | None = 1_000.0) -> None:
        self.reporter = FakeReporter()
        self.reporting = self.reporter.reporting
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
def gateway() -> MeteredGateway:
    return MeteredGateway()


def confirmations(*order_ids: int) -> list[Confirmation]:
    return [Confirmation(order_id) for order_id in order_ids]


def test_samples_are_the_ids_that_are_multiples_of_the_interval(gateway):
    for count in (9, 1, 25, 4, 1):
        gateway.send(count, START_NS + 40 * MS)
    gateway.answer(*confirmations(*range(1, 41)), now_ns=START_NS + 41 * MS)
    assert [order_id for order_id, _ in gateway.reporter.stamps(Meter.ORDER_HANDED_OVER)] == [10, 20, 30, 40]


def test_nothing_is_reported_between_hand_over_and_answer(gateway):
    """A report at that moment would delay the reading of the sampled order's answer."""
    gateway.send(20, START_NS)
    gateway.reporting.write_all()
    assert gateway.reporter.stamps(Meter.ORDER_HANDED_OVER) == []
    assert gateway.reporter.messages_of(Throughput) == []


def test_with_an_interval_of_one_every_order_is_a_sample():
    gateway = MeteredGateway(sampling_interval=1)
    gateway.send(3, START_NS + MS)
    gateway.answer(*confirmations(3, 1, 2), now_ns=START_NS + 2 * MS)
    assert [order_id for order_id, _ in gateway.reporter.stamps(Meter.ORDER_HANDED_OVER)] == [3, 1, 2]
    assert gateway.reporter.rates(Meter.GATEWAY_ORDERS_SENT) == [3_000], "one rate for the batch"


def test_a_sample_has_its_due_time_from_the_schedule(gateway):
    gateway.send(10, START_NS + 500 * MS)
    gateway.send(10, START_NS + 600 * MS)
    gateway.answer(*confirmations(10, 20), now_ns=START_NS + 700 * MS)
    assert gateway.reporter.stamps(Meter.ORDER_HANDED_OVER) == [(10, START_NS + 500 * MS), (20, START_NS + 600 * MS)]
    assert gateway.reporter.stamps(Meter.ORDER_DUE) == [(10, START_NS + 9 * MS), (20, START_NS + 19 * MS)]


def test_without_a_schedule_nothing_is_due():
    gateway = MeteredGateway(orders_per_s=None)
    gateway.send(20, START_NS)
    gateway.answer(*confirmations(10, 20), now_ns=START_NS + MS)
    assert gateway.reporter.stamps(Meter.ORDER_DUE) == []
    assert len(gateway.reporter.stamps(Meter.ORDER_HANDED_OVER)) == 2


def test_the_rate_of_orders_sent_counts_from_the_last_sample(gateway):
    gateway.send(9, START_NS)
    gateway.send(1, START_NS + 10 * MS)
    gateway.send(10, START_NS + 15 * MS)
    gateway.answer(*confirmations(9, 10, 20), now_ns=START_NS + 20 * MS)
    assert gateway.reporter.rates(Meter.GATEWAY_ORDERS_SENT) == [1_000, 2_000]


def test_an_answered_sample_is_stamped_and_counted(gateway):
    gateway.send(20, START_NS + MS)
    gateway.answer(Confirmation(20), Quote(bid=1, ask=2), Confirmation(11), Confirmation(10), now_ns=START_NS + 4 * MS)
    assert gateway.reporter.stamps(Meter.ORDER_ANSWERED) == [(20, START_NS + 4 * MS), (10, START_NS + 4 * MS)]
    assert gateway.meters.samples == 2
    assert gateway.reporter.rates(Meter.GATEWAY_MESSAGES_RECEIVED) == [1_000], "four messages in 4 ms"
    assert gateway.completion.received == 4


def test_a_second_s_record_has_only_that_second_s_counts(gateway):
    gateway.send(5, START_NS)
    gateway.answer(Confirmation(1), Quote(bid=1, ask=2), now_ns=START_NS + MS)
    gateway.meters.close_second()
    gateway.reporting.next_second(START_NS + SECOND)
    gateway.send(2, START_NS + SECOND)
    gateway.answer(*map(Confirmation, range(2, 7)), now_ns=START_NS + SECOND + MS)
    gateway.meters.close_second()
    gateway.reporting.next_second(START_NS + 2 * SECOND)
    gateway.meters.close_second()
    assert gateway.reporter.payloads("traffic") == [
        {"second": 0, "orders_sent": 5, "orders_answered": 1, "messages_received": 2},
        {"second": 1, "orders_sent": 2, "orders_answered": 5, "messages_received": 5},
        {"second": 2, "orders_sent": 0, "orders_answered": 0, "messages_received": 0},
    ]


def test_a_second_s_completion_times_are_reported_once_by_clock(gateway):
    gateway.send(2, START_NS + 10 * MS)
    gateway.answer(Confirmation(1), Confirmation(2), now_ns=START_NS + 30 * MS)
    gateway.meters.close_second()
    gateway.meters.close_second()
    records = gateway.reporter.payloads("completion")
    assert [record["clock"] for record in records] == ["handed_over", "due", "lag"]
    for record in records:
        assert record["second"] == 0
        assert record["last_order"] is False
    handed_over, due, lag = [LogBuckets.from_sparse(record) for record in records]
    assert handed_over.count == due.count == lag.count == 2
    assert (handed_over.min_ns, handed_over.max_ns, handed_over.sum_ns) == (20 * MS, 20 * MS, 40 * MS)
    assert (due.min_ns, due.max_ns, due.sum_ns) == (29 * MS, 30 * MS, 59 * MS)
    assert (lag.min_ns, lag.max_ns, lag.sum_ns) == (9 * MS, 10 * MS, 19 * MS)


def test_a_second_without_answers_has_no_completion_record(gateway):
    gateway.send(3, START_NS)
    gateway.meters.close_second()
    assert gateway.reporter.payloads("completion") == []


def test_the_last_order_has_a_separate_completion_record(gateway):
    gateway.completion.last_id = 3
    gateway.send(3, START_NS)
    gateway.answer(*map(Confirmation, (1, 2, 3)), now_ns=START_NS + MS)
    gateway.meters.close()
    records = [record for record in gateway.reporter.payloads("completion") if record["clock"] == "handed_over"]
    assert [(record["last_order"], record["count"]) for record in records] == [(False, 2), (True, 1)]


def test_the_seconds_add_up_to_the_run_s_counts(gateway):
    generator = np.random.default_rng(4)
    gateway.completion.last_id = 10**6  # so that no order is the run's last, which has a separate record
    for second in range(5):
        gateway.send(int(generator.integers(1, 50)), START_NS + second * SECOND)
        answered_now = range(gateway.completion.answered + 1, gateway.completion.newest)  # not the newest order
        gateway.answer(*map(Confirmation, answered_now), now_ns=START_NS + second * SECOND + MS)
        gateway.meters.close_second()
        gateway.reporting.next_second(START_NS + (second + 1) * SECOND)
    traffic = gateway.reporter.payloads("traffic")
    completion = [record for record in gateway.reporter.payloads("completion") if record["clock"] == "due"]
    assert sum(second["orders_sent"] for second in traffic) == gateway.completion.newest
    assert sum(second["orders_answered"] for second in traffic) == gateway.completion.answered
    assert [second["orders_answered"] for second in traffic] == [record["count"] for record in completion]
