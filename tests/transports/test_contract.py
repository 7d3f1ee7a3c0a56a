"""What every transport promises of frames, and of waiting for them; test_contract_of_peers.py has the rest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tests.transports.conftest import carry, connect_while_serving, deadline_ns, joined, until
from tests.transports.contract import A_BROKER_HAS_ROOM, fill, frames, with_little_room, without_broker
from transports.base import Pattern, PeerGone
from transports.frames import FrameBatch
from transports.registry import has_broker
from transports.waiting import LONGEST_SLEEP_NS

TRIES, FEW = 5, 50


def calls_until(end_ns: int, wait: Callable[[int], None]) -> int:
    """How often it returned before its time: few times, or it did not sleep."""
    calls = 0
    while time.monotonic_ns() < end_ns:
        wait(end_ns)
        calls += 1
    return calls


def test_frames_arrive_whole_and_in_order_both_ways(url: str) -> None:
    sent = frames(500 if has_broker(url) else 2000)  # more than are acknowledged together, or than a socket holds
    with joined(url) as (listener, connector):
        assert list(carry(connector, listener, FrameBatch.of(*sent))) == sent
        assert list(carry(listener, connector, FrameBatch.of(*sent))) == sent


def test_receive_takes_nothing_where_nothing_is(url: str) -> None:
    with joined(url) as (listener, connector):
        batch = FrameBatch()
        assert listener.receive(batch) == connector.receive(batch) == 0


def test_receive_stops_at_the_batch_s_capacity_and_goes_on_later(url: str) -> None:
    with joined(url) as (listener, connector):
        connector.send(FrameBatch.of(*frames(10)), 0)
        small, got = FrameBatch(3), []

        def take() -> bool:
            small.clear()
            assert listener.receive(small) <= 3
            got.extend(small)
            return len(got) == 10

        until(take, listener, connector)
        assert got == frames(10)


def test_receive_appends_behind_what_the_batch_holds(url: str) -> None:
    with joined(url) as (listener, connector):
        connector.send(FrameBatch.of(b"new"), 0)
        batch = FrameBatch()
        batch.append(b"old")
        until(lambda: listener.receive(batch) > 0, listener, connector)
        assert list(batch) == [b"old", b"new"]


def chunk_for(url: str) -> tuple[int, int]:
    """Size and number of frames that are a megabyte together; small ones take a broker and its clients long."""
    return (10_000, 100) if has_broker(url) else (1_000, 1_000)


def test_send_never_blocks_and_loses_nothing_when_the_peer_does_not_read(url: str) -> None:
    size, number = chunk_for(url)
    chunk = FrameBatch.of(*[bytes([n % 256]) * size for n in range(number)])
    most = 1 if has_broker(url) else 11  # a broker takes whatever comes
    with joined(url) as (listener, connector):
        taken = []
        while (end := connector.send(chunk, 0)) == chunk.count and len(taken) < most:
            taken.append(end)
        total, got = sum(taken) + end, FrameBatch(200_000, 1 << 20)
        count = 0

        def drain() -> bool:
            nonlocal count
            got.clear()
            listener.receive(got)
            assert all(frame == bytes([(count + n) % number % 256]) * size for n, frame in enumerate(got))
            count += got.count
            return count == total

        until(drain, listener, connector)


def test_what_send_took_leaves_by_drain_alone(url: str) -> None:
    size, number = chunk_for(url)
    chunk = FrameBatch.of(*[bytes(size)] * number)
    with joined(url) as (listener, connector):
        taken = end = connector.send(chunk, 0)
        while end == chunk.count and taken < 11 * chunk.count:
            end = connector.send(chunk, 0)
            taken += end
        got, count = FrameBatch(200_000, 1 << 20), 0

        def all_came() -> bool:
            nonlocal count
            got.clear()
            count += listener.receive(got)
            connector.drain(time.monotonic_ns() + 1_000_000)
            return count == taken

        until(all_came, listener)
        assert connector.drain(deadline_ns())


def test_wait_sleeps_until_its_time_when_nothing_comes(url: str) -> None:
    with joined(url) as (listener, _):
        for _ in range(TRIES):
            end_ns = time.monotonic_ns() + 20_000_000
            assert calls_until(end_ns, listener.wait) <= FEW
            if time.monotonic_ns() - end_ns < 100_000_000:
                break
        else:
            pytest.fail("it slept too long each time")
        assert listener.receive(FrameBatch()) == 0


def test_wait_does_not_sleep_while_frames_wait_for_a_batch(url: str) -> None:
    with joined(url) as (listener, connector):
        connector.send(FrameBatch.of(*frames(10)), 0)
        end_ns = deadline_ns()
        assert connector.drain(end_ns)
        small, received = FrameBatch(3), 0
        while received < 10:
            listener.wait(end_ns)
            assert time.monotonic_ns() < end_ns, f"it slept with {received} of 10 frames received"
            small.clear()
            received += listener.receive(small)


def test_wait_wakes_when_a_frame_comes(url: str) -> None:
    with joined(url) as (listener, connector):
        batch = FrameBatch()
        for _ in range(TRIES):
            batch.clear()
            start_s, calls = time.monotonic(), 0
            sender = threading.Timer(0.02, connector.send, (FrameBatch.of(b"wake"), 0))
            sender.start()
            while not listener.receive(batch):
                listener.wait(deadline_ns())
                calls += 1
            took_s = time.monotonic() - start_s
            sender.join()
            assert calls <= FEW
            if took_s < LONGEST_SLEEP_NS / 2e9:  # a wake that is lost costs the longest sleep
                break
        else:
            pytest.fail("it woke too late each time")


def test_who_waits_for_room_sleeps_while_frames_lie_unread(url: str) -> None:
    without_broker(url, A_BROKER_HAS_ROOM)
    with joined(with_little_room(url)) as (listener, connector):
        listener.send(FrameBatch.of(b"unread"), 0)
        connector.wait(deadline_ns())
        chunk, fruitful = fill(connector), 0

        def wait_and_send(until_ns: int) -> None:
            nonlocal fruitful
            connector.wait(until_ns, readable=False, writable=True)
            fruitful += connector.send(chunk, 0) > 0  # what lay on its way may have made room

        calls = calls_until(time.monotonic_ns() + 50_000_000, wait_and_send)
        assert calls - fruitful <= FEW
        assert connector.receive(FrameBatch()) == 1
        connector.close(0)  # nobody will read what it has not sent


def test_a_frame_longer_than_the_largest_is_never_delivered(url: str) -> None:
    with joined(url) as (listener, connector):
        connector.send(FrameBatch.of(b"x" * 5000), 0)
        small = FrameBatch(10, 4096, 1000)

        def dropped() -> bool:
            assert listener.receive(small) == 0
            return listener.junk == 1

        try:
            until(dropped, listener, connector)
        except PeerGone:  # a stream cannot go on behind such a frame
            assert "tcp://" in url


def test_a_fan_in_merges_its_peers_and_speaks_to_each(url: str) -> None:
    with joined(url, pattern=Pattern.FAN_IN) as (listener, first):
        second = connect_while_serving(listener, pattern=Pattern.FAN_IN)
        first_heard, second_heard, heard = FrameBatch(), FrameBatch(), FrameBatch()
        first.send(FrameBatch.of(b"from first"), 0)
        second.send(FrameBatch.of(b"from second"), 0)
        until(lambda: listener.receive(heard) >= 0 and heard.count == 2, listener, second)
        assert sorted(heard) == [b"from first", b"from second"]
        listener.send(FrameBatch.of(b"", b"to all"), 0)
        until(lambda: first.receive(first_heard) >= 0 and first_heard.count == 2, listener, first)
        until(lambda: second.receive(second_heard) >= 0 and second_heard.count == 2, listener, second)
        assert list(first_heard) == list(second_heard) == [b"", b"to all"]
        second.close()


def test_a_fan_in_serves_those_that_stay_before_noticing_a_leaver(url: str) -> None:
    with joined(url, pattern=Pattern.FAN_IN) as (listener, leaves):
        stays = connect_while_serving(listener, pattern=Pattern.FAN_IN)
        heard = FrameBatch()
        stays.send(FrameBatch.of(b"here"), 0)
        until(lambda: listener.receive(heard) >= 0 and heard.count == 1, listener, stays)
        heard.clear()
        leaves.close(0)
        for expected in range(1, 4):  # a system may take the first frame for a peer that has left
            listener.send(FrameBatch.of(b"to all"), 0)
            until(lambda: stays.receive(heard) >= 0 and heard.count == expected, stays)  # noqa: B023
        stays.close()
