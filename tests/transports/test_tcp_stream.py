"""Frames on a TCP stream: any split of the bytes gives the same frames, and arbitrary bytes do no harm."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transports.conftest import deadline_ns
from transports.base import Address, Pattern, PeerGone
from transports.frames import FrameBatch
from transports.tcp.link import TcpLink
from transports.tcp.stream import TcpStream, split_frames

FRAMES = st.lists(st.binary(max_size=40), max_size=20)


def framed(frames: list[bytes]) -> bytes:
    """Return the bytes of these frames on the stream: each follows its length."""
    return b"".join(struct.pack("<I", len(frame)) + frame for frame in frames)


@given(FRAMES, st.data())
def test_any_split_of_the_stream_gives_the_same_frames(frames: list[bytes], data: st.DataObject) -> None:
    stream = framed(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    inbound = np.zeros(4096, np.uint8)
    at = 0
    batch = FrameBatch(64)
    for start, end in pairwise([0, *cuts, len(stream)]):
        inbound[start:end] = np.frombuffer(stream[start:end], np.uint8)
        at, batch.count, too_long = split_frames(inbound, at, end, batch.buffer, batch.offsets, batch.count, 1000)
        assert too_long == 0
    assert list(batch) == frames
    assert at == len(stream)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_give_frames_or_a_refusal(garbage: bytes) -> None:
    inbound = np.frombuffer(garbage, np.uint8).copy()
    batch = FrameBatch(8, 256, 64)
    at, count, too_long = split_frames(inbound, 0, len(inbound), batch.buffer, batch.offsets, 0, 64)
    assert 0 <= at <= len(garbage)
    assert count <= 8
    batch.count = count
    assert framed(list(batch)) == garbage[:at]
    assert too_long == 0 or too_long > 64


def test_frames_that_the_kernel_takes_in_parts_arrive_whole() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        stream = TcpStream(ours)
        batch = FrameBatch.of(*[bytes([number]) * 50_000 for number in range(20)])
        expected = framed(list(batch))
        sent = stream.send(batch, 0)
        received = b""
        theirs.setblocking(False)
        while len(received) < len(expected):
            try:
                received += theirs.recv(1 << 16)
            except BlockingIOError:
                sent = stream.send(batch, sent)
        assert received == expected
        stream.close(0)


def test_frames_that_wait_for_room_in_a_batch_arrive_whole_and_in_order() -> None:
    """Few frames fit into the batch and dozens into the stream's memory, large and small ones, the last in part."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.setblocking(False)
        stream = TcpStream(ours)
        frames = [bytes([number]) * (50_000 if number % 3 == 0 else number) for number in range(200)]
        unsent = framed(frames)
        received: list[bytes] = []
        batch = FrameBatch(4, 60_000, 60_000)
        until_ns = deadline_ns(60)
        while len(received) < len(frames):
            assert time.monotonic_ns() < until_ns, f"{len(received)} of {len(frames)} frames came"
            with contextlib.suppress(BlockingIOError):
                while unsent:
                    unsent = unsent[theirs.send(unsent) :]
                    stream._read()  # takes in more than the batch takes
            batch.clear()
            stream.receive(batch)
            received += batch
        assert received == frames
        stream.close(0)


def test_a_frame_longer_than_the_batch_takes_ends_the_connection() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        stream = TcpStream(ours)
        theirs.sendall(struct.pack("<I", 1 << 30))
        with pytest.raises(PeerGone, match="1073741824 bytes"):
            stream.receive(FrameBatch())
        stream.close(0)


def test_the_last_frame_of_a_closed_connection_survives_a_full_batch() -> None:
    link = TcpLink("tcp://x", Address("tcp", "x", "", pattern=Pattern.FAN_IN))

    def add_writer(*frames: bytes) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        link._streams.append(TcpStream(ours))
        theirs.sendall(framed(list(frames)))
        return theirs

    stays = add_writer(*[b"a"] * 8)
    leaves = add_writer(b"b")
    leaves.close()
    received = []
    batch = FrameBatch(4)
    while len(received) < 9:
        batch.clear()
        assert link.receive(batch) > 0
        received += batch
    assert received == [b"a"] * 8 + [b"b"]
    stays.close()
    link.close(0)


def test_sending_to_a_peer_that_is_gone_is_an_error() -> None:
    ours, theirs = socket.socketpair()
    stream = TcpStream(ours)
    batch = FrameBatch.of(b"nobody", b"listens")
    theirs.close()
    stream.send(batch, 0)
    with pytest.raises(PeerGone):
        stream.send(batch, 0)
    stream.close(0)


def test_a_frame_longer_than_the_longest_is_refused() -> None:
    """Without the check, compiled code writes it beyond its memory, and the process dies."""
    ours, theirs = socket.socketpair()
    stream = TcpStream(ours)
    with theirs, pytest.raises(ValueError, match="longer than LONGEST_FRAME"):
        stream.send(FrameBatch.of(bytes(len(stream._scratch))), 0)
    stream.close(0)
