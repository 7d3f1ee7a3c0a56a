"""The compiled rings, over any bytes in the shared memory: frames come out whole, or the peer is given up."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transports.frames import Bytes, FrameBatch
from transports.shm import ring, segment
from transports.shm.peer import Peer
from transports.shm.segment import CONNECTORS_RING, HEAD, LISTENERS_RING, RING_BYTES, TAIL

GUARD = 4096
"""Bytes before and behind the memory that a test watches for stores out of bounds."""
GUARD_BYTE = 0xA5

fuzz = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
words = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2 * RING_BYTES), st.integers(0, 64))
lengths = st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 300))


class Ends:
    """Both ends of one segment, as two processes have them, with guards around the memory."""

    def __init__(self) -> None:
        guarded = np.full(segment.SEGMENT_BYTES + 2 * GUARD, GUARD_BYTE, np.uint8)
        self._guards = (guarded[:GUARD], guarded[-GUARD:])
        self.memory: Bytes = guarded[GUARD:-GUARD]
        self.memory[:] = 0
        self._sockets = socket.socketpair()
        self.listener = Peer(self._sockets[0], self.memory, listens=True, spins=False)
        self.connector = Peer(self._sockets[1], self.memory, listens=False, spins=False)

    def put_word(self, at: int, value: int) -> None:
        self.memory[at : at + 8] = np.frombuffer(value.to_bytes(8, "little", signed=True), np.uint8)

    def start_at(self, place: int) -> None:
        """Let the connector's ring go on at a place, as after many frames."""
        self.put_word(CONNECTORS_RING.control + TAIL, place)
        self.put_word(CONNECTORS_RING.control + HEAD, place)
        self.connector.numbers[[ring.WRITTEN, ring.SEEN_READ]] = place
        self.listener.numbers[ring.READ] = place

    @property
    def are_guards_whole(self) -> bool:
        return all((guard == GUARD_BYTE).all() for guard in self._guards)

    def close(self) -> None:
        self.listener.close()
        self.connector.close()


@pytest.fixture
def ends() -> Iterator[Ends]:
    both = Ends()
    yield both
    both.close()


@fuzz
@given(st.lists(st.binary(max_size=3000), max_size=30), st.integers(0, 4 * RING_BYTES))
def test_frames_come_out_as_they_went_in_wherever_the_ring_ends(sent: list[bytes], start: int) -> None:
    ends = Ends()
    ends.start_at(start & -4)
    batch = FrameBatch.of(*sent)
    assert ends.connector.send(batch, 0, batch.count) == batch.count
    received = FrameBatch()
    ends.listener.receive(received)
    assert list(received) == sent
    assert ends.are_guards_whole
    ends.close()


def test_a_frame_that_reaches_the_end_of_the_ring_goes_on_at_its_beginning(ends: Ends) -> None:
    ends.start_at(RING_BYTES - 8)
    ends.connector.send(FrameBatch.of(b"0123456789"), 0, 1)
    assert ends.memory[CONNECTORS_RING.data : CONNECTORS_RING.data + 6].tobytes() == b"456789"
    received = FrameBatch()
    ends.listener.receive(received)
    assert list(received) == [b"0123456789"]


@fuzz
@given(words, words, st.lists(lengths, max_size=20), st.integers(0, RING_BYTES // 4 - 100))
def test_no_bytes_of_the_peer_lead_out_of_the_memory(tail: int, head: int, sizes: list[int], place: int) -> None:
    """Whatever the peer writes, this end's reads and writes stay in the segment and in the batch."""
    ends = Ends()
    at = CONNECTORS_RING.data + 4 * place
    lengths_there = np.array(sizes, np.uint32).view(np.uint8)
    ends.memory[at : at + len(lengths_there)] = lengths_there
    ends.start_at(4 * place)
    ends.put_word(CONNECTORS_RING.control + TAIL, tail)
    ends.put_word(LISTENERS_RING.control + HEAD, head)
    guarded = np.full(10_000 + 2 * GUARD, GUARD_BYTE, np.uint8)
    batch = FrameBatch(16, 10_000, 2000)
    batch.buffer = guarded[GUARD:-GUARD]
    for _ in range(3):
        batch.clear()
        ends.listener.receive(batch)
        assert all(len(frame) <= 2000 for frame in batch)
    ends.listener.send(FrameBatch.of(*[b"answer" * 50] * 20), 0, 20)
    ends.listener.first_without_room(FrameBatch.of(b"answer"), 0)
    ends.listener.prepare_sleep(True, True)
    ends.listener.end_sleep()
    assert (guarded[:GUARD] == GUARD_BYTE).all()
    assert (guarded[-GUARD:] == GUARD_BYTE).all()
    assert ends.are_guards_whole
    ends.close()


@pytest.mark.parametrize("tail", [-4, RING_BYTES + 4, 2**62, -(2**63)])
def test_a_place_that_cannot_be_is_noticed(ends: Ends, tail: int) -> None:
    ends.put_word(CONNECTORS_RING.control + TAIL, tail)
    batch = FrameBatch()
    ends.listener.receive(batch)
    assert (batch.count, ends.listener.is_broken, ends.listener.has_left) == (0, True, True)


@pytest.mark.parametrize("head", [4, -RING_BYTES - 4, 2**62])
def test_a_reader_that_says_it_has_read_what_cannot_be_is_noticed(ends: Ends, head: int) -> None:
    ends.put_word(LISTENERS_RING.control + HEAD, head)
    assert ends.listener.prepare_sleep(False, True) is False
    assert ends.listener.is_broken


@pytest.mark.parametrize("length", [13, 2**31, 2**32 - 1, 2**32 - 3])
def test_a_length_beyond_what_was_written_is_noticed(ends: Ends, length: int) -> None:
    ends.memory[CONNECTORS_RING.data : CONNECTORS_RING.data + 4] = np.array([length], np.uint32).view(np.uint8)
    ends.put_word(CONNECTORS_RING.control + TAIL, 16)
    batch = FrameBatch()
    ends.listener.receive(batch)
    assert (batch.count, ends.listener.is_broken) == (0, True)


def test_a_writer_without_room_is_woken_when_the_reader_has_read(ends: Ends) -> None:
    chunk = FrameBatch.of(*[bytes(1000)] * 3000)
    taken = ends.connector.send(chunk, 0, chunk.count)
    assert taken == RING_BYTES // 1004
    assert ends.connector.prepare_sleep(False, True)
    batch = FrameBatch(4096, 1 << 22)
    ends.listener.receive(batch)
    assert batch.count == taken
    assert len(os.read(ends.connector.fd, 10)) == 1
    assert not ends.connector.prepare_sleep(False, True)
