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
"""Round trips that are not counted, since the first ones meet cold caches."""
PATIENCE_S = 0.5
TRIES = 10
"""Attempts of a round trip: a datagram may get lost while links come up or on a busy machine. The last one is timed."""


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
    """The duration of each round trip, ns. TimeoutError if nobody answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((address, PORT))
        client.settimeout(PATIENCE_S)
        numbers = itertools.count()
        for _ in range(UNCOUNTED):
            _round_trip_ns(client, numbers)
        return [_round_trip_ns(client, numbers) for _ in range(count)]


def _round_trip_ns(client: socket.socket, numbers: Iterator[int]) -> int:
    """The duration of one round trip. Each datagram has a number of its own, to know its answer."""
    for number in itertools.islice(numbers, TRIES):
        question = number.to_bytes(BYTES, "little")
        sent_ns = time.monotonic_ns()
        client.send(question)
        with contextlib.suppress(TimeoutError):
            while client.recv(BYTES) != question:
                pass  # a late answer to an earlier question
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
