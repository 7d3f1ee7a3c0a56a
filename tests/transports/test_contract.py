"""What every transport promises, whatever carries the frames."""

from __future__ import annotations

import random
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.transports.conftest import TOKEN, carry, connect_while_serving, deadline_ns, greet, joined, until
from transports.base import Address, BadAddress, CannotListen, Link, Pattern, PeerGone, TransportError
from transports.frames import FrameBatch
from transports.keys import make_keys
from transports.registry import connect, has_broker, listen, transport_of
from transports.waiting import LONGEST_SLEEP_NS

TRIES, FEW = 5, 50

AT_A_BROKER_NOBODY_LEAVES = "a broker says nothing when a peer leaves; whoever waits for an answer has a time limit"
AT_A_BROKER_RUNS_HAVE_QUEUES_OF_THEIR_OWN = "a stranger to the run's name finds other queues; see amqp/test_link.py"
A_BROKER_HAS_ROOM = "a broker takes what nobody reads, until its memory is full"


def without_broker(url: str, why: str) -> None:
    """Leave the test out if the transport declares a broker between the two ends."""
    if has_broker(url):
        pytest.skip(why)


def frames(count: int, seed: int = 1) -> list[bytes]:
    source = random.Random(seed)
    return [source.randbytes(source.choice((1, 5, 10, 100, 3000))) for _ in range(count)]


def calls_until(end_ns: int, wait: Callable[[int], None]) -> int:
    """How often it returned before its time: few times, or it did not sleep."""
    calls = 0
    while time.monotonic_ns() < end_ns:
        wait(end_ns)
        calls += 1
    return calls


def send_and_wait(link: Link, chunk: FrameBatch) -> None:
    """Send a batch as a sender does that receives nothing in between."""
    for _ in range(1000):
        if not link.send(chunk, 0):
            link.wait(deadline_ns(), readable=False, writable=True)


def fill(link: Link) -> FrameBatch:
    """Send until nothing more goes, since nobody reads at the other end; frames of which none goes."""
    chunk, quiet_since_s, chunks = FrameBatch.of(*[bytes(100)] * 1000), time.monotonic(), 0
    while time.monotonic() - quiet_since_s < 0.1:
        if link.send(chunk, 0):
            quiet_since_s, chunks = time.monotonic(), chunks + 1
        if chunks == 1000:
            pytest.skip("somebody between takes whatever comes")
    return chunk


def test_frames_arrive_whole_and_in_order_both_ways(url: str) -> None:
    sent = frames(2000)
    with joined(url) as (listener, connector):
        assert list(carry(connector, listener, FrameBatch.of(*sent))) == sent
        assert list(carry(listener, connector, FrameBatch.of(*sent))) == sent


def test_connect_returns_before_the_listener_is_served(url: str) -> None:
    listener = listen(url, TOKEN)
    try:
        connector = connect(listener.url, TOKEN, deadline_ns())  # in the listener's own thread, which is here
        greet(connector, listener)
        connector.close()
    finally:
        listener.close()


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


def test_send_never_blocks_and_loses_nothing_when_the_peer_does_not_read(url: str) -> None:
    chunk = FrameBatch.of(*[bytes([n % 256]) * 100 for n in range(1000)])
    most = 10 if has_broker(url) else 110  # a broker takes whatever comes
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
            assert all(frame == bytes([(count + n) % 1000 % 256]) * 100 for n, frame in enumerate(got))
            count += got.count
            return count == total

        until(drain, listener, connector)


def test_wait_sleeps_until_its_time_when_nothing_comes(url: str) -> None:
    with joined(url) as (listener, _):
        overslept_ns = []
        for _ in range(TRIES):
            end_ns = time.monotonic_ns() + 20_000_000
            assert calls_until(end_ns, listener.wait) <= FEW
            overslept_ns.append(time.monotonic_ns() - end_ns)
        assert min(overslept_ns) < 100_000_000
        assert listener.receive(FrameBatch()) == 0


def test_wait_wakes_when_a_frame_comes(url: str) -> None:
    with joined(url) as (listener, connector):
        batch, took_s = FrameBatch(), []
        for _ in range(TRIES):
            batch.clear()
            start_s, calls = time.monotonic(), 0
            sender = threading.Timer(0.02, connector.send, (FrameBatch.of(b"wake"), 0))
            sender.start()
            while not listener.receive(batch):
                listener.wait(deadline_ns())
                calls += 1
            took_s.append(time.monotonic() - start_s)
            sender.join()
            assert calls <= FEW
        assert min(took_s) < LONGEST_SLEEP_NS / 2e9  # a wake that is lost costs the longest sleep


