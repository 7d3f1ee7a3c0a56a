"""Programs that run inside a role's namespace: `serve`, `ask ADDRESS COUNT` and `lend FD`.

`serve` and `ask` measure round trips, since not every machine has a ping. A question waits for its answer, so nothing
queues. Python on both sides adds 10 to 30 us to each round trip; the profile `veth` shows how much.

`lend` opens a TCP socket and hands it over on the Unix socket FD: a socket stays in the namespace that opened it.

They need the standard library alone (`python -I -S visitor.py`).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import select
import socket
import sys
import time
from collections.abc import Iterator

PORT = 7007
BYTES = 18
"""Payload; with UDP, IP and Ethernet headers the smallest frame there is."""
UNCOUNTED = 3
"""The first round trips find the caches cold."""
PATIENCE_S = 0.5
TRIES = 10
"""A datagram may get lost while links come up or on a busy machine. Only the answered one is timed."""


def serve() -> None:
    """Echo datagrams until end of file on stdin."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        door.bind(("0.0.0.0", PORT))
        print("ready", flush=True)
        while sys.stdin not in (ready := select.select([door, sys.stdin], [], [])[0]):
            for _ in ready:
                door.sendto(*door.recvfrom(BYTES))


def ask(address: str, count: int) -> list[int]:
    """The duration of each round trip, ns. TimeoutError if nobody answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.connect((address, PORT))
        ours.settimeout(PATIENCE_S)
        numbers = itertools.count()
        return [_round_trip_ns(ours, numbers) for _ in range(UNCOUNTED + count)][UNCOUNTED:]


def _round_trip_ns(ours: socket.socket, numbers: Iterator[int]) -> int:
    for number in itertools.islice(numbers, TRIES):
        question = number.to_bytes(BYTES, "little")
        sent_ns = time.monotonic_ns()
        ours.send(question)
        with contextlib.suppress(TimeoutError):
            while ours.recv(BYTES) != question:
                pass  # a late answer to an earlier question
            return time.monotonic_ns() - sent_ns
    raise TimeoutError(f"{TRIES} questions were not answered")


def lend(descriptor: int) -> None:
    with socket.socket(fileno=descriptor) as borrower, socket.socket() as lent:
        socket.send_fds(borrower, [b"."], [lent.fileno()])


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif sys.argv[1] == "ask":
        print(json.dumps(ask(sys.argv[2], int(sys.argv[3]))))
    else:
        lend(int(sys.argv[2]))
