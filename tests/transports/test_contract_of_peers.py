"""The promises of every transport about peers: admission, departure, and the places where a link listens."""

from __future__ import annotations

import contextlib
import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tests.transports.conftest import TOKEN, carry, deadline_ns, greet, joined, serve_links_until
from tests.transports.contract import fill, frames, skip_with_broker, with_little_room
from transports.base import Address, BadAddress, CannotListen, Link, PeerGone, TransportError
from transports.frames import FrameBatch
from transports.keys import make_keys
from transports.registry import connect, has_broker, listen, transport_of

INPROC_HIDES_DEPARTURES = "libzmq does not report that an inproc peer left; a session ends by messages"
A_BROKER_HIDES_DEPARTURES = "a broker does not report that a peer left; components use a time limit"
A_BROKER_HAS_QUEUES_FOR_EACH_RUN = "with another token a peer uses other queues; see amqp/test_link.py"


def send_and_wait(link: Link, batch: FrameBatch) -> None:
    """Send the batch again and again, waiting for room, without receiving."""
    for _ in range(1000):
        if not link.send(batch, 0):
            link.wait(deadline_ns(), readable=False, writable=True)


def test_connect_returns_before_the_listener_is_served(url: str) -> None:
    listener = listen(url, TOKEN)
    try:
        connector = connect(listener.url, TOKEN, deadline_ns())  # this thread cannot serve the listener meanwhile
        greet(connector, listener)
        connector.close()
    finally:
        listener.close()


def test_a_sender_without_room_notices_that_its_peer_left(url: str) -> None:
    """It notices although it has not received all frames of the peer."""
    skip_with_broker(url, A_BROKER_HIDES_DEPARTURES)
    if "inproc" in url:
        pytest.skip(INPROC_HIDES_DEPARTURES)
    with joined(with_little_room(url)) as (listener, connector):
        connector.send(FrameBatch.of(*[b"unread"] * 10), 0)
        listener.wait(deadline_ns())
        batch = fill(listener)
        connector.close(0)
        with pytest.raises(PeerGone):
            send_and_wait(listener, batch)
        listener.close(0)


def test_a_link_notices_that_its_peer_left_although_a_stranger_stays(url: str) -> None:
    if "127.0.0.1" not in url or has_broker(url):
        pytest.skip("a stranger needs a port of the listener")
    batch = FrameBatch()
    with joined(url) as (listener, connector):
        with socket.create_connection(Address.parse(listener.url, TOKEN).host_and_port()):
            serve_links_until(lambda: listener.refused > 0, listener)
            listener_pairs = {(end["local"], end["peer"]) for end in listener.sockets()}
            connector_pairs = {(end["peer"], end["local"]) for end in connector.sockets()}
            assert listener_pairs == connector_pairs
            assert listener_pairs
            connector.close()
            with pytest.raises(PeerGone):
                serve_links_until(lambda: listener.receive(batch) > 0, listener)
        if "zeromq" in url:  # of two connections, the second may close a moment later
            serve_links_until(lambda: listener.sockets() == [])


@pytest.mark.parametrize("leaver", ["listener", "connector"])
def test_a_waiting_link_notices_that_its_peer_left(leaver: str, url: str) -> None:
    skip_with_broker(url, A_BROKER_HIDES_DEPARTURES)
    if "inproc" in url:
        pytest.skip(INPROC_HIDES_DEPARTURES)
    with joined(url) as (listener, connector):
        leaves, stays = (listener, connector) if leaver == "listener" else (connector, listener)
        leaves.send(FrameBatch.of(b"last"), 0)
        leaves.close()
        batch = FrameBatch()
        with pytest.raises(PeerGone):
            serve_links_until(lambda: stays.receive(batch) > 1, stays)
        assert list(batch) == [b"last"]


def test_a_peer_without_the_token_is_refused(url: str, tmp_path: Path) -> None:
    skip_with_broker(url, A_BROKER_HAS_QUEUES_FOR_EACH_RUN)
    if "inproc" in url:
        pytest.skip("inproc cannot be reached from outside the process")
    with joined(url) as (listener, connector):
        stranger_url = listener.url
        if "keys=" in url:
            other_keys = make_keys(tmp_path / "other", 1).folder
            stranger_url = re.sub("keys=.*", f"keys={other_keys}", listener.url)
        stranger = None
        with contextlib.suppress(PeerGone):  # it may be refused at once
            stranger = connect(stranger_url, "another-run", deadline_ns(1))
            stranger.send(FrameBatch.of(b"an order"), 0)
        received = FrameBatch()
        serve_links_until(lambda: listener.refused > 0 or listener.receive(received) > 0, listener, connector)
        assert list(carry(listener, connector, FrameBatch.of(*frames(100)))) == frames(100)
        assert listener.receive(received) == 0
        assert received.count == 0, "no frame of the stranger"
        if stranger is not None:
            stranger.close(0)


def test_a_second_peer_of_a_pair_is_refused_and_counted(url: str) -> None:
    with joined(url) as (listener, connector):
        second = None
        with contextlib.suppress(TransportError):  # it may be refused at once
            second = connect(listener.url, TOKEN, deadline_ns(1))
        assert list(carry(listener, connector, FrameBatch.of(*frames(100)))) == frames(100)
        greet(connector, listener)
        if not has_broker(url.partition(":")[0]) and "inproc" not in url:
            serve_links_until(lambda: listener.refused > 0, listener)
        if second is not None:
            second.close(0)


def test_a_second_listener_at_one_place_is_refused(url: str) -> None:
    with joined(url) as (listener, _), pytest.raises(CannotListen, match="choose another"):
        listen(listener.url, TOKEN)


def test_a_place_is_free_again_after_close(url: str) -> None:
    with joined(url) as (listener, _):
        place = listener.url
    with joined(place):
        pass


def test_an_unknown_option_is_refused_with_the_known_options(url: str) -> None:
    address = Address.parse(url, TOKEN)
    transport = transport_of(address.scheme)
    transport.check(address)
    known = ", ".join(transport.option_names(address.scheme)) or "none"
    misspelt = replace(address, options={**address.options, "cals": "plain"})
    with pytest.raises(BadAddress, match=rf"'cals' is no option.*takes {known}"):
        transport.check(misspelt)