def test_who_waits_for_room_sleeps_while_frames_lie_unread(url: str) -> None:
    without_broker(url, A_BROKER_HAS_ROOM)
    with joined(url) as (listener, connector):
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


def test_the_peer_s_leaving_is_noticed_by_who_waits_for_room_while_frames_lie_unread(url: str) -> None:
    without_broker(url, AT_A_BROKER_NOBODY_LEAVES)
    if "inproc" in url:
        pytest.skip("libzmq says nothing when an inproc peer leaves; a session ends in band")
    with joined(url) as (listener, connector):
        connector.send(FrameBatch.of(*[b"unread"] * 10), 0)
        listener.wait(deadline_ns())
        chunk = fill(listener)
        connector.close(0)
        with pytest.raises(PeerGone):
            send_and_wait(listener, chunk)


def test_the_peer_s_leaving_is_noticed_although_a_silent_stranger_stays(url: str) -> None:
    if "127.0.0.1" not in url or has_broker(url):
        pytest.skip("strangers need a port of ours")
    batch = FrameBatch()
    with joined(url) as (listener, connector):
        with socket.create_connection(Address.parse(listener.url, TOKEN).host_and_port()):
            until(lambda: listener.refused > 0, listener)
            ours = {(end["local"], end["peer"]) for end in listener.sockets()}
            assert ours == {(end["peer"], end["local"]) for end in connector.sockets()} != set()
            connector.close()
            with pytest.raises(PeerGone):
                until(lambda: listener.receive(batch) > 0, listener)
        if "zeromq" in url:  # the other one of two connections may close a moment later
            until(lambda: listener.sockets() == [])


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


@pytest.mark.parametrize("leaver", [0, 1], ids=["the listener leaves", "the connector leaves"])
def test_the_peer_s_leaving_is_noticed_by_who_waits(leaver: int, url: str) -> None:
    without_broker(url, AT_A_BROKER_NOBODY_LEAVES)
    if "inproc" in url:
        pytest.skip("libzmq says nothing when an inproc peer leaves; a session ends in band")
    with joined(url) as ends:
        ends[leaver].send(FrameBatch.of(b"last"), 0)
        ends[leaver].close()
        batch, stays = FrameBatch(), ends[1 - leaver]
        with pytest.raises(PeerGone):
            until(lambda: stays.receive(batch) > 1, stays)
        assert list(batch) == [b"last"]


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


def test_who_does_not_show_the_token_is_refused_and_hears_nothing(url: str, tmp_path: Path) -> None:
    without_broker(url, AT_A_BROKER_RUNS_HAVE_QUEUES_OF_THEIR_OWN)
    if "inproc" in url:
        pytest.skip("inproc cannot be reached from outside the process")
    with joined(url) as (listener, connector):
        other_keys = make_keys(tmp_path / "other", 1).folder if "keys=" in url else ""
        try:
            stranger = connect(re.sub("keys=.*", f"keys={other_keys}", listener.url), "another-run", deadline_ns(1))
            stranger.send(FrameBatch.of(b"an order"), 0)
        except PeerGone:
            stranger = None  # refused at the door
        got = FrameBatch()
        until(lambda: listener.refused > 0 or listener.receive(got) > 0, listener, connector)
        assert list(carry(listener, connector, FrameBatch.of(*frames(100)))) == frames(100)
        assert listener.receive(got) == 0
        assert got.count == 0
        if stranger:
            stranger.close(0)


def test_a_second_peer_gets_no_part_in_a_conversation_of_two_and_is_counted(url: str) -> None:
    with joined(url) as (listener, connector):
        try:
            second = connect(listener.url, TOKEN, deadline_ns(1))
        except TransportError:
            second = None
        assert list(carry(listener, connector, FrameBatch.of(*frames(100)))) == frames(100)
        greet(connector, listener)
        if not has_broker(url.partition(":")[0]) and "inproc" not in url:
            until(lambda: listener.refused > 0, listener)
        if second:
            second.close(0)


def test_a_place_that_is_taken_is_refused_with_its_name(url: str) -> None:
    with joined(url) as (listener, _), pytest.raises(CannotListen, match="choose another"):
        listen(listener.url, TOKEN)


def test_a_place_is_free_again_after_close(url: str) -> None:
    with joined(url) as (listener, _):
        place = listener.url
    with joined(place):
        pass


def test_an_option_that_nobody_knows_is_refused_with_those_that_are_known(url: str) -> None:
    address = Address.parse(url, TOKEN)
    transport = transport_of(address.scheme)
    transport.check(address)
    known = transport.takes(address.scheme)
    with pytest.raises(BadAddress, match=rf"'cals' is no option.*takes {', '.join(known) or 'none'}"):
        transport.check(replace(address, options={**address.options, "cals": "plain"}))
