"""Completion times: the compiled pairing of answers with orders, against a dictionary and lists."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.measurements import BUCKETS, CLOCKS, LogBuckets
from exchange.messages import (
    LAYOUTS,
    Cancel,
    Cancelled,
    Confirmation,
    End,
    Hello,
    MalformedMessage,
    Order,
    Quote,
    Rejection,
    Statistics,
    Trade,
    decode_all,
    encode,
)
from gateway.completion import Completion
from transports.frames import FrameBatch

ANSWERS = (Trade, Confirmation, Quote, Rejection, Cancelled)
FOREIGN = [
    b"", b"\x00", b"\xff\xff", b"\x03\x01", encode(Order(1, 1, 500, 1)), encode(Cancel(1)), encode(End(1, 2, 3, 4)),
    encode(Hello(1, 2, 3, 4, 5, 6, 7, 8)), encode(Statistics(b"{}")),
    encode(Confirmation(1)) + b"\x02", encode(Trade(1, 2, 3)) + encode(Order(1, 1, 500, 1)),
    encode(Confirmation(1)) + b"\x00",
]  # fmt: skip

START_NS = 1_000_000


class Model:
    """What a completion is, in the plainest words: a dictionary of who waits, and a list of times for each clock."""

    def __init__(self, period_ns: float, sampling_interval: int, last_id: int) -> None:
        self.period_ns, self.interval, self.last_id = period_ns, sampling_interval, last_id
        self.newest = self.answered = 0
        self.waiting: dict[int, int] = {}
        self.by_type: Counter[int] = Counter()
        self.times_ns: dict[tuple[bool, str], list[int]] = defaultdict(list)

    def handed_over(self, count: int, now_ns: int) -> None:
        self.waiting.update(dict.fromkeys(range(self.newest + 1, self.newest + count + 1), now_ns))
        self.newest += count

    def take(self, frames: list[bytes], first: int, now_ns: int) -> tuple[int, list[int]]:
        sampled = []
        for index in range(first, len(frames)):
            messages = answers_in(frames[index])
            if not messages:
                return index, sampled
            for message in messages:
                self.by_type[LAYOUTS[type(message)].code] += 1
                if isinstance(message, Trade | Confirmation | Rejection) and message.id in self.waiting:
                    self._answer(message.id, now_ns)
                    sampled += [message.id] * (message.id % self.interval == 0)
        return len(frames), sampled

    def _answer(self, order_id: int, now_ns: int) -> None:
        handed_ns = self.waiting.pop(order_id)
        last = order_id == self.last_id
        self.answered += 1
        self.times_ns[last, "handed_over"].append(now_ns - handed_ns)
        if self.period_ns:
            due_ns = int(due_times(order_id, 1, self.period_ns)[0])
            self.times_ns[last, "due"].append(now_ns - due_ns)
            self.times_ns[last, "lag"].append(max(handed_ns - due_ns, 0))

    def close_second(self, last: bool) -> list[tuple[str, list[int]]]:
        return [(clock, times) for clock in CLOCKS if (times := self.times_ns.pop((last, clock), []))]


def due_times(first_id: int, count: int, period_ns: float) -> np.ndarray | None:
    """From START_NS on; None without a schedule."""
    earlier = np.arange(first_id - 1, first_id - 1 + count)
    return START_NS + (earlier * period_ns).astype(np.int64) if period_ns else None


def answers_in(frame: bytes) -> list:
    """The answers in a frame; none where it is foreign."""
    try:
        messages = list(decode_all(frame))
    except MalformedMessage:
        return []
    return messages if all(isinstance(message, ANSWERS) for message in messages) else []


def assert_holds(buckets: LogBuckets, times_ns: list[int]) -> None:
    """Bucket by bucket, in exact integers: the floor of 128 log2(v) is the length of v^128 in bits, less one."""
    expected = Counter((max(time_ns, 1) ** 128).bit_length() - 1 for time_ns in times_ns)
    held = {int(bucket): int(buckets.counts[bucket]) for bucket in np.flatnonzero(buckets.counts)}
    assert held == expected
    assert (buckets.sum_ns, buckets.min_ns, buckets.max_ns) == (sum(times_ns), min(times_ns), max(times_ns))


SMALL_IDS = st.integers(0, 120)
ALIKE_IDS = st.builds(lambda small, bit: small + 2**bit, SMALL_IDS, st.sampled_from([7, 8, 16, 24, 31]))
IDS = st.one_of(SMALL_IDS, SMALL_IDS, ALIKE_IDS, st.just(2**32 - 1))
VALUES = st.integers(0, 2**16 - 1)
ANSWER = st.one_of(
    st.builds(Trade, IDS, VALUES, VALUES),
    st.builds(Confirmation, IDS),
    st.builds(Rejection, IDS, st.integers(1, 6)),
    st.builds(Quote, bid=VALUES, ask=VALUES),
    st.builds(Cancelled, IDS, VALUES),
)
FRAME = st.lists(ANSWER, min_size=1, max_size=6).map(lambda pack: b"".join(map(encode, pack)))
STEP = st.one_of(
    st.tuples(st.just("hand over"), st.integers(1, 40)),
    st.tuples(st.just("answer"), st.lists(FRAME | st.sampled_from(FOREIGN), max_size=8)),
    st.tuples(st.just("close second"), st.booleans()),
)


@given(
    steps=st.lists(STEP, max_size=25),
    gaps_ns=st.lists(st.integers(400, 10**12), min_size=1, max_size=25),
    period_ns=st.sampled_from([0.0, 1.0, 7.3]),
    sampling_interval=st.integers(1, 10),
    last_id=st.integers(0, 120),
)
def test_whatever_comes_is_counted_as_the_model_counts_it(steps, gaps_ns, period_ns, sampling_interval, last_id):
    model = Model(period_ns, sampling_interval, last_id)
    completion = Completion(scheduled=period_ns > 0, sampling_interval=sampling_interval, capacity=4)
    completion.last_id = last_id
    now_ns = START_NS
    for number, (step, what) in enumerate([*steps, ("close second", False), ("close second", True)]):
        now_ns += gaps_ns[number % len(gaps_ns)]
        if step == "hand over":
            model.handed_over(what, now_ns)
            completion.handed_over(what, now_ns, due_times(completion.newest + 1, what, period_ns))
        elif step == "answer":
            assert_reads_alike(completion, model, what, now_ns)
        else:
            closed, expected = completion.close_second(last=what), model.close_second(what)
            assert [clock for clock, _ in closed] == [clock for clock, _ in expected]
            for (_, buckets), (_, times_ns) in zip(closed, expected, strict=True):
                assert_holds(buckets, times_ns)
        assert (completion.newest, completion.answered) == (model.newest, model.answered)
        assert {int(kind): completion.by_type[kind] for kind in np.flatnonzero(completion.by_type)} == model.by_type


def assert_reads_alike(completion: Completion, model: Model, frames: list[bytes], now_ns: int) -> None:
    """Both take the batch, frame after foreign frame, and say the same."""
    batch, first = FrameBatch.of(*frames), 0
    while first < len(frames):
        stopped_at, sampled = completion.take(batch, first, now_ns)
        assert (stopped_at, sampled.tolist()) == model.take(frames, first, now_ns)
        first = stopped_at + 1


def taken(completion: Completion, *messages, now_ns: int) -> tuple[int, list[int]]:
    batch = FrameBatch.of(*(m if isinstance(m, bytes) else encode(m) for m in messages))
    frame, sampled = completion.take(batch, 0, now_ns)
    return frame, sampled.tolist()


def only_buckets(completion: Completion, last: bool = False) -> LogBuckets:
    [(clock, buckets)] = completion.close_second(last)
    assert clock == "handed_over"
    return buckets


def test_the_first_answer_alone_counts():
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(1, 1_000)
    assert taken(completion, Trade(1, 500, 3), now_ns=1_500) == (1, [1])
    assert taken(completion, Trade(1, 500, 2), Confirmation(1), now_ns=9_000) == (2, [])
    buckets = only_buckets(completion)
    assert (completion.answered, buckets.count, buckets.max_ns) == (1, 1, 500)
    assert completion.by_type.sum() == 3


@pytest.mark.parametrize("answer", [Trade(1, 500, 1), Confirmation(1), Rejection(1, 2)])
def test_trade_confirmation_and_rejection_answer_an_order(answer):
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(1, 1_000)
    taken(completion, answer, now_ns=2_000)
    assert completion.answered == 1


@pytest.mark.parametrize("message", [Quote(bid=1, ask=0), Cancelled(1, 5), Confirmation(2), Confirmation(0)])
def test_a_quote_a_cancellation_and_an_unknown_id_answer_none(message):
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(1, 1_000)
    assert taken(completion, message, now_ns=2_000) == (1, [])
    assert completion.answered == 0
    assert completion.by_type[LAYOUTS[type(message)].code] == 1


def test_answers_pair_by_id_in_any_order():
    completion = Completion(scheduled=False, sampling_interval=2)
    for order_id in range(1, 6):
        completion.handed_over(1, order_id * 1_000)
    assert taken(completion, Confirmation(4), Confirmation(2), Confirmation(5), now_ns=10_000) == (3, [4, 2])
    assert_holds(only_buckets(completion), [6_000, 8_000, 5_000])


@pytest.mark.parametrize("foreign", FOREIGN, ids=bytes.hex)
def test_taking_stops_at_a_foreign_frame_and_leaves_it_uncounted(foreign):
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(3, 1_000)
    frames = (encode(Confirmation(2)), foreign, encode(Confirmation(3)))
    assert taken(completion, *frames, now_ns=2_000) == (1, [2])
    assert (completion.answered, completion.by_type.sum()) == (1, 1)
    assert completion.take(FrameBatch.of(*frames), 2, 2_000)[0] == 3
    assert completion.answered == 2


def test_orders_without_an_answer_outgrow_the_table_and_none_is_lost():
    completion = Completion(scheduled=False, sampling_interval=10**6, capacity=8)
    handed = {order_id: 1_000 + order_id for order_id in range(1, 2_001)}
    for now_ns in handed.values():
        completion.handed_over(1, now_ns)
    now_ns = 50_000
    for order_id in sorted(handed, key=lambda i: i * 7919 % 2_003):
        taken(completion, Confirmation(order_id), now_ns=now_ns)
    assert completion.answered == 2_000
    assert_holds(only_buckets(completion), [now_ns - handed_ns for handed_ns in handed.values()])


def test_one_order_that_is_never_answered_keeps_its_time():
    completion = Completion(scheduled=False, sampling_interval=10**6, capacity=4)
    completion.handed_over(1, 1_000)
    for order_id in range(2, 300):
        completion.handed_over(1, 5_000)
        taken(completion, Confirmation(order_id), now_ns=5_001)
    only_buckets(completion)
    taken(completion, Trade(1, 500, 1), now_ns=7_000)
    assert only_buckets(completion).max_ns == 6_000


def test_more_orders_at_once_than_the_table_holds():
    completion = Completion(scheduled=False, sampling_interval=10**6, capacity=4)
    completion.handed_over(1_000, 1_000)
    taken(completion, *map(Confirmation, range(1, 1_001)), now_ns=1_100)
    assert completion.answered == 1_000
    assert_holds(only_buckets(completion), [100] * 1_000)


def test_the_last_order_is_kept_apart():
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.last_id = 3
    completion.handed_over(3, 1_000)
    taken(completion, Confirmation(1), Confirmation(3), Confirmation(2), now_ns=2_000)
    assert completion.answered == 3
    assert only_buckets(completion, last=False).count == 2
    assert only_buckets(completion, last=True).count == 1


def test_a_second_is_closed_once():
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(2, 1_000)
    taken(completion, Confirmation(1), now_ns=1_300)
    assert_holds(only_buckets(completion), [300])
    assert completion.close_second() == []
    taken(completion, Confirmation(2), now_ns=1_100)
    assert_holds(only_buckets(completion), [100])


def test_a_closed_second_is_not_written_to_again():
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(2, 1_000)
    taken(completion, Confirmation(1), now_ns=1_300)
    buckets = only_buckets(completion)
    taken(completion, Confirmation(2), now_ns=1_300)
    assert_holds(buckets, [300])


def test_completion_from_due_time_contains_the_gateways_own_lag():
    completion = Completion(scheduled=True, sampling_interval=1)
    due = np.array([0, 1_000, 2_000]) + START_NS
    completion.handed_over(3, START_NS + 5_000, due)
    completion.take(FrameBatch.of(*(encode(Confirmation(i)) for i in (1, 2, 3))), 0, START_NS + 5_600)
    by_clock = dict(completion.close_second())
    assert list(by_clock) == list(CLOCKS)
    assert_holds(by_clock["handed_over"], [600, 600, 600])
    assert_holds(by_clock["due"], [5_600, 4_600, 3_600])
    assert_holds(by_clock["lag"], [5_000, 4_000, 3_000])


def test_an_order_that_went_a_moment_early_has_no_lag():
    completion = Completion(scheduled=True, sampling_interval=1)
    completion.handed_over(2, START_NS, due_times(1, 2, 1_000.0))
    completion.take(FrameBatch.of(encode(Confirmation(2))), 0, START_NS + 5_000)
    by_clock = dict(completion.close_second())
    assert (by_clock["lag"].sum_ns, by_clock["lag"].min_ns, by_clock["lag"].max_ns) == (0, 0, 0)
    assert_holds(by_clock["due"], [4_000])


def test_without_a_schedule_there_is_one_clock():
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(1, 1_000)
    taken(completion, Confirmation(1), now_ns=2_000)
    assert [clock for clock, _ in completion.close_second()] == ["handed_over"]


def test_a_whole_batch_of_sampled_orders_is_reported():
    """The fullest batch that the gateway receives: confirmations only, every order a sample."""
    batch = FrameBatch()
    count = len(batch.buffer) // LAYOUTS[Confirmation].size
    batch.append(b"".join(encode(Confirmation(order_id)) for order_id in range(1, count + 1)))
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(count, 1_000)
    frame, sampled = completion.take(batch, 0, 2_000)
    assert (frame, completion.answered) == (1, count)
    assert sampled.tolist() == list(range(1, count + 1))


def test_a_completion_beyond_the_last_bucket_is_counted_there():
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(1, 1)
    taken(completion, Confirmation(1), now_ns=2**46)
    buckets = only_buckets(completion)
    assert buckets.counts[BUCKETS - 1] == 1
    assert buckets.max_ns == 2**46 - 1


@pytest.mark.parametrize(
    ("order_id", "last_id", "complete_with"), [(1, 0, 4), (4, 0, 4), (5, 0, 8), (5, 6, 6), (6, 6, 6), (4, 6, 4)]
)
def test_the_lag_of_a_packed_order_counts_from_when_its_pack_was_complete(order_id, last_id, complete_with):
    completion = Completion(scheduled=True, sampling_interval=10**6, packing=4)
    completion.last_id = last_id
    handed_ns = START_NS + 1_000_000
    completion.handed_over(complete_with, handed_ns, due_times(1, complete_with, 1_000.0))
    completion.take(FrameBatch.of(encode(Confirmation(order_id))), 0, handed_ns + 500)
    fresh = dict(completion.close_second(last=order_id == last_id))
    assert fresh["lag"].sum_ns == 1_000_000 - (complete_with - 1) * 1_000
    assert fresh["due"].sum_ns == 1_000_500 - (order_id - 1) * 1_000


def test_a_batch_that_wraps_around_the_table_leaves_each_order_its_due_time():
    completion = Completion(scheduled=True, sampling_interval=10**6, capacity=8)
    completion.handed_over(6, START_NS, due_times(1, 6, 1_000.0))
    completion.take(FrameBatch.of(*(encode(Confirmation(i)) for i in range(1, 7))), 0, START_NS + 1)
    completion.close_second()
    completion.handed_over(6, START_NS + 90_000, due_times(7, 6, 1_000.0))
    completion.take(FrameBatch.of(*(encode(Confirmation(i)) for i in range(7, 13))), 0, START_NS + 100_000)
    assert_holds(dict(completion.close_second())["due"], [100_000 - 1_000 * place for place in range(6, 12)])


def test_any_capacity_serves():
    completion = Completion(scheduled=False, sampling_interval=10**6, capacity=5)
    completion.handed_over(6, START_NS)
    confirmations = FrameBatch.of(*(encode(Confirmation(order_id)) for order_id in range(1, 7)))
    completion.take(confirmations, 0, START_NS + 1)
    assert completion.answered == 6
