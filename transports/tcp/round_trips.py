"""Round trips of one message at a time on one stream, compiled like ZeroMQ's, so that the two can be compared.

The kernels handle a frame that comes whole and alone, and leaves in one write; Python handles everything else.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from transports.frames import Bytes, FrameBatch, Longs
from transports.lending import AT_ONCE, monotonic_ns, poll, pollfd, receive_bytes, send_bytes
from transports.tcp.stream import PREFIX, Stream, send_frames, split_frames

MOMENT_NS = 50_000_000
ALL = NONE = -1


@njit(cache=True, nogil=True)
def _whole(inbound: Bytes, have: int) -> int:
    """The bytes of the first frame and its length, as far as the length is known."""
    if have < PREFIX:
        return PREFIX
    length = int64(inbound[0]) | inbound[1] << 8 | inbound[2] << 16 | inbound[3] << 24
    return PREFIX + length


@njit(cache=True, nogil=True)
def _await(fd: int, inbound: Bytes, fds: Longs, clock: Longs) -> int:
    """The number of bytes that have come: a whole frame; fewer after MOMENT_NS without any, or at the stream's end."""
    have = 0
    while have < _whole(inbound, have) <= len(inbound):
        came = receive_bytes(fd, inbound[have:].ctypes, len(inbound) - have, AT_ONCE)
        if came > 0:
            have += came
            continue
        if came == 0:
            break
        if poll(fds, clock, monotonic_ns(clock) + MOMENT_NS) or fds[0] >> 48 == 0:
            break
    return have


@njit(cache=True, nogil=True)
def _ask(
    fd: int, questions: Bytes, question_ends: Longs, first: int, count: int,
    buffer: Bytes, answer_ends: Longs, largest: int, took_ns: Longs,
    scratch: Bytes, inbound: Bytes, fds: Longs, clock: Longs,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Ask questions first..count-1, each after the answer before it, for MOMENT_NS and an answer at most.

    Returns (the first question without its answer, its time of sending or 0, bytes that have come, bytes of it written
    or ALL). `question_ends` and `answer_ends` are offsets.
    """
    end_ns = monotonic_ns(clock) + MOMENT_NS
    for i in range(first, count):
        sent_ns = monotonic_ns(clock)
        if sent_ns >= end_ns:
            return i, 0, 0, ALL
        sent, written = send_frames(fd, questions, question_ends, i, i + 1, scratch)
        if sent == i:
            return i, sent_ns, 0, written
        have = _await(fd, inbound, fds, clock)
        came_ns = monotonic_ns(clock)
        used, answers, _ = split_frames(inbound, have, buffer, answer_ends, i, largest)
        if used < have or answers != i + 1:
            return i, sent_ns, have, ALL
        took_ns[i] = came_ns - sent_ns
    return count, 0, 0, ALL


@njit(cache=True, nogil=True)
def _echo(fd: int, inbound: Bytes, most: int, until_ns: int, fds: Longs, clock: Longs) -> tuple[int, int, int]:
    """Send frames back; returns (frames sent, bytes that have come, bytes written of a frame sent in part, or NONE)."""
    for done in range(most):
        have = _await(fd, inbound, fds, clock)
        if have != _whole(inbound, have):
            return done, have, NONE
        went = send_bytes(fd, inbound.ctypes, have, AT_ONCE)
        if went < have:
            return done, have, max(went, 0)
        if monotonic_ns(clock) >= until_ns:
            return done + 1, 0, NONE
    return most, 0, NONE


class RoundTrips:
    """A stream's round trips, as long as nothing unusual happens."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._fds, self._clock = np.array([pollfd(stream.fd)], np.int64), np.zeros(2, np.int64)
        self._warm()

    def _warm(self) -> None:
        """Compile the kernels, or load them from disk; nothing is sent, since there is no descriptor -1."""
        nothing, took_ns = FrameBatch(1, PREFIX, PREFIX), np.zeros(1, np.int64)
        buffer, offsets = nothing.buffer, nothing.offsets
        _ask(-1, buffer, offsets, 0, 0, buffer, offsets, 0, took_ns, buffer, buffer, self._fds, self._clock)
        _echo(-1, buffer, 0, 0, self._fds, self._clock)

    def ask(self, questions: FrameBatch, answers: FrameBatch, took_ns: Longs) -> int:
        """See CompiledRoundTrips.ask_ahead. The stream keeps a question written in part, or an answer come in part."""
        stream = self._stream
        number, sent_ns, have, written = _ask(
            stream.fd, questions.buffer, questions.offsets, answers.count, questions.count,
            answers.buffer, answers.offsets, answers.largest_frame, took_ns,
            stream._scratch, stream._inbound, self._fds, self._clock,
        )  # fmt: skip
        answers.count = int(number)
        if written != ALL:
            stream._rest = stream._framed(questions, answers.count)[written:]
        stream._used = have
        return int(sent_ns)

    def echo(self, most: int, until_ns: int) -> int:
        """The number of frames that went back, or wait to."""
        stream = self._stream
        done, have, went = _echo(stream.fd, stream._inbound, most, until_ns, self._fds, self._clock)
        stream._used = 0 if went >= 0 else have
        if went >= 0:
            stream._rest = stream._inbound[went:have].tobytes()
            return int(done) + 1
        return int(done)
