"""Every decoder of bytes from a link counts them, refuses them, or raises the error that the decoder documents."""

from __future__ import annotations

import contextlib
import socket
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exchange.checksum import StreamChecksum
from exchange.instances import role_of
from exchange.messages import (
    DepthLevel,
    End,
    Hello,
    MalformedMessage,
    MarketQuote,
    MarketTrade,
    Snapshot,
    encode,
)
from exchange.messages import decode as decode_frame
from exchange.session import Disagreement
from exchange_simulation.launching.record.reading import completion_by_pair, read_spool, spool_records, traffic_by_pair
from gateway.completion import Completion
from gateway.intake import Intake
from gateway.market_data.subscriber import Subscriber
from stats_reporter.service import Reporter
from stats_reporter.writer import SpoolWriter
from tests.decoders.damage import EVERY_MESSAGE, FRAMES, HELLO, ORDERS, RUN, TERMS, damaged
from tests.transports.conftest import TOKEN, connect_while_serving, greet
from transports.base import Link
from transports.frames import FrameBatch
from transports.rabbitmq.node import CONNECTION_START, FRAME_HEADER, greeting_of
from transports.registry import listen

GREETING = CONNECTION_START + b"\0\x09" + struct.pack(">I", 12) + b"\x07productS" + struct.pack(">I", 3) + b"abc"


class DeliveringLink(Link):
    """A link that delivers these frames once."""

    url = "scripted://peer"

    def __init__(self, frames: list[bytes]) -> None:
        self._frames = frames

    def receive(self, batch: FrameBatch) -> int:
        frames = self._frames
        self._frames = []
        for frame in frames:
            batch.append(frame)
        return len(frames)

    def send(self, batch: FrameBatch, first: int) -> int:
        return batch.count

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None: ...

    def close(self, linger_s: float = 1.0) -> None: ...


@given(frames=st.lists(damaged(*FRAMES), max_size=8))
def test_a_reporter_records_or_ignores_arbitrary_frames(frames: list[bytes], tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("spool")
    reporter = Reporter(RUN, DeliveringLink(frames), SpoolWriter(folder / "spool"), 1.0)
    assert reporter._take() == len(frames)
    reporter._spool.publish()
    for record in spool_records(folder):
        assert role_of(record["source"]) in ("gateway", "engine", "reporter")
    spool = read_spool(folder)
    completion_by_pair(spool, warm_up_s=0)
    traffic_by_pair(spool)


@given(frames=st.lists(damaged(*FRAMES, *EVERY_MESSAGE, ORDERS), max_size=8))
def test_a_gateway_counts_every_arbitrary_frame(frames: list[bytes]) -> None:
    completion = Completion(scheduled=False, sampling_interval=2)
    completion.handed_over(10, 1)
    intake = Intake(DeliveringLink(frames), completion, StreamChecksum())
    assert intake.take() == len(frames)
    counted = completion.received + intake.junk
    if intake.hello is not None:
        counted += 1
    if intake.end is not None:
        counted += 1
    not_empty = [frame for frame in frames if frame]  # an empty frame is a sign of life
    assert counted >= len(not_empty)


MARKET_DATA = [
    encode(MarketTrade(instrument=0, sequence=1, read_ns=1, price=500, volume=1)),
    encode(MarketQuote(instrument=0, sequence=2, read_ns=1, bid=499, ask=501)),
    encode(DepthLevel(instrument=0, sequence=3, read_ns=1, side=2, place=9, price=499, volume=5)),
]
SNAPSHOT = encode(HELLO) + encode(Snapshot(instrument=0, sequence=0, subscriber=1, bid=499, ask=501)) + MARKET_DATA[2]
END = encode(End(sent=3, sent_checksum=0, received=0, received_checksum=0))


@given(frames=st.lists(damaged(*MARKET_DATA, SNAPSHOT, END, *EVERY_MESSAGE), max_size=8))
@example(frames=[SNAPSHOT.replace(b"\x02\x09", b"\x02\x0a")])  # there is no place after 9
@example(frames=[SNAPSHOT.replace(b"\x02\x09", b"\x03\x09")])  # there are two sides
@example(frames=[encode(HELLO) + encode(Snapshot(0, 2**64 - 1, 1, 499, 501))])
@example(frames=[SNAPSHOT, encode(End(2**64 - 1, 0, 0, 0))])
def test_a_subscriber_counts_arbitrary_frames_of_market_data(frames: list[bytes]) -> None:
    subscriber = Subscriber(DeliveringLink([SNAPSHOT, *frames]), TERMS, number=1, timeout_s=1.0)
    subscriber.start()
    with contextlib.suppress(Disagreement):
        subscriber.take_turn()
    result = subscriber.result()
    assert result.snapshots >= 1
    assert result.messages == result.trades + result.quotes + result.levels
    assert result.junk_frames <= len(frames)


@given(frame=damaged(*FRAMES, *EVERY_MESSAGE, encode(Hello(1, 2, 1, 0, 1, 999, 3, 4, 5, 1, 1, 1))))
def test_a_frame_is_a_message_or_malformed(frame: bytes) -> None:
    with contextlib.suppress(MalformedMessage):
        assert encode(decode_frame(frame)) == frame


PREAMBLES = [start + struct.pack("<H", 5) + b"a-run" for start in (b"exchange", b"exchang>", b"exchang<")]
"""What a connector sends first: a duplex link, and the two directions of a simplex link."""
ZMTP = b"\xff" + bytes(7) + b"\x01\x7f\x03\x00PLAIN" + bytes(47)


@given(greetings=st.lists(damaged(*PREAMBLES, ZMTP, b"GET / HTTP/1.1\r\n\r\n"), min_size=1, max_size=4))
@pytest.mark.parametrize("scheme", ["tcp", "zeromq"])
def test_a_listener_admits_only_the_peer_with_the_token(scheme: str, greetings: list[bytes]) -> None:
    """Each stranger sends other bytes, and stays connected when the peer comes."""
    with contextlib.ExitStack() as stack:
        listener = listen(f"{scheme}://127.0.0.1:0", TOKEN)
        stack.callback(listener.close)
        host, port = listener.url.partition("://")[2].split(":")
        for greeting in greetings:
            if greeting.startswith(PREAMBLES[0]):
                continue  # it has the token
            stranger = stack.enter_context(socket.create_connection((host, int(port))))
            with contextlib.suppress(OSError):
                stranger.sendall(greeting)
        connector = connect_while_serving(listener)
        stack.callback(connector.close)
        greet(connector, listener)
        assert listener.receive(FrameBatch()) == 0


class BrokerSocket:
    """A socket to a broker that sends these bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __enter__(self) -> BrokerSocket:
        return self

    def __exit__(self, *_: object) -> None: ...

    def settimeout(self, _s: float) -> None: ...

    def connect(self, _place: tuple[str, int]) -> None: ...

    def sendall(self, _data: bytes) -> None: ...

    def recv(self, most: int) -> bytes:
        piece = self._data[:most]
        self._data = self._data[most:]
        return piece


@given(data=damaged(FRAME_HEADER.pack(1, 0, len(GREETING)) + GREETING, GREETING))
def test_a_broker_s_greeting_is_read_or_ignored(data: bytes) -> None:
    greeting = greeting_of("127.0.0.1", 1, 1.0, lambda: BrokerSocket(data))  # type: ignore[arg-type, return-value]
    assert greeting is None or isinstance(greeting.product, str)
