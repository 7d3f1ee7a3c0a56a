"""How a gateway offers orders: those that are due, within the window, as far as the link takes them."""

from __future__ import annotations

from pathlib import Path

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from scripted_links import MS, START_NS, ScriptedLink

from exchange.checksum import StreamChecksum
from exchange.messages import ASK, Confirmation, Order, ReplaceRequest, decode_all, encode
from exchange.settings import RunSettings
from gateway.completion import Completion
from gateway.due_times import NEVER_NS
from gateway.offering import Offering
from gateway.pacer import Pacer
from gateway.recovering.completion import RecoveringCompletion
from gateway.recovering.offering import ResendingOffering
from gateway.seeded_orders import ORDER_BYTES, SeededOrders
from gateway.tape_records import STRIDE
from transports.frames import FrameBatch


class OfferedOrders:
    """An offering of orders with its link. `answer` confirms orders. `recovers`: use a recovering gateway's classes."""

    def __init__(self, room: int | None = None, recovers: bool = False, **settings) -> None:
        self.settings = RunSettings(**{"orders_per_s": None, "orders": 10_000, **settings})
        self.link = ScriptedLink(room)
        self.pacer = Pacer.of(self.settings)
        self.pacer.start(START_NS)
        completion_class = Completion
        offering_class = Offering
        if recovers:
            completion_class = RecoveringCompletion
            offering_class = ResendingOffering
        self.completion = completion_class(self.pacer.scheduled, 10**6)
        self.offering = offering_class(self.settings, self.link, self.completion, self.pacer, StreamChecksum())

    def answer(self, first_id: int, last_id: int) -> None:
        frames = FrameBatch.of(*(encode(Confirmation(order_id)) for order_id in range(first_id, last_id + 1)))
        self.completion.take(frames, 0, START_NS + 10**9)

    def offer_all(self, now_ns: int = START_NS) -> None:
        """Offer until the link, the window or the schedule allows no more."""
        while self.offering.offer(now_ns):
            pass

    @property
    def sent_bytes(self) -> bytes:
        return b"".join(self.link.sent)

    @property
    def pack_sizes(self) -> list[int]:
        """The number of orders in each frame that was sent."""
        return [len(frame) // ORDER_BYTES for frame in self.link.sent]

    @property
    def stream(self) -> bytes:
        """The records of the first `sent` orders."""
        return SeededOrders.of(self.settings).records(1, self.offering.sent)


def test_at_rate_max_every_order_is_sent_at_once():
    offered = OfferedOrders(orders=5_000)
    offered.offer_all()
    assert offered.offering.sent == 5_000
    assert offered.offering.done
    assert offered.sent_bytes == offered.stream
    assert offered.completion.newest == 5_000


def test_no_order_is_sent_before_it_is_due():
    offered = OfferedOrders(orders_per_s=1_000.0)
    assert offered.offering.offer(START_NS) == 1
    assert offered.offering.offer(START_NS + MS - 1) == 0
    assert offered.offering.offer(START_NS + MS) == 1
    assert offered.offering.offer(START_NS + 100 * MS) == 99
    assert offered.offering.next_due_ns() == START_NS + 101 * MS


def test_orders_of_a_killed_gateway_count_as_handed_over_when_due():
    offered = OfferedOrders(orders_per_s=1_000.0, recovers=True)
    offered.offering.take_over(1_500, 300, START_NS, START_NS)
    handed_over_ns = offered.completion.tables.handed
    for order_id in (301, 1_023, 1_024, 1_500):
        due_ns = START_NS + (order_id - 1) * MS
        assert handed_over_ns[order_id] == due_ns
    assert offered.offering.last_handed_ns == START_NS + 1_499 * MS


@pytest.mark.parametrize("window", [1, 7, 100, 5_000])
def test_the_window_bounds_the_unanswered_orders(window):
    offered = OfferedOrders(orders=20_000, window=window)
    offered.offer_all()
    assert offered.offering.sent == window
    assert offered.offering.next_due_ns() == NEVER_NS  # an answer opens it, no clock
    offered.answer(1, 1)
    offered.offer_all()
    assert offered.offering.sent == window + 1


@given(
    window=st.integers(1, 60),
    packing=st.integers(1, 20),
    rooms=st.lists(st.integers(0, 10), max_size=30),
    answered=st.lists(st.integers(0, 30), max_size=30),
)
def test_window_packing_and_back_pressure_hold_together(window, packing, rooms, answered):
    window = max(window, packing)
    offered = OfferedOrders(orders=200, window=window, packing=packing, room=0)
    for room, count in zip(rooms, answered, strict=False):
        offered.link.room = room
        offered.offer_all()
        offering = offered.offering
        completion = offered.completion
        assert offering.sent - completion.answered <= window
        assert offered.sent_bytes == offered.stream
        assert completion.newest == offering.sent
        assert offering.stream.value == xxhash.xxh64_intdigest(offered.stream)
        allowed_sizes = {packing}
        if offering.sent == 200:
            allowed_sizes.add(200 % packing)  # the last pack
        assert set(offered.pack_sizes) <= allowed_sizes
        offered.answer(completion.answered + 1, min(completion.answered + count, offering.sent))


def test_no_pack_is_sent_until_the_window_has_room_for_it():
    offered = OfferedOrders(window=10, packing=4)
    offered.offer_all()
    assert offered.offering.sent == 8
    offered.answer(1, 1)
    offered.offer_all()
    assert offered.offering.sent == 8
    offered.answer(2, 2)
    offered.offer_all()
    assert offered.offering.sent == 12


def test_the_last_pack_may_be_short():
    offered = OfferedOrders(orders=10, packing=4)
    offered.offer_all()
    assert offered.pack_sizes == [4, 4, 2]
    assert offered.offering.done


def test_no_pack_is_split_between_batches():
    offered = OfferedOrders(orders=5_000, packing=7)
    offered.offer_all()
    assert offered.pack_sizes == [7] * 714 + [2]
    assert offered.sent_bytes == offered.stream


def test_a_pack_of_the_largest_size_is_sent():
    offered = OfferedOrders(orders=2_500, packing=1_000)
    offered.offer_all()
    assert offered.pack_sizes == [1_000, 1_000, 500]
    assert offered.sent_bytes == offered.stream


def test_a_full_link_delays_orders_and_loses_none():
    offered = OfferedOrders(orders=100, room=0)
    assert offered.offering.offer(START_NS) == 0
    assert offered.offering.pending
    assert offered.offering.next_due_ns() == NEVER_NS  # room on the link, no clock, ends this wait
    for sent in range(3, 100, 3):
        offered.link.room = 3
        assert offered.offering.offer(START_NS) == 3
        assert offered.offering.sent == sent
    offered.link.room = None
    assert offered.offering.offer(START_NS) == 1
    assert not offered.offering.pending
    assert offered.offering.done
    assert offered.sent_bytes == offered.stream


def test_a_due_time_does_not_wake_the_loop_while_the_link_is_full():
    offered = OfferedOrders(orders_per_s=1_000.0, room=0)
    offered.offering.offer(START_NS + 10 * MS)
    assert offered.offering.next_due_ns() == NEVER_NS
    offered.link.room = None
    offered.offering.offer(START_NS + 10 * MS)
    assert offered.offering.next_due_ns() == START_NS + 11 * MS


def test_an_order_s_hand_over_is_when_the_link_takes_it(clock):
    offered = OfferedOrders(orders=5, room=2)
    clock.now_ns = START_NS + 100
    offered.offering.offer(clock.now_ns)
    assert offered.completion.newest == 2
    clock.now_ns = START_NS + 999
    offered.link.room = None
    offered.offering.offer(clock.now_ns)
    assert offered.completion.newest == 5
    assert offered.offering.first_handed_ns == START_NS + 100
    frames = FrameBatch.of(*(encode(Confirmation(order_id)) for order_id in (2, 3)))
    offered.completion.take(frames, 0, START_NS + 1_099)
    [(_, buckets)] = offered.completion.close_second()
    assert buckets.min_ns == 100
    assert buckets.max_ns == 999


def test_after_a_stop_only_the_prepared_orders_are_sent():
    offered = OfferedOrders(orders=10_000, room=10)
    offered.offering.offer(START_NS)
    offered.offering.stop()
    assert not offered.offering.done
    prepared = offered.offering.limit
    assert 10 < prepared < 10_000
    offered.link.room = None
    offered.offer_all()
    assert offered.offering.sent == prepared
    assert offered.offering.done
    assert offered.completion.last_id == prepared
    assert offered.sent_bytes == offered.stream
    assert offered.offering.next_due_ns() == NEVER_NS


def test_after_a_stop_before_the_first_order_none_is_sent():
    offered = OfferedOrders(orders_per_s=1.0)
    offered.offering.stop()
    assert offered.offering.done
    assert offered.offering.offer(START_NS + 10**12) == 0
    assert offered.link.sent == []


def test_after_a_stop_no_later_order_is_sent():
    offered = OfferedOrders(orders_per_s=1_000.0, packing=2)
    offered.offer_all(START_NS + 9 * MS)
    offered.offering.stop()
    offered.offer_all(START_NS + 10**12)
    assert offered.offering.sent == 10
    assert offered.offering.done


def test_the_last_order_of_the_run_is_known_from_the_start():
    offered = OfferedOrders(orders=77)
    assert offered.completion.last_id == 77
    assert offered.offering.limit == 77


def test_another_seed_gives_other_orders_with_the_same_ids():
    one = OfferedOrders(orders=10, seed=1)
    other = OfferedOrders(orders=10, seed=2)
    one.offer_all()
    other.offer_all()
    assert one.sent_bytes != other.sent_bytes
    assert [order.id for order in decode_all(other.sent_bytes)] == list(range(1, 11))


@pytest.mark.parametrize("packing", [1, 3])
def test_after_the_last_message_of_a_tape_none_is_prepared(packing: int, tmp_path: Path):
    path = tmp_path / "tape.bin"
    requests = [ReplaceRequest(number, number - 1, 500, 10) for number in range(2, STRIDE + 1)]
    path.write_bytes(encode(Order(1, ASK, 500, 10)) + b"".join(map(encode, requests)))
    offered = OfferedOrders(orders=STRIDE, orders_per_s=1e6, tape=str(path), mix="limit=1,replace=99", packing=packing)
    offered.offer_all(START_NS + 10**12)
    assert offered.offering.done
    ahead = offered.offering.look_ahead()
    assert ahead is not None
    assert ahead.frames == 0
