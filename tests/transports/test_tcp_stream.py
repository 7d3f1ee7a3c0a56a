"""Frames on a TCP stream: any split of the bytes gives the same frames, and no bytes from outside do harm."""

from __future__ import annotations

import socket
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transports.base import Address, Pattern, PeerGone
from transports.frames import FrameBatch
from transports.tcp.link import TcpLink
from transports.tcp.stream import TcpStream, split_frames

FRAMES = st.lists(st.binary(max_size=40), max_size=20)


def framed(frames: list[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(frame)) + frame for frame in frames)


@given(FRAMES, st.data())
def test_any_split_of_the_stream_gives_the_same_frames(frames: list[bytes], data: st.DataObject) -> None:
    stream = framed(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    inbound, used, batch = np.zeros(4096, np.uint8), 0, FrameBatch(64)
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        inbound[used : used + end - start] = np.frombuffer(stream[start:end], np.uint8)
        used += end - start
        at, batch.count, too_long = split_frames(inbound, used, batch.buffer, batch.offsets, batch.count, 1000)
        inbound[: used - at] = inbound[at:used].copy()
        used -= at
        assert too_long == 0
    assert list(batch) == frames
    assert used == 0


@given(st.binary(max_size=300))
def test_bytes_from_outside_stay_within_the_buffers(garbage: bytes) -> None:
    """They give frames, or a refusal."""
    inbound = np.frombuffer(garbage, np.uint8).copy()
    batch = FrameBatch(8, 256, 64)
    at, count, too_long = split_frames(inbound, len(inbound), batch.buffer, batch.offsets, 0, 64)
    assert 0 <= at <= len(garbage)
    assert count <= 8
    assert framed([bytes(batch.span(i, i + 1)) for i in range(count)]) == garbage[:at] if count else at == 0
    assert too_long == 0 or too_long > 64


def test_a_frame_that_the_kernel_takes_in_parts_arrives_whole() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        stream = TcpStream(ours)
        batch = FrameBatch.of(*[bytes([n]) * 50_000 for n in range(20)])
        sent, got = stream.send(batch, 0), b""
        theirs.setblocking(False)
        while len(got) < len(framed(list(batch))):
            try:
                got += theirs.recv(1 << 16)
            except BlockingIOError:
                sent = stream.send(batch, sent)
        assert got == framed(list(batch))
        stream.close(0)


def test_a_frame_longer_than_the_batch_takes_ends_the_conversation() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        stream = TcpStream(ours)
        theirs.sendall(struct.pack("<I", 1 << 30))
        with pytest.raises(PeerGone, match="1073741824 bytes"):
            stream.receive(FrameBatch())
        stream.close(0)


def test_a_batch_that_is_full_hides_nobody_s_last_frame() -> None:
    link, writers = TcpLink("tcp://x", Address("tcp", "x", "", pattern=Pattern.FAN_IN)), []
    for frames in ([b"a"] * 8, [b"b"]):
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        link._streams.append(TcpStream(ours))
        theirs.sendall(framed(frames))
        writers.append(theirs)
    writers[1].close()
    got, batch = [], FrameBatch(4)
    while len(got) < 9:
        batch.clear()
        assert link.receive(batch) > 0
        got += batch
    assert got == [b"a"] * 8 + [b"b"]
    writers[0].close()
    link.close(0)


def test_who_sends_to_a_peer_that_is_gone_is_told_so() -> None:
    ours, theirs = socket.socketpair()
    stream, batch = TcpStream(ours), FrameBatch.of(b"nobody", b"listens")
    theirs.close()
    stream.send(batch, 0)
    with pytest.raises(PeerGone):
        stream.send(batch, 0)
    stream.close(0)


def test_a_frame_that_no_transport_carries_is_refused() -> None:
    """It was written behind the memory that it goes through, and the process died."""
    ours, theirs = socket.socketpair()
    stream = TcpStream(ours)
    with theirs, pytest.raises(ValueError, match="longer than LONGEST_FRAME"):
        stream.send(FrameBatch.of(bytes(len(stream._scratch))), 0)
    stream.close(0)
