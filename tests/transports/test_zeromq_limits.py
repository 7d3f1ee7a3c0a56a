"""What a ZeroMQ listener takes from a peer that it admitted, and how many strangers it bears."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from contextlib import closing
from pathlib import Path

import pytest
import zmq
from zmq.utils.monitor import recv_monitor_message

from tests.transports.conftest import TOKEN, carry, connect_while_serving, greet, joined, until
from transports.base import CannotListen, Pattern, PeerGone
from transports.frames import FrameBatch
from transports.registry import listen
from transports.zeromq.doorman import MOST_STRANGERS

ANYWHERE = "zeromq://127.0.0.1:0"


def test_a_peer_that_sends_60_mb_is_dropped_and_the_others_are_served() -> None:
    with joined(ANYWHERE, pattern=Pattern.FAN_IN) as (listener, connector):
        with zmq.Context() as context, context.socket(zmq.DEALER) as greedy:
            greedy.linger, greedy.plain_username, greedy.plain_password = 0, b"exchange", TOKEN.encode()
            with greedy.get_monitor_socket(zmq.EVENT_DISCONNECTED) as monitor:
                greedy.connect(listener.url.replace("zeromq", "tcp"))
                greedy.send(bytes(60 << 20))
                until(lambda: bool(monitor.poll(0)), listener)
                assert recv_monitor_message(monitor)["event"] == zmq.EVENT_DISCONNECTED
        assert listener.receive(FrameBatch()) == 0
        assert list(carry(connector, listener, FrameBatch.of(b"served"))) == [b"served"]


@pytest.mark.parametrize("pattern", [Pattern.PAIR, Pattern.FAN_IN])
def test_300_strangers_that_say_nothing_hold_no_more_places_than_there_are(pattern: Pattern) -> None:
    def held() -> int:
        return len(os.listdir("/proc/self/fd"))

    with (
        contextlib.closing(listen("zeromq://127.0.0.1:0", TOKEN, pattern)) as listener,
        contextlib.ExitStack() as crowd,
    ):
        before = held()
        host, port = listener.url.removeprefix("zeromq://").split(":")
        for _ in range(300):
            crowd.enter_context(socket.create_connection((host, int(port))))
        until(lambda: listener.refused == 300 and held() - before - 300 <= MOST_STRANGERS, listener)
        with closing(connect_while_serving(listener, pattern=pattern)) as connector:
            greet(connector, listener)


@pytest.mark.parametrize("way", ["inbound", "outbound"])
def test_a_second_peer_with_the_token_swallows_nothing_of_two_connections(way: str) -> None:
    with joined(f"{ANYWHERE}?topology=simplex") as (listener, connector), zmq.Context() as context:
        inbound, outbound = listener.bound.values()  # type: ignore[attr-defined]
        with context.socket(zmq.PUSH if way == "inbound" else zmq.PULL) as second:
            second.linger, second.plain_username, second.plain_password = 0, b"exchange", TOKEN.encode()
            second.connect(inbound if way == "inbound" else outbound)
            with contextlib.suppress(zmq.ZMQError):  # not connected, or a PULL
                second.send(b"an order", zmq.DONTWAIT)
            until(lambda: listener.refused > 0, listener)
            frames = [bytes([number]) for number in range(100)]
            assert list(carry(listener, connector, FrameBatch.of(*frames))) == frames
            assert list(carry(connector, listener, FrameBatch.of(*frames))) == frames


def test_a_peer_that_went_and_came_back_between_two_looks_has_gone() -> None:
    with joined(ANYWHERE) as (listener, connector):
        listener.close(0)
        with closing(listen(listener.url, TOKEN)) as successor:
            # libzmq connects again by itself
            until(lambda: successor._inbound_doorman._admitted == 1, successor)  # type: ignore[attr-defined]
            with pytest.raises(PeerGone):
                connector.wait(time.monotonic_ns() + 10**9)


def test_a_peer_that_left_before_its_first_frame_has_gone() -> None:
    """Although another stays."""
    with closing(listen(ANYWHERE, TOKEN)) as listener, zmq.Context() as context:
        doorman = listener._inbound_doorman  # type: ignore[attr-defined]
        with context.socket(zmq.PAIR) as peer:
            peer.linger, peer.plain_username, peer.plain_password = 0, b"exchange", TOKEN.encode()
            peer.connect(listener.url.replace("zeromq", "tcp"))
            until(lambda: doorman._admitted == 1, listener)
            host, port = listener.url.removeprefix("zeromq://").split(":")
            silent = socket.create_connection((host, int(port)))
            until(lambda: doorman._accepted == 2, listener)
        with silent:
            with pytest.raises(PeerGone):
                until(lambda: False, listener)
            assert len(doorman._open) == 1


def test_a_path_is_free_once_its_listener_was_killed(tmp_path: Path) -> None:
    """A path that has a listener or a file is not free."""
    left, file = tmp_path / "left", tmp_path / "file"
    with socket.socket(socket.AF_UNIX) as died:  # what a killed process leaves: a socket that nobody removed
        died.bind(str(left))
    file.write_text("a user's own")
    link = listen(f"zeromq+ipc://{left}", TOKEN)
    for place in (left, file):
        with pytest.raises(CannotListen, match="exists; choose another path"):
            listen(f"zeromq+ipc://{place}", TOKEN)
    link.close()
