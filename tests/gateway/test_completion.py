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
    Replaced,
    Trade,
    encode,
)
from gateway.completion import Completion
from transports.frames import FrameBatch


def take(completion: Completion, *messages, now_ns: int) -> tuple[int, list[int]]:
    """Let the completion take a frame for each message, which may be a frame of bytes.

    Returns the frame at which it stopped, and the ids of the sampled orders.
    """
    frames = [message if isinstance(message, bytes) else encode(message) for message in messages]
    frame, sampled = completion.take(FrameBatch.of(*frames), 0, now_ns)
    return frame, sampled[:, 0].tolist()


def confirmations(first_id: int, last_id: int) -> FrameBatch:
    """Return a frame with a confirmation for each of these orders."""
    return FrameBatch.of(*(encode(Confirmation(order_id)) for order_id in range(first_id, last_id + 1)))


def only_buckets(completion: Completion, last: bool = False) -> LogBuckets:
    """Close a second without a schedule; return its completion times from hand-over."""
    [(clock, buckets)] = completion.close_second(last)
    assert clock == "handed_over"
    return buckets


def test_only_the_first_answer_to_an_order_counts():
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(1, 1_000)
    assert take(completion, Trade(1, 500, 3), now_ns=1_500) == (1, [1])
    assert take(completion, Trade(1, 500, 2), Confirmation(1), now_ns=9_000) == (2, [])
    buckets = only_buckets(completion)
    assert completion.answered == 1
    assert buckets.count == 1
    assert buckets.max_ns == 500
    assert completion.received == 3


@pytest.mark.parametrize(
    "answer", [Trade(1, 500, 1), Confirmation(1), Rejection(1, 2), Cancelled(1, 5), Replaced(1, 500, 5)]
)
def test_every_answer_that_bears_its_id_answers_an_order(answer):
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(1, 1_000)
    take(completion, answer, now_ns=2_000)
    assert completion.answered == 1


@pytest.mark.parametrize("message", [Quote(bid=1, ask=0), Cancelled(2, 5), Confirmation(2), Confirmation(0)])
def test_quotes_and_unknown_ids_answer_no_order(message):
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(1, 1_000)
    assert take(completion, message, now_ns=2_000) == (1, [])
    assert completion.answered == 0
    assert completion.tables.by_type[LAYOUTS[type(message)].code] == 1


def test_answers_pair_by_id_in_any_order():
    completion = Completion(scheduled=False, sampling_interval=2)
    for order_id in range(1, 6):
        completion.handed_over(1, order_id * 1_000)
    assert take(completion, Confirmation(4), Confirmation(2), Confirmation(5), now_ns=10_000) == (3, [4, 2])
    assert_holds(only_buckets(completion), [6_000, 8_000, 5_000])


@pytest.mark.parametrize("foreign", FOREIGN, ids=bytes.hex)
def test_taking_stops_before_a_foreign_frame(foreign):
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(3, 1_000)
    frames = (encode(Confirmation(2)), foreign, encode(Confirmation(3)))
    assert take(completion, *frames, now_ns=2_000) == (1, [2])
    assert completion.answered == 1
    assert completion.received == 1
    frame, _ = completion.take(FrameBatch.of(*frames), 2, 2_000)
    assert frame == 3
    assert completion.answered == 2


def test_the_table_grows_with_unanswered_orders_and_loses_none():
    completion = Completion(scheduled=False, sampling_interval=10**6, capacity=8)
    handed = {order_id: 1_000 + order_id for order_id in range(1, 2_001)}
    for now_ns in handed.values():
        completion.handed_over(1, now_ns)
    now_ns = 50_000
    shuffled_ids = sorted(handed, key=lambda order_id: order_id * 7919 % 2_003)  # 7919 and 2003 are prime
    for order_id in shuffled_ids:
        take(completion, Confirmation(order_id), now_ns=now_ns)
    assert completion.answered == 2_000
    assert_holds(only_buckets(completion), [now_ns - handed_ns for handed_ns in handed.values()])


def test_an_order_that_waits_for_long_keeps_its_time():
    completion = Completion(scheduled=False, sampling_interval=10**6, capacity=4)
    completion.handed_over(1, 1_000)
    for order_id in range(2, 300):
        completion.handed_over(1, 5_000)
        take(completion, Confirmation(order_id), now_ns=5_001)
    only_buckets(completion)
    take(completion, Trade(1, 500, 1), now_ns=7_000)
    assert only_buckets(completion).max_ns == 6_000


def test_one_hand_over_may_exceed_the_table():
    completion = Completion(scheduled=False, sampling_interval=10**6, capacity=4)
    completion.handed_over(1_000, 1_000)
    take(completion, *map(Confirmation, range(1, 1_001)), now_ns=1_100)
    assert completion.answered == 1_000
    assert_holds(only_buckets(completion), [100] * 1_000)


def test_the_last_order_is_counted_separately():
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.last_id = 3
    completion.handed_over(3, 1_000)
    take(completion, Confirmation(1), Confirmation(3), Confirmation(2), now_ns=2_000)
    assert completion.answered == 3
    assert only_buckets(completion, last=False).count == 2
    assert only_buckets(completion, last=True).count == 1


