"""`fill` and `flush` of ServerStream, compiled, for lent calls.

`bounds_at` is the place in `numbers` at which the connection's bounds begin, ordered as in transports/server_stream.py.
"""

from __future__ import annotations

from numba import njit

from transports.frames import Bytes, Longs
from transports.lending import AT_ONCE, NOTICE, move_bytes, receive_bytes, send_bytes
from transports.server_stream import BEGIN, END, UNSENT, UNSENT_END


@njit(inline="always")
def fill(numbers: Longs, bounds_at: int, descriptor: int, incoming: Bytes) -> None:
    """Receive once. Sets the notice if the server has hung up. An error of the socket ends the next sleep at once."""
    begin = numbers[bounds_at + BEGIN]
    end = numbers[bounds_at + END]
    if begin == end:
        begin = 0
        end = 0
    elif end == len(incoming) and begin > 0:
        move_bytes(incoming.ctypes, incoming[begin:].ctypes, end - begin)
        end -= begin
        begin = 0
    if end < len(incoming):
        came = receive_bytes(descriptor, incoming[end:].ctypes, len(incoming) - end, AT_ONCE)
        numbers[NOTICE] |= came == 0
        end += max(came, 0)
    numbers[bounds_at + BEGIN] = begin
    numbers[bounds_at + END] = end


@njit(inline="always")
def flush(numbers: Longs, bounds_at: int, descriptor: int, outgoing: Bytes, used: int) -> None:
    """Send outgoing[:used] from the first unsent byte on; the notice if some of it has to wait."""
    at = numbers[bounds_at + UNSENT]
    while at < used:
        went = send_bytes(descriptor, outgoing[at:].ctypes, used - at, AT_ONCE)
        if went <= 0:
            numbers[bounds_at + UNSENT] = at
            numbers[bounds_at + UNSENT_END] = used
            numbers[NOTICE] = 1
            return
        at += went
    numbers[bounds_at + UNSENT] = 0
    numbers[bounds_at + UNSENT_END] = 0
