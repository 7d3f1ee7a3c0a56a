"""The calls that a link over NNG lends; see transports/lending.py."""

from __future__ import annotations

from collections.abc import Callable

from transports.frames import Bytes, Longs
from transports.lending import NO_MEMORY, NOTICE, RECEIVE, SEND, SLEEP, Lent, lendable, poll
from transports.nng import messages
from transports.nng.messages import ADMITTED, POLLFDS, TIMESPEC, receive_frames, send_frames


@lendable(RECEIVE, messages)
def _receive(numbers: Longs, _memory: Bytes, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    return receive_frames(numbers, buffer, offsets, count, largest)


@lendable(SEND, messages)
def _send(numbers: Longs, _memory: Bytes, buffer: Bytes, offsets: Longs, first: int, end: int) -> int:
    return send_frames(numbers, buffer, offsets, first, end)


@lendable(SLEEP, messages)
def _sleep(numbers: Longs, _memory: Bytes, until_ns: int) -> None:
    if poll(numbers[POLLFDS:TIMESPEC], numbers[TIMESPEC:ADMITTED], until_ns):
        numbers[NOTICE] = 1


def lent_calls(numbers: Longs, settle: Callable[[], None]) -> Lent:
    """The calls of a pair that has its peer."""
    return Lent(_receive, _send, _sleep, numbers, NO_MEMORY, settle, pollfds=numbers[POLLFDS:TIMESPEC])
