"""Orders on their way out: what is due, what the window allows and what the link takes."""

from __future__ import annotations

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from scripted_links import MS, START_NS, ScriptedLink

from exchange.checksum import StreamChecksum
from exchange.messages import Confirmation, decode_all, encode
from exchange.settings import RunSettings
from gateway.completion import Completion
from gateway.due_times import NEVER_NS
from gateway.offering import Offering
from gateway.pacer import Pacer
from gateway.recovering.completion import RecoveringCompletion
from gateway.recovering.offering import ResendingOffering
from gateway.seeded_orders import ORDER_BYTES, SeededOrders
from transports.frames import FrameBatch


class Desk:
    """An offering with its link, and answers at the push of a button. `recovers`: that of a recovering gateway."""

    def __init__(self, room: int | None = None, recovers: bool = False, **settings) -> None:
        self.settings = RunSettings(**{"orders_per_s": None, "orders": 10_000, **settings})
        self.link = ScriptedLink(room)
        self.pacer = Pacer.of(self.settings)
        self.pacer.start(START_NS)
        completion_class, offering_class = Completion, Offering
        if recovers:
            completion_class, offering_class = RecoveringCompletion, ResendingOffering
        self.completion = completion_class(self.pacer.scheduled, 10**6)
        self.offering = offering_class(self.settings, self.link, self.completion, self.pacer, StreamChecksum())

    def answer(self, first_id: int, last_id: int) -> None:
        frames = FrameBatch.of(*(encode(Confirmation(order_id)) for order_id in range(first_id, last_id + 1)))
        self.completion.take(frames, 0, START_NS + 10**9)

    def offer_all(self, now_ns: int = START_NS) -> None:
        """Until the link, the window or the schedule says no."""
        while self.offering.offer(now_ns):
            pass

    @property
    def sent_bytes(self) -> bytes:
        return b"".join(self.link.sent)

    @property
    def stream(self) -> bytes:
        """The first `sent` orders, as the specification has them."""
        return SeededOrders.of(self.settings).records(1, self.offering.sent)


def test_at_rate_max_everything_goes():
    desk = Desk(orders=5_000)
    desk.offer_all()
    assert desk.offering.sent == 5_000
    assert desk.offering.done
    assert desk.sent_bytes == desk.stream
    assert desk.completion.newest == 5_000


def test_nothing_goes_before_it_is_due():
    desk = Desk(orders_per_s=1_000.0)
    assert desk.offering.offer(START_NS) == 1
    assert desk.offering.offer(START_NS + MS - 1) == 0
    assert desk.offering.offer(START_NS + MS) == 1
    assert desk.offering.offer(START_NS + 100 * MS) == 99
    assert desk.offering.next_due_ns() == START_NS + 101 * MS


def test_orders_of_a_killed_gateway_count_as_handed_over_when_each_was_due():
    desk = Desk(orders_per_s=1_000.0, recovers=True)
    desk.offering.take_over(1_500, 300, START_NS, START_NS)
    handed = desk.completion.tables.handed
    assert [handed[each] for each in (301, 1_023, 1_024, 1_500)] == [
        START_NS + each * MS for each in (300, 1_022, 1_023, 1_499)
    ]
    assert desk.offering.last_handed_ns == START_NS + 1_499 * MS


@pytest.mark.parametrize("window", [1, 7, 100, 5_000])
def test_the_window_bounds_what_is_in_flight(window):
    desk = Desk(orders=20_000, window=window)
    desk.offer_all()
    assert desk.offering.sent == window
    assert desk.offering.next_due_ns() == NEVER_NS  # an answer opens it, no clock
    desk.answer(1, 1)
    desk.offer_all()
    assert desk.offering.sent == window + 1


