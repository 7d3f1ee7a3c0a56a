"""Completion times: which answers count, in which buckets, and for which orders."""

from __future__ import annotations

import numpy as np
import pytest
from completion_times import FOREIGN, START_NS, assert_holds, due_times

from exchange.measurements import BUCKETS, CLOCKS, LogBuckets
from exchange.messages import (
    LAYOUTS,
    Cancelled,
    Confirmation,
    Quote,
    Rejection,
    Trade,
    encode,
)
from gateway.completion import Completion
from transports.frames import FrameBatch


def taken(completion: Completion, *messages, now_ns: int) -> tuple[int, list[int]]:
    batch = FrameBatch.of(*(m if isinstance(m, bytes) else encode(m) for m in messages))
    frame, sampled = completion.take(batch, 0, now_ns)
    return frame, sampled[:, 0].tolist()


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
    assert completion.received == 3


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
    assert completion.tables.by_type[LAYOUTS[type(message)].code] == 1


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
    assert (completion.answered, completion.received) == (1, 1)
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
    assert sampled.tolist() == [[order_id, 1_000, 0, 2_000, order_id] for order_id in range(1, count + 1)]


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


def test_a_batch_around_the_table_s_end_keeps_each_due_time():
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
