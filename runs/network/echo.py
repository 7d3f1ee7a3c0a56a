"""Round trips in user space, since not every machine has a ping: `serve`, or `ask ADDRESS COUNT`.

Runs on the standard library alone (`python -I -S echo.py`). Python on both sides adds 10 to 30 us to each round trip;
what it adds is seen in the profile `veth`. A question waits for its answer, so nothing queues.
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
"""Of payload: with UDP, IP and Ethernet headers the smallest frame there is."""
UNCOUNTED = 3
"""Round trips that find the caches cold."""
PATIENCE_S, TRIES = 0.5, 10
"""A datagram may get lost while links come up, or on a busy machine; then another is sent, and only that is timed."""


def serve() -> None:
    """Until end of file on stdin."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        door.bind(("0.0.0.0", PORT))
        print("ready", flush=True)
        while sys.stdin not in (ready := select.select([door, sys.stdin], [], [])[0]):
            for _ in ready:
                door.sendto(*door.recvfrom(BYTES))


def ask(address: str, count: int) -> list[int]:
    """Each round trip, ns."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.connect((address, PORT))
        ours.settimeout(PATIENCE_S)
        numbers = itertools.count()
        return [_round_trip_ns(ours, numbers) for _ in range(UNCOUNTED + count)][UNCOUNTED:]


def _round_trip_ns(ours: socket.socket, numbers: Iterator[int]) -> int:
    """TimeoutError where no question is answered."""
    for number in itertools.islice(numbers, TRIES):
        question = number.to_bytes(BYTES, "little")
        sent_ns = time.monotonic_ns()
        ours.send(question)
        with contextlib.suppress(TimeoutError):
            while ours.recv(BYTES) != question:
                pass  # the late answer to an earlier one
            return time.monotonic_ns() - sent_ns
    raise TimeoutError(f"{TRIES} questions were not answered")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        print(json.dumps(ask(sys.argv[2], int(sys.argv[3]))))