@given(
    window=st.integers(1, 60),
    packing=st.integers(1, 20),
    rooms=st.lists(st.integers(0, 10), max_size=30),
    answered=st.lists(st.integers(0, 30), max_size=30),
)
def test_window_packing_and_back_pressure_together(window, packing, rooms, answered):
    window = max(window, packing)
    desk = Desk(orders=200, window=window, packing=packing, room=0)
    for room, count in zip(rooms, answered, strict=False):
        desk.link.room = room
        desk.offer_all()
        offering, completion = desk.offering, desk.completion
        assert offering.sent - completion.answered <= window
        assert desk.sent_bytes == desk.stream
        assert completion.newest == offering.sent
        assert offering.stream.value == xxhash.xxh64_intdigest(desk.stream)
        lengths = {len(frame) // ORDER_BYTES for frame in desk.link.sent}
        assert lengths <= ({packing, 200 % packing} if offering.sent == 200 else {packing})
        desk.answer(completion.answered + 1, min(completion.answered + count, offering.sent))


def test_a_window_that_opens_by_less_than_a_pack_lets_nothing_go():
    desk = Desk(window=10, packing=4)
    desk.offer_all()
    assert desk.offering.sent == 8
    desk.answer(1, 1)
    desk.offer_all()
    assert desk.offering.sent == 8
    desk.answer(2, 2)
    desk.offer_all()
    assert desk.offering.sent == 12


def test_the_last_pack_goes_though_it_is_short():
    desk = Desk(orders=10, packing=4)
    desk.offer_all()
    assert [len(frame) // ORDER_BYTES for frame in desk.link.sent] == [4, 4, 2]
    assert desk.offering.done


def test_packs_never_straddle_batches():
    desk = Desk(orders=5_000, packing=7)
    desk.offer_all()
    lengths = [len(frame) // ORDER_BYTES for frame in desk.link.sent]
    assert lengths == [7] * 714 + [2]
    assert desk.sent_bytes == desk.stream


def test_the_largest_pack_fits():
    desk = Desk(orders=2_500, packing=1_000)
    desk.offer_all()
    assert [len(frame) // ORDER_BYTES for frame in desk.link.sent] == [1_000, 1_000, 500]
    assert desk.sent_bytes == desk.stream


def test_a_full_link_holds_orders_back_and_loses_none():
    desk = Desk(orders=100, room=0)
    assert desk.offering.offer(START_NS) == 0
    assert desk.offering.pending
    assert desk.offering.next_due_ns() == NEVER_NS  # room on the link, no clock, ends this wait
    for sent in range(3, 100, 3):
        desk.link.room = 3
        assert desk.offering.offer(START_NS) == 3
        assert desk.offering.sent == sent
    desk.link.room = None
    assert desk.offering.offer(START_NS) == 1
    assert (desk.offering.pending, desk.offering.done) == (False, True)
    assert desk.sent_bytes == desk.stream


def test_while_the_link_is_full_no_due_time_wakes_the_loop():
    desk = Desk(orders_per_s=1_000.0, room=0)
    desk.offering.offer(START_NS + 10 * MS)
    assert desk.offering.next_due_ns() == NEVER_NS
    desk.link.room = None
    desk.offering.offer(START_NS + 10 * MS)
    assert desk.offering.next_due_ns() == START_NS + 11 * MS


def test_orders_are_handed_over_when_the_link_takes_them(clock):
    desk = Desk(orders=5, room=2)
    clock.now_ns = START_NS + 100
    desk.offering.offer(clock.now_ns)
    assert desk.completion.newest == 2
    clock.now_ns = START_NS + 999
    desk.link.room = None
    desk.offering.offer(clock.now_ns)
    assert desk.completion.newest == 5
    assert desk.offering.first_handed_ns == START_NS + 100
    frames = FrameBatch.of(*(encode(Confirmation(order_id)) for order_id in (2, 3)))
    desk.completion.take(frames, 0, START_NS + 1_099)
    [(_, buckets)] = desk.completion.close_second()
    assert (buckets.min_ns, buckets.max_ns) == (100, 999)


def test_a_stop_sends_what_was_prepared_and_nothing_more():
    desk = Desk(orders=10_000, room=10)
    desk.offering.offer(START_NS)
    desk.offering.stop()
    assert not desk.offering.done
    prepared = desk.offering.limit
    assert 10 < prepared < 10_000
    desk.link.room = None
    desk.offer_all()
    assert (desk.offering.sent, desk.offering.done) == (prepared, True)
    assert desk.completion.last_id == prepared
    assert desk.sent_bytes == desk.stream
    assert desk.offering.next_due_ns() == NEVER_NS


def test_a_stop_before_the_first_order_ends_at_none():
    desk = Desk(orders_per_s=1.0)
    desk.offering.stop()
    assert desk.offering.done
    assert desk.offering.offer(START_NS + 10**12) == 0
    assert desk.link.sent == []


def test_a_stop_between_orders_offers_none_that_is_due_later():
    desk = Desk(orders_per_s=1_000.0, packing=2)
    desk.offer_all(START_NS + 9 * MS)
    desk.offering.stop()
    desk.offer_all(START_NS + 10**12)
    assert (desk.offering.sent, desk.offering.done) == (10, True)


def test_the_last_order_of_the_run_is_known_from_the_start():
    desk = Desk(orders=77)
    assert desk.completion.last_id == 77
    assert desk.offering.limit == 77


def test_the_stream_is_the_seeds():
    one, other = Desk(orders=10, seed=1), Desk(orders=10, seed=2)
    one.offer_all()
    other.offer_all()
    assert one.sent_bytes != other.sent_bytes
    assert [order.id for order in decode_all(other.sent_bytes)] == list(range(1, 11))
