"""The promises of every transport about frames and waits; test_contract_of_peers.py has those about peers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tests.transports.conftest import carry, connect_while_serving, deadline_ns, joined, serve_links_until
from tests.transports.contract import A_BROKER_HAS_ROOM, fill, frames, skip_with_broker, with_little_room
from transports.base import Link, Pattern, PeerGone
from transports.frames import FrameBatch
from transports.registry import has_broker
from transports.waiting import LONGEST_SLEEP_NS

TRIES = 5
"""How often a test about time is tried, since a busy machine may be late."""
FEW = 50
"""The most calls of `wait` in a time in which one call should sleep: more calls mean that the link spins."""


def calls_until(end_ns: int, wait: Callable[[int], None]) -> int:
    """Return how many calls of `wait` it took to reach this time. Many calls mean that they did not sleep."""
    calls = 0
    while time.monotonic_ns() < end_ns:
        wait(end_ns)
        calls += 1
    return calls


def receive_until(count: int, link: Link, batch: FrameBatch, *others: Link) -> None:
    """Receive into the batch until it has this many frames. The other links are served meanwhile."""

    def has_enough() -> bool:
        link.receive(batch)
        return batch.count == count

    serve_links_until(has_enough, link, *others)


def test_frames_arrive_whole_and_in_order_both_ways(url: str) -> None:
    count = 500 if has_broker(url) else 2000  # more than are acknowledged together, or than a socket holds
    sent = frames(count)
    with joined(url) as (listener, connector):
        assert list(carry(connector, listener, FrameBatch.of(*sent))) == sent
        assert list(carry(listener, connector, FrameBatch.of(*sent))) == sent


def test_receive_returns_zero_if_no_frame_came(url: str) -> None:
    with joined(url) as (listener, connector):
        batch = FrameBatch()
        assert listener.receive(batch) == 0
        assert connector.receive(batch) == 0


def test_receive_stops_at_the_batch_s_capacity_and_goes_on_later(url: str) -> None:
    with joined(url) as (listener, connector):
        connector.send(FrameBatch.of(*frames(10)), 0)
        small = FrameBatch(3)
        received = []

        def have_all() -> bool:
            small.clear()
            assert listener.receive(small) <= 3
            received.extend(small)
            return len(received) == 10

        serve_links_until(have_all, listener, connector)
        assert received == frames(10)


def test_receive_appends_to_the_frames_in_the_batch(url: str) -> None:
    with joined(url) as (listener, connector):
        connector.send(FrameBatch.of(b"new"), 0)
        batch = FrameBatch()
        batch.append(b"old")
        serve_links_until(lambda: listener.receive(batch) > 0, listener, connector)
        assert list(batch) == [b"old", b"new"]


def megabyte_for(url: str) -> FrameBatch:
    """Return a batch of frames with a megabyte in all. A broker gets fewer frames, since many take it long."""
    if has_broker(url):
        return FrameBatch.of(*[bytes([number]) * 10_000 for number in range(100)])
    return FrameBatch.of(*[bytes([number % 256]) * 1_000 for number in range(1_000)])


def send_megabytes(link: Link, megabyte: FrameBatch, most: int) -> int:
    """Send the batch again and again until the link takes no more, or `most` times. Returns how many frames it took."""
    taken = 0
    for _ in range(most):
        end = link.send(megabyte, 0)
        taken += end
        if end < megabyte.count:
            break
    return taken


def test_send_never_blocks_and_loses_nothing_when_the_peer_does_not_read(url: str) -> None:
    megabyte = megabyte_for(url)
    expected = list(megabyte)
    with joined(url) as (listener, connector):
        taken = send_megabytes(connector, megabyte, most=2 if has_broker(url) else 12)
        batch = FrameBatch(200_000, 1 << 20)
        received = 0

        def have_all() -> bool:
            nonlocal received
            batch.clear()
            listener.receive(batch)
            for frame in batch:
                assert frame == expected[received % len(expected)]
                received += 1
            return received == taken

        serve_links_until(have_all, listener, connector)


def test_drain_alone_sends_the_frames_that_the_link_took(url: str) -> None:
    with joined(url) as (listener, connector):
        taken = send_megabytes(connector, megabyte_for(url), most=11)
        batch = FrameBatch(200_000, 1 << 20)
        received = 0

        def have_all() -> bool:
            nonlocal received
            batch.clear()
            received += listener.receive(batch)
            connector.drain(time.monotonic_ns() + 1_000_000)
            return received == taken

        serve_links_until(have_all, listener)
        assert connector.drain(deadline_ns())


def test_wait_sleeps_until_its_time_if_no_frame_comes(url: str) -> None:
    with joined(url) as (listener, _):
        for _ in range(TRIES):
            end_ns = time.monotonic_ns() + 20_000_000
            assert calls_until(end_ns, listener.wait) <= FEW
            if time.monotonic_ns() - end_ns < 100_000_000:
                break
        else:
            pytest.fail("wait slept too long in each try")
        assert listener.receive(FrameBatch()) == 0


def test_wait_does_not_sleep_while_frames_can_be_received(url: str) -> None:
    with joined(url) as (listener, connector):
        connector.send(FrameBatch.of(*frames(10)), 0)
        end_ns = deadline_ns()
        assert connector.drain(end_ns)
        small = FrameBatch(3)
        received = 0
        while received < 10:
            listener.wait(end_ns)
            assert time.monotonic_ns() < end_ns, f"wait slept with {received} of 10 frames received"
            small.clear()
            received += listener.receive(small)


def test_wait_wakes_when_a_frame_comes(url: str) -> None:
    with joined(url) as (listener, connector):
        batch = FrameBatch()
        for _ in range(TRIES):
            batch.clear()
            start_s = time.monotonic()
            calls = 0
            sender = threading.Timer(0.02, connector.send, (FrameBatch.of(b"wake"), 0))
            sender.start()
            while not listener.receive(batch):
                listener.wait(deadline_ns())
                calls += 1
            took_s = time.monotonic() - start_s
            sender.join()
            assert calls <= FEW
            if took_s < LONGEST_SLEEP_NS / 2e9:  # if the frame did not wake it, it took the longest sleep
                break
        else:
            pytest.fail("wait woke too late in each try")


def test_a_wait_for_room_sleeps_although_frames_can_be_received(url: str) -> None:
    skip_with_broker(url, A_BROKER_HAS_ROOM)
    with joined(with_little_room(url)) as (listener, connector):
        listener.send(FrameBatch.of(b"unread"), 0)
        connector.wait(deadline_ns())
        batch = fill(connector)
        waits_that_made_room = 0

        def wait_and_send(until_ns: int) -> None:
            nonlocal waits_that_made_room
            connector.wait(until_ns, readable=False, writable=True)
            if connector.send(batch, 0) > 0:  # frames in a buffer on their way may have moved on
                waits_that_made_room += 1

        calls = calls_until(time.monotonic_ns() + 50_000_000, wait_and_send)
        assert calls - waits_that_made_room <= FEW
        assert connector.receive(FrameBatch()) == 1
        connector.close(0)  # without waiting, since nobody reads its unsent frames


def test_a_frame_longer_than_the_largest_is_never_delivered(url: str) -> None:
    with joined(url) as (listener, connector):
        connector.send(FrameBatch.of(b"x" * 5000), 0)
        small = FrameBatch(10, 4096, 1000)

        def is_counted_as_junk() -> bool:
            assert listener.receive(small) == 0
            return listener.junk == 1

        try:
            serve_links_until(is_counted_as_junk, listener, connector)
        except PeerGone:  # a TCP stream cannot go on after such a frame
            assert "tcp://" in url


def test_an_overlong_frame_from_one_peer_of_a_fan_in_is_junk_and_the_others_stay(url: str) -> None:
    with joined(url, pattern=Pattern.FAN_IN) as (listener, first):
        stranger = connect_while_serving(listener, pattern=Pattern.FAN_IN)
        stranger.send(FrameBatch.of(b"x" * 5000), 0)
        received = FrameBatch(10, 4096, 1000)
        serve_links_until(lambda: listener.receive(received) == 0 and listener.junk == 1, listener, stranger)
        first.send(FrameBatch.of(b"from first"), 0)
        serve_links_until(lambda: listener.receive(received) == 1, listener, first)
        assert list(received) == [b"from first"]
        stranger.close(0)


def test_a_fan_in_receives_from_all_peers_and_sends_to_each(url: str) -> None:
    with joined(url, pattern=Pattern.FAN_IN) as (listener, first):
        second = connect_while_serving(listener, pattern=Pattern.FAN_IN)
        received = FrameBatch()
        received_by_first = FrameBatch()
        received_by_second = FrameBatch()
        first.send(FrameBatch.of(b"from first"), 0)
        second.send(FrameBatch.of(b"from second"), 0)
        receive_until(2, listener, received, second)
        assert sorted(received) == [b"from first", b"from second"]
        listener.send(FrameBatch.of(b"", b"to all"), 0)
        receive_until(2, first, received_by_first, listener)
        receive_until(2, second, received_by_second, listener)
        assert list(received_by_first) == [b"", b"to all"]
        assert list(received_by_second) == [b"", b"to all"]
        second.close()


def test_a_fan_in_serves_other_peers_after_one_has_left(url: str) -> None:
    with joined(url, pattern=Pattern.FAN_IN) as (listener, leaves):
        stays = connect_while_serving(listener, pattern=Pattern.FAN_IN)
        received = FrameBatch()
        stays.send(FrameBatch.of(b"here"), 0)
        receive_until(1, listener, received, stays)
        received.clear()
        leaves.close(0)
        for expected_count in (1, 2, 3):  # the system may still accept the first frame to the peer that has left
            listener.send(FrameBatch.of(b"to all"), 0)
            receive_until(expected_count, stays, received)
        stays.close()
