"""Round trips of one message at a time, compiled, so that they take ZeroMQ's time and not Python's.

The calls block, as in a C program, for MOMENT_MS at most; then Python looks whether the peer has left.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from transports.frames import Bytes, FrameBatch, Longs
from transports.lending import monotonic_ns
from transports.zeromq.compiled import DONTWAIT, CompiledCalls, receive_part, send_part

MOMENT_MS = 50
_WAIT = 0
"""The flags of a call that blocks."""
_NOT_YET = -1


@njit(cache=True, nogil=True)
def _ask(
    handle: int, questions: Bytes, question_ends: Longs, first: int, count: int,
    buffer: Bytes, answer_ends: Longs, largest: int, took_ns: Longs, clock: Longs,
) -> tuple[int, int, int]:  # fmt: skip
    """Ask questions first..count-1, each after the answer before it, for MOMENT_MS and an answer at most.

    Returns (the first question without its answer, its time of sending or 0, errno). `question_ends` and `answer_ends`
    are offsets.
    """
    end_ns = monotonic_ns(clock) + MOMENT_MS * 1_000_000
    for i in range(first, count):
        sent_ns, at = monotonic_ns(clock), answer_ends[i]
        if sent_ns >= end_ns or at + largest > len(buffer):
            return i, 0, 0
        question, size = questions.ctypes.data + question_ends[i], question_ends[i + 1] - question_ends[i]
        taken, error = send_part(handle, question, size, DONTWAIT)
        if not taken:
            return i, 0, error
        length, error = receive_part(handle, buffer.ctypes.data + at, largest, _WAIT)
        if not 0 <= length <= largest:
            return i, sent_ns, error
        took_ns[i] = monotonic_ns(clock) - sent_ns
        answer_ends[i + 1] = at + length
    return count, 0, 0


@njit(cache=True, nogil=True)
def _echo(handle: int, buffer: Bytes, largest: int, most: int, until_ns: int, clock: Longs) -> tuple[int, int, int]:
    """Send messages back; returns (messages sent, length of one that could not be sent or _NOT_YET, errno)."""
    for done in range(most):
        length, error = receive_part(handle, buffer.ctypes.data, largest, _WAIT)
        if length < 0:
            return done, _NOT_YET, error
        if length > largest:
            return done, length, 0
        taken, error = send_part(handle, buffer.ctypes.data, length, DONTWAIT)
        if not taken:
            return done, length, error
        if monotonic_ns(clock) >= until_ns:
            return done + 1, _NOT_YET, 0
    return most, _NOT_YET, 0


class RoundTrips:
    """A socket's round trips, as long as nothing unusual happens; Python handles everything else."""

    def __init__(self, calls: CompiledCalls) -> None:
        self._calls, self._clock = calls, np.zeros(2, np.int64)
        calls.block_for(MOMENT_MS)
        self._warm()

    def _warm(self) -> None:
        """Compile the kernels, or load them from disk; nothing is sent, since there is no socket 0."""
        nothing, took_ns = FrameBatch(1, 1, 1), np.zeros(1, np.int64)
        buffer, offsets = nothing.buffer, nothing.offsets
        _ask(0, buffer, offsets, 0, 0, buffer, offsets, 0, took_ns, self._clock)
        _echo(0, buffer, 0, 0, 0, self._clock)

    def ask(self, questions: FrameBatch, answers: FrameBatch, took_ns: Longs) -> int:
        """See CompiledRoundTrips.ask_ahead."""
        number, sent_ns, error = _ask(
            self._calls.handle, questions.buffer, questions.offsets, answers.count, questions.count,
            answers.buffer, answers.offsets, answers.largest_frame, took_ns, self._clock,
        )  # fmt: skip
        answers.count = int(number)
        self._calls.check(error)
        return int(sent_ns)

    def echo(self, batch: FrameBatch, most: int, until_ns: int) -> int:
        """The number of messages that went back. A message that the socket did not take stays in the batch."""
        batch.clear()
        largest = batch.largest_frame
        done, length, error = _echo(self._calls.handle, batch.buffer, largest, most, until_ns, self._clock)
        self._calls.check(error)
        if 0 <= length <= largest:
            batch.offsets[1] = length
            batch.count = 1
        return int(done)
