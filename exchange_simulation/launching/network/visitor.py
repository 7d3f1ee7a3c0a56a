"""Programs that run inside a role's namespace: `serve`, `ask ADDRESS COUNT` and `lend FD`.

`serve` and `ask` measure round trips, since not every machine has the program ping. Each question is sent after the
answer to the previous one, so no frame waits in a queue. Python on both sides adds 10 to 30 us to each round trip; the
profile `veth` shows how much.

`lend` opens a TCP socket and sends it over the Unix socket FD. The TCP socket stays in the namespace of `lend`.

The programs use only the standard library (`python -I -S visitor.py`).
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
"""The payload of a datagram. With the headers of UDP, IP and Ethernet it makes the smallest frame."""
UNCOUNTED = 3
"""The number of first round trips that are not counted, since caches are cold."""
PATIENCE_S = 0.5
"""The longest wait for an answer."""
TRIES = 10
"""The most attempts of a round trip, since a datagram may get lost. The time is that of the last attempt."""


def serve() -> None:
    """Echo datagrams until end of file on stdin."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("0.0.0.0", PORT))
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([server, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            datagram, sender = server.recvfrom(BYTES)
            server.sendto(datagram, sender)


def ask(address: str, count: int) -> list[int]:
    """Return the duration of each round trip in ns. TimeoutError without an answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((address, PORT))
        client.settimeout(PATIENCE_S)
        numbers = itertools.count()
        for _ in range(UNCOUNTED):
            _round_trip_ns(client, numbers)
        return [_round_trip_ns(client, numbers) for _ in range(count)]


def _round_trip_ns(client: socket.socket, numbers: Iterator[int]) -> int:
    """Return the duration of one round trip. Each datagram has a number, by which its answer is recognized."""
    for number in itertools.islice(numbers, TRIES):
        question = number.to_bytes(BYTES, "little")
        sent_ns = time.monotonic_ns()
        client.send(question)
        with contextlib.suppress(TimeoutError):
            while client.recv(BYTES) != question:
                pass  # this is a late answer to an earlier question
            return time.monotonic_ns() - sent_ns
    raise TimeoutError(f"{TRIES} questions were not answered")


def lend(descriptor: int) -> None:
    """Open a TCP socket here, and send it over the Unix socket of this descriptor."""
    with socket.socket(fileno=descriptor) as borrower, socket.socket() as lent:
        socket.send_fds(borrower, [b"."], [lent.fileno()])


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif sys.argv[1] == "ask":
        print(json.dumps(ask(sys.argv[2], int(sys.argv[3]))))
    else:
        lend(int(sys.argv[2]))
