"""What every transport promises of peers: who gets in, whose leaving is noticed, and which places there are."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tests.transports.conftest import TOKEN, carry, deadline_ns, greet, joined, until
from tests.transports.contract import fill, frames, with_little_room, without_broker
from transports.base import Address, BadAddress, CannotListen, Link, PeerGone, TransportError
from transports.frames import FrameBatch
from transports.keys import make_keys
from transports.registry import connect, has_broker, listen, transport_of

AT_A_BROKER_NOBODY_LEAVES = "a broker says nothing when a peer leaves; whoever waits for an answer has a time limit"
AT_A_BROKER_RUNS_HAVE_QUEUES_OF_THEIR_OWN = "a stranger to the run's name finds other queues; see amqp/test_link.py"


def send_and_wait(link: Link, chunk: FrameBatch) -> None:
    """Send a batch as a sender does that receives nothing in between."""
    for _ in range(1000):
        if not link.send(chunk, 0):
            link.wait(deadline_ns(), readable=False, writable=True)


def test_connect_returns_before_the_listener_is_served(url: str) -> None:
    listener = listen(url, TOKEN)
    try:
        connector = connect(listener.url, TOKEN, deadline_ns())  # in the listener's own thread, which is here
        greet(connector, listener)
        connector.close()
    finally:
        listener.close()


def test_a_sender_without_room_notices_that_its_peer_left(url: str) -> None:
    """Frames of the peer lie unread."""
    without_broker(url, AT_A_BROKER_NOBODY_LEAVES)
    if "inproc" in url:
        pytest.skip("libzmq says nothing when an inproc peer leaves; a session ends in band")
    with joined(with_little_room(url)) as (listener, connector):
        connector.send(FrameBatch.of(*[b"unread"] * 10), 0)
        listener.wait(deadline_ns())
        chunk = fill(listener)
        connector.close(0)
        with pytest.raises(PeerGone):
            send_and_wait(listener, chunk)
        listener.close(0)


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


def test_a_second_peer_of_a_pair_is_refused_and_counted(url: str) -> None:
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
