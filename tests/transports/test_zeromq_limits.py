"""Limits of a ZeroMQ listener: the size of messages, the number of strangers, and peers that come and go."""

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

from tests.machine import until
from tests.transports.conftest import TOKEN, carry, connect_while_serving, greet, joined, serve_links_until
from transports.base import CannotListen, Pattern, PeerGone
from transports.frames import FrameBatch
from transports.registry import listen
from transports.zeromq import endpoints
from transports.zeromq.doorman import MOST_STRANGERS

ANYWHERE = "zeromq://127.0.0.1:0"


def show_token(socket: zmq.Socket[bytes]) -> None:
    """Let this socket show the run's token when it connects."""
    socket.linger = 0
    socket.plain_username = b"exchange"
    socket.plain_password = TOKEN.encode()


def test_a_peer_that_sends_60_mb_is_disconnected_and_others_are_served() -> None:
    with joined(ANYWHERE, pattern=Pattern.FAN_IN) as (listener, connector):
        with zmq.Context() as context, context.socket(zmq.DEALER) as greedy:
            show_token(greedy)
            with greedy.get_monitor_socket(zmq.EVENT_DISCONNECTED) as monitor:
                greedy.connect(listener.url.replace("zeromq", "tcp"))
                greedy.send(bytes(60 << 20))
                serve_links_until(lambda: bool(monitor.poll(0)), listener)
                assert recv_monitor_message(monitor)["event"] == zmq.EVENT_DISCONNECTED
        assert listener.receive(FrameBatch()) == 0
        assert list(carry(connector, listener, FrameBatch.of(b"served"))) == [b"served"]


@pytest.mark.parametrize("pattern", [Pattern.PAIR, Pattern.FAN_IN])
def test_300_silent_strangers_hold_only_a_limited_number_of_descriptors(pattern: Pattern) -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    with (
        contextlib.closing(listen("zeromq://127.0.0.1:0", TOKEN, pattern)) as listener,
        contextlib.ExitStack() as crowd,
    ):
        before = open_descriptors()
        host, port = listener.url.removeprefix("zeromq://").split(":")
        for _ in range(300):
            crowd.enter_context(socket.create_connection((host, int(port))))

        def are_limited() -> bool:
            held_by_the_listener = open_descriptors() - before - 300
            return listener.refused == 300 and held_by_the_listener <= MOST_STRANGERS

        serve_links_until(are_limited, listener)
        with closing(connect_while_serving(listener, pattern=pattern)) as connector:
            greet(connector, listener)


@pytest.mark.parametrize("pattern", [Pattern.PAIR, Pattern.FAN_IN])
def test_a_peer_whose_handshake_ran_out_of_time_is_not_refused(
    pattern: Pattern, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ran out of time because the listener did not serve its door; the peer connects again."""
    monkeypatch.setattr(endpoints, "HANDSHAKE_MS", 250)
    kind = zmq.PAIR if pattern is Pattern.PAIR else zmq.DEALER
    with closing(listen(ANYWHERE, TOKEN, pattern)) as listener, zmq.Context() as context, context.socket(kind) as peer:
        doorman = listener._inbound_doorman  # type: ignore[attr-defined]
        show_token(peer)
        with peer.get_monitor_socket(zmq.EVENT_DISCONNECTED) as monitor:
            peer.connect(listener.url.replace("zeromq", "tcp"))
            until(lambda: monitor.poll(0), "the listener ends a handshake that lasts too long")
        serve_links_until(lambda: doorman._admitted == 1, listener)
        assert doorman._accepted > 1
        assert listener.refused == 0


@pytest.mark.parametrize("direction", ["inbound", "outbound"])
def test_a_second_peer_with_the_token_takes_no_frame_of_a_simplex_link(direction: str) -> None:
    with joined(f"{ANYWHERE}?topology=simplex") as (listener, connector), zmq.Context() as context:
        inbound, outbound = listener.bound.values()  # type: ignore[attr-defined]
        with context.socket(zmq.PUSH if direction == "inbound" else zmq.PULL) as second:
            show_token(second)
            second.connect(inbound if direction == "inbound" else outbound)
            with contextlib.suppress(zmq.ZMQError):  # it is not connected yet, or is a PULL
                second.send(b"an order", zmq.DONTWAIT)
            serve_links_until(lambda: listener.refused > 0, listener)
            frames = [bytes([number]) for number in range(100)]
            assert list(carry(listener, connector, FrameBatch.of(*frames))) == frames
            assert list(carry(connector, listener, FrameBatch.of(*frames))) == frames


def test_a_peer_that_was_replaced_between_two_waits_has_gone() -> None:
    with joined(ANYWHERE) as (listener, connector):
        listener.close(0)
        with closing(listen(listener.url, TOKEN)) as successor:
            # libzmq connects again by itself
            serve_links_until(lambda: successor._inbound_doorman._admitted == 1, successor)  # type: ignore[attr-defined]
            with pytest.raises(PeerGone):
                connector.wait(time.monotonic_ns() + 10**9)


def test_a_link_notices_that_its_peer_left_before_its_first_frame() -> None:
    """It notices although a stranger stays."""
    with closing(listen(ANYWHERE, TOKEN)) as listener, zmq.Context() as context:
        doorman = listener._inbound_doorman  # type: ignore[attr-defined]
        with context.socket(zmq.PAIR) as peer:
            show_token(peer)
            peer.connect(listener.url.replace("zeromq", "tcp"))
            serve_links_until(lambda: doorman._admitted == 1, listener)
            host, port = listener.url.removeprefix("zeromq://").split(":")
            silent = socket.create_connection((host, int(port)))
            serve_links_until(lambda: doorman._accepted == 2, listener)
        with silent:
            with pytest.raises(PeerGone):
                serve_links_until(lambda: False, listener)
            assert len(doorman._open) == 1


def test_a_path_is_free_once_its_listener_was_killed(tmp_path: Path) -> None:
    """A path with a listener or with a file is not free."""
    path = tmp_path / "link"
    with socket.socket(socket.AF_UNIX) as killed:  # a killed process does not remove its socket
        killed.bind(str(path))
    file = tmp_path / "file"
    file.write_text("a user's own")
    link = listen(f"zeromq+ipc://{path}", TOKEN)
    for place in (path, file):
        with pytest.raises(CannotListen, match="exists; choose another path"):
            listen(f"zeromq+ipc://{place}", TOKEN)
    link.close()
