"""The compiled scanner and writer of NATS's protocol, against the obvious ones, over bytes cut anywhere."""

from __future__ import annotations

import contextlib
import re
import socket

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transports.base import PeerGone
from transports.blocks import lay_out
from transports.frames import FrameBatch
from transports.nats.connection import BEGIN, END, NO_ADDRESSES, Connection
from transports.nats.protocol import FULL, INCOMPLETE, OTHER, scan_frames
from transports.server_address import ServerAddress

HEAD = b"PUB exchange.run.in "
SERVER = ServerAddress("127.0.0.1", 4222, "")

frames = st.lists(st.binary(max_size=300), max_size=8)
other_blocks = st.sampled_from(
    [
        b"PING\r\n",
        b"PONG\r\n",
        b"+OK\r\n",
        b"-ERR 'Slow Consumer'\r\n",
        b'INFO {"version":"2.10.0"}\r\n',
        b"MSG exchange.run.words 2 5\r\nhello\r\n",
        b"MSG exchange.run.words 21 reply.to 0\r\n\r\n",
        b"HMSG exchange.run.nobody.a.b 3 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
    ]
)


def message(frame: bytes, reply_to: bytes = b"") -> bytes:
    """A frame as the server delivers it."""
    return b"MSG exchange.run.in 1 %s%d\r\n%s\r\n" % (reply_to, len(frame), frame)


def scanned(stream: bytes, largest: int = 1 << 17, room: int = 100) -> tuple[int, int, list[bytes], int]:
    """Why the scan ended, where, the frames, and how many were too long."""
    batch = FrameBatch(room)
    data = np.frombuffer(stream, np.uint8).copy()
    why, at, count, too_long = scan_frames(
        data, 0, len(data), largest, batch.buffer, batch.offsets, 0,
        NO_ADDRESSES.addresses, NO_ADDRESSES.lengths, NO_ADDRESSES.counts,
    )  # fmt: skip
    batch.count = int(count)
    return int(why), int(at), list(batch), int(too_long)


@given(st.lists(st.one_of(st.binary(max_size=300), other_blocks.map(lambda block: (block,))), max_size=8), st.data())
def test_frames_and_other_blocks_come_out_in_order_however_bytes_are_cut(
    blocks: list[bytes | tuple[bytes]], data: st.DataObject
) -> None:
    stream = b"".join(message(block) if isinstance(block, bytes) else block[0] for block in blocks)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    ours, theirs = socket.socketpair()
    came: list[bytes] = []
    others = 0
    with ours, theirs:
        connection = Connection(ours, SERVER, nodelay=True)
        for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            theirs.sendall(stream[begin:end])
            connection.fill()
            batch = FrameBatch()
            while connection.take_frames(batch) == OTHER and connection.next_control() is not None:
                others += 1
            came += list(batch)
    assert came == [block for block in blocks if isinstance(block, bytes)]
    assert others == sum(isinstance(block, tuple) for block in blocks)


@given(st.binary(max_size=400), st.binary(max_size=40))
def test_bytes_that_are_no_protocol_end_in_an_error_or_wait_for_more(garbage: bytes, frame: bytes) -> None:
    stream = message(frame) + garbage
    why, at, found, _ = scanned(stream)
    assert found[0] == frame
    assert why in (INCOMPLETE, FULL, OTHER)
    assert len(message(frame)) <= at <= len(stream)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours, SERVER, nodelay=True)
        theirs.sendall(garbage)
        connection.fill()
        batch = FrameBatch()
        with contextlib.suppress(PeerGone):  # the bytes were recognised as no protocol
            for _ in range(len(garbage) + 1):
                if connection.take_frames(batch) != OTHER or connection.next_control() is None:
                    break
            else:
                raise AssertionError("the connection makes no progress")
        assert connection.numbers[BEGIN] <= connection.numbers[END]


@given(frames, st.integers(0, 3))
def test_what_is_laid_out_is_what_a_server_would_read(sent: list[bytes], first: int) -> None:
    batch, out = FrameBatch.of(*sent), np.zeros(4000, np.uint8)
    first = min(first, batch.count)
    head = np.frombuffer(HEAD, np.uint8).copy()
    taken, used = lay_out(batch.buffer, batch.offsets, first, batch.count, head, out, 0)
    expected = b"".join(b"%s%d\r\n%s\r\n" % (HEAD, len(frame), frame) for frame in sent[first:taken])
    assert out[:used].tobytes() == expected


def test_a_buffer_without_room_takes_the_frames_that_fit() -> None:
    batch = FrameBatch.of(b"x" * 100, b"y" * 100, b"z" * 100)
    head = np.frombuffer(HEAD, np.uint8).copy()
    taken, used = lay_out(batch.buffer, batch.offsets, 0, 3, head, np.zeros(300, np.uint8), 0)
    assert (taken, used) == (2, 2 * (len(HEAD) + 3 + 2 + 100 + 2))


def test_a_full_batch_leaves_the_rest_where_it_is() -> None:
    why, at, found, _ = scanned(message(b"one") + message(b"two") + message(b"three"), room=2)
    assert (why, at, found) == (FULL, len(message(b"one") + message(b"two")), [b"one", b"two"])


def test_a_frame_that_is_too_long_is_counted_and_left_out() -> None:
    why, _, found, too_long = scanned(message(b"x" * 50) + message(b"short"), largest=10)
    assert (why, found, too_long) == (INCOMPLETE, [b"short"], 1)


def test_a_reply_address_in_a_message_is_passed_over() -> None:
    assert scanned(message(b"frame", b"somebody.replies "))[2] == [b"frame"]


def test_a_size_with_too_many_digits_is_no_frame() -> None:
    assert scanned(b"MSG a 1 99999999\r\n")[0] == OTHER
    assert re.search("no NATS protocol", str(_refusal(b"MSG a 1 99999999\r\nx")))


def _refusal(stream: bytes) -> PeerGone | None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(ours, SERVER, nodelay=True)
        theirs.sendall(stream)
        connection.fill()
        try:
            connection.next_control()
        except PeerGone as error:
            return error
    return None
