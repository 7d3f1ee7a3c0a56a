"""Links over NNG: what is left when a socket is closed, and which pipes a listener keeps."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pynng
import pytest

from tests.transports.conftest import (
    TOKEN,
    carry,
    connect_while_serving,
    deadline_ns,
    greet,
    joined,
    serve_links_until,
)
from transports.base import BadAddress, Link, Pattern
from transports.frames import FrameBatch
from transports.nng import link as nng_link
from transports.registry import connect, listen
from transports.sockets import read_back

URL = "nng://127.0.0.1:0"
MANY = 3000


def test_what_send_took_leaves_before_the_socket_is_closed() -> None:
    """NNG drops the messages in its queues when a socket is closed."""
    sent = [number.to_bytes(4, "little") * 100 for number in range(MANY)]
    received = FrameBatch(MANY, 1 << 21)
    with joined(URL) as (listener, connector), ThreadPoolExecutor(1) as pool:
        assert connector.send(FrameBatch.of(*sent), 0) == MANY
        closing = pool.submit(connector.close, 30.0)
        serve_links_until(lambda: listener.receive(received) >= 0 and received.count == MANY, listener)
        closing.result()
    assert list(received) == sent


def test_a_frame_that_comes_before_the_report_of_its_pipe_is_received(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a connector took the first frame for that of a stranger, and closed its only pipe."""
    late: list[tuple[nng_link.PipeNews, pynng.Pipe]] = []
    report = nng_link.PipeNews.add
    monkeypatch.setattr(nng_link.PipeNews, "add", lambda news, pipe: late.append((news, pipe)))
    with joined(URL) as (listener, connector):
        for news, pipe in late:
            report(news, pipe)
        assert list(carry(listener, connector, FrameBatch.of(b"after the report"))) == [b"after the report"]
        assert connector.refused == listener.refused == 0


def test_a_listener_with_many_peers_loses_no_frame_however_slow_a_peer_is() -> None:
    """NNG drops a frame for a peer whose queue of two is full."""
    sent = [number.to_bytes(4, "little") * 2500 for number in range(3000)]
    batch = FrameBatch.of(*sent)
    room = batch.used_bytes + (1 << 17)
    received_by_quick = FrameBatch(len(sent) + 1, room)
    received_by_slow = FrameBatch(len(sent) + 1, room)
    first = 0
    with joined(f"{URL}?hwm=10", pattern=Pattern.FAN_IN) as (listener, quick):
        slow = connect_while_serving(listener, pattern=Pattern.FAN_IN)
        greet_listener(slow, listener)
        refusals = 0
        while refusals < 100:  # until the connection to the slow peer is full
            first_before = first
            first = listener.send(batch, first)
            quick.receive(received_by_quick)
            refusals = refusals + 1 if first == first_before else 0
            listener.wait(time.monotonic_ns() + 1_000_000, readable=False, writable=True)
        assert first < batch.count, "the listener does not stop for the slow peer"

        def all_came() -> bool:
            nonlocal first
            if first < batch.count:
                first = listener.send(batch, first)
            quick.receive(received_by_quick)
            slow.receive(received_by_slow)
            return received_by_quick.count == received_by_slow.count == len(sent)

        serve_links_until(all_came, quick, slow)
        assert list(received_by_quick) == list(received_by_slow) == sent
        slow.close()


def greet_listener(connector: Link, listener: Link) -> None:
    """Send one frame, so that the listener has admitted the connector."""
    assert list(carry(connector, listener, FrameBatch.of(b"here"))) == [b"here"]


def test_a_pipe_that_never_shows_the_token_makes_room_for_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nng_link, "CANDIDATE_NS", 50_000_000)
    listener = listen(URL, TOKEN)
    with pynng.Pair0() as stranger:
        stranger.dial(listener.url.replace("nng", "tcp"), block=True)
        serve_links_until(lambda: listener._refused > 0, listener)  # type: ignore[attr-defined]
        connector = connect(listener.url, TOKEN, deadline_ns())
        stranger.close()
        greet(connector, listener)
    connector.close()
    listener.close()


def test_another_protocol_of_nng_is_no_peer() -> None:
    with joined(URL) as (listener, connector), pynng.Push0() as stranger:
        stranger.dial(listener.url.replace("nng", "tcp"), block=False)
        greet(connector, listener)


def test_a_host_that_nng_cannot_use_is_refused_in_a_sentence() -> None:
    with pytest.raises(BadAddress, match="NNG cannot use this address"):
        listen("nng://256.0.0.1:7000", TOKEN)


def test_bytes_that_were_sent_again_do_not_stand_for_frames_that_have_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_lost_packets(descriptors: list[int], nodelay_asked: bool) -> list[dict[str, Any]]:
        """Return what the kernel reports, with a gigabyte that was sent again."""
        connections = read_back(descriptors, nodelay_asked)
        return [{**connection, "bytes_out": connection["bytes_out"] + 10**9} for connection in connections]

    monkeypatch.setattr(nng_link, "read_back", with_lost_packets)
    frames = FrameBatch.of(*[bytes(10_000)] * MANY)
    first = 0
    with joined(f"{URL}?hwm=10") as (_, connector):  # the listener reads nothing
        refusals = 0
        while refusals < 100:  # until the connection is full
            first_before = first
            first = connector.send(frames, first)
            refusals = refusals + 1 if first == first_before else 0
            connector.wait(time.monotonic_ns() + 1_000_000, readable=False, writable=True)
        assert first < frames.count
        assert not connector.drain(time.monotonic_ns() + 50_000_000)
        connector.close(0)


def test_a_peer_that_has_left_does_not_hold_up_the_listener_s_close() -> None:
    with joined(URL, pattern=Pattern.FAN_IN) as (listener, _):
        leaving = connect_while_serving(listener, pattern=Pattern.FAN_IN)
        greet_listener(leaving, listener)
        news = FrameBatch.of(b"news")
        serve_links_until(lambda: listener.send(news, 0) == 1, listener)
        received = FrameBatch()
        serve_links_until(lambda: leaving.receive(received) > 0, leaving)
        leaving.close()
        serve_links_until(lambda: bool(listener._gone), listener)  # type: ignore[attr-defined]
        assert listener.drain(time.monotonic_ns() + 2_000_000_000)