def test_a_closed_second_starts_the_next_one_empty():
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(2, 1_000)
    take(completion, Confirmation(1), now_ns=1_300)
    assert_holds(only_buckets(completion), [300])
    assert completion.close_second() == []
    take(completion, Confirmation(2), now_ns=1_100)
    assert_holds(only_buckets(completion), [100])


def test_later_answers_leave_a_closed_second_unchanged():
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(2, 1_000)
    take(completion, Confirmation(1), now_ns=1_300)
    buckets = only_buckets(completion)
    take(completion, Confirmation(2), now_ns=1_300)
    assert_holds(buckets, [300])


def test_completion_from_due_time_contains_the_gateways_own_lag():
    completion = Completion(scheduled=True, sampling_interval=1)
    due = np.array([0, 1_000, 2_000]) + START_NS
    completion.handed_over(3, START_NS + 5_000, due)
    completion.take(confirmations(1, 3), 0, START_NS + 5_600)
    by_clock = dict(completion.close_second())
    assert list(by_clock) == list(CLOCKS)
    assert_holds(by_clock["handed_over"], [600, 600, 600])
    assert_holds(by_clock["due"], [5_600, 4_600, 3_600])
    assert_holds(by_clock["lag"], [5_000, 4_000, 3_000])


def test_an_order_sent_early_has_a_lag_of_zero():
    completion = Completion(scheduled=True, sampling_interval=1)
    completion.handed_over(2, START_NS, due_times(1, 2, 1_000.0))
    completion.take(FrameBatch.of(encode(Confirmation(2))), 0, START_NS + 5_000)
    by_clock = dict(completion.close_second())
    lag = by_clock["lag"]
    assert lag.min_ns == 0
    assert lag.max_ns == 0
    assert_holds(by_clock["due"], [4_000])


def test_without_a_schedule_only_hand_over_times_are_counted():
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(1, 1_000)
    take(completion, Confirmation(1), now_ns=2_000)
    assert [clock for clock, _ in completion.close_second()] == ["handed_over"]


def test_a_whole_batch_of_sampled_orders_is_reported():
    """The fullest batch that the gateway receives: confirmations only, every order a sample."""
    batch = FrameBatch()
    count = len(batch.buffer) // LAYOUTS[Confirmation].size
    batch.append(b"".join(encode(Confirmation(order_id)) for order_id in range(1, count + 1)))
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(count, 1_000)
    frame, sampled = completion.take(batch, 0, 2_000)
    assert frame == 1
    assert completion.answered == count
    assert sampled.tolist() == [[order_id, 1_000, 0, 2_000, order_id] for order_id in range(1, count + 1)]


def test_a_time_beyond_the_last_bucket_counts_in_it():
    completion = Completion(scheduled=False, sampling_interval=1)
    completion.handed_over(1, 1)
    take(completion, Confirmation(1), now_ns=2**46)
    buckets = only_buckets(completion)
    assert buckets.counts[BUCKETS - 1] == 1
    assert buckets.max_ns == 2**46 - 1


@pytest.mark.parametrize(
    ("order_id", "last_id", "complete_with"),
    [
        (1, 0, 4),  # packs of four: 1..4, 5..8; `last_id` 0 means that the last order is not known yet
        (4, 0, 4),
        (5, 0, 8),
        (5, 6, 6),  # the last pack is short: 5..6
        (6, 6, 6),
        (4, 6, 4),
    ],
)
def test_the_lag_of_a_packed_order_starts_when_its_pack_is_complete(order_id, last_id, complete_with):
    completion = Completion(scheduled=True, sampling_interval=10**6, packing=4)
    completion.last_id = last_id
    handed_ns = START_NS + 1_000_000
    completion.handed_over(complete_with, handed_ns, due_times(1, complete_with, 1_000.0))
    completion.take(FrameBatch.of(encode(Confirmation(order_id))), 0, handed_ns + 500)
    by_clock = dict(completion.close_second(last=order_id == last_id))
    assert by_clock["lag"].sum_ns == 1_000_000 - (complete_with - 1) * 1_000
    assert by_clock["due"].sum_ns == 1_000_500 - (order_id - 1) * 1_000


def test_due_times_survive_the_wrap_at_the_table_s_end():
    completion = Completion(scheduled=True, sampling_interval=10**6, capacity=8)
    completion.handed_over(6, START_NS, due_times(1, 6, 1_000.0))
    completion.take(confirmations(1, 6), 0, START_NS + 1)
    completion.close_second()
    completion.handed_over(6, START_NS + 90_000, due_times(7, 6, 1_000.0))
    completion.take(confirmations(7, 12), 0, START_NS + 100_000)
    by_clock = dict(completion.close_second())
    assert_holds(by_clock["due"], [94_000, 93_000, 92_000, 91_000, 90_000, 89_000])


def test_a_capacity_need_not_be_a_power_of_two():
    completion = Completion(scheduled=False, sampling_interval=10**6, capacity=5)
    completion.handed_over(6, START_NS)
    completion.take(confirmations(1, 6), 0, START_NS + 1)
    assert completion.answered == 6
