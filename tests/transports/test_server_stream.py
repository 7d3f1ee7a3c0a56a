"""The buffers of a connection to a server, filled and flushed by Python and by compiled calls."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transports import compiled_stream
from transports.base import PeerGone
from transports.lending import NOTICE
from transports.server_stream import BEGIN, BOUNDS, END, UNSENT, UNSENT_END, ServerStream

BOUNDS_AT = 1  # behind the notice of lent calls
INCOMING_BYTES = 100
OUTGOING_BYTES = 1 << 20


class Stream(ServerStream):
    """A stream without a protocol, and the socket of its server."""

    def __init__(self) -> None:
        ours, self.server = socket.socketpair()
        self.numbers = np.zeros(BOUNDS_AT + BOUNDS, np.int64)
        incoming = np.zeros(INCOMING_BYTES, np.uint8)
        super().__init__(ours, self.numbers[BOUNDS_AT:], incoming, np.zeros(OUTGOING_BYTES, np.uint8))

    def gone(self, why: str) -> PeerGone:
        return PeerGone(why)

    def take(self, most: int) -> bytes:
        """What a reader of at most this many bytes takes."""
        begin = int(self.bounds[BEGIN])
        until = min(begin + most, int(self.bounds[END]))
        self.bounds[BEGIN] = until
        return self.incoming[begin:until].tobytes()


def fill_in_python(stream: Stream) -> None:
    stream.fill()


def fill_compiled(stream: Stream) -> None:
    compiled_stream.fill(stream.numbers, BOUNDS_AT, stream.fd, stream.incoming)


Fill = Callable[[Stream], None]


@pytest.fixture
def stream() -> Iterator[Stream]:
    stream = Stream()
    yield stream
    stream.close()
    stream.server.close()


@pytest.mark.parametrize("fill", [fill_in_python, fill_compiled])
@given(takes=st.lists(st.integers(0, INCOMING_BYTES), max_size=30))
def test_each_byte_comes_once_and_in_order(fill: Fill, takes: list[int]) -> None:
    stream = Stream()
    sent = np.arange(sum(takes) + INCOMING_BYTES).astype(np.uint8).tobytes()
    stream.server.sendall(sent)
    taken = b""
    for most in takes:
        fill(stream)
        taken += stream.take(most)
    assert len(taken) == sum(takes)  # each fill makes the buffer full again
    assert taken == sent[: len(taken)]
    stream.close()
    stream.server.close()


def test_what_the_socket_does_not_take_waits_for_python(stream: Stream) -> None:
    data = np.arange(OUTGOING_BYTES).astype(np.uint8)
    stream.outgoing[:] = data

    compiled_stream.flush(stream.numbers, BOUNDS_AT, stream.fd, stream.outgoing, OUTGOING_BYTES)

    assert stream.numbers[NOTICE] == 1
    assert 0 < stream.bounds[UNSENT] < OUTGOING_BYTES
    assert stream.bounds[UNSENT_END] == OUTGOING_BYTES
    received = bytearray()
    while len(received) < OUTGOING_BYTES:
        stream.flush()
        received += stream.server.recv(OUTGOING_BYTES)
    assert received == data.tobytes()
    assert not stream.has_unsent


def test_a_server_that_hangs_up_is_noticed(stream: Stream) -> None:
    stream.server.close()

    fill_compiled(stream)

    assert stream.numbers[NOTICE] == 1
    with pytest.raises(PeerGone, match="closed the connection"):
        fill_in_python(stream)
