"""What encryption costs: a run flat out with `--secure`, against the same run without.

    gateway ⇄ engine    CURVE of libzmq over zeromq, TLS of Python over tcp and amqps

The row beneath CURVE is its bound: what is left if a message costs no more than libsodium needs to seal and open it.
Flat out, gateway and engine share the processors with their I/O threads, so that time is added to an order's CPU time.
The bound holds only for a plain run that keeps all processors busy; a ratio may lie above it where they rest.
"""

from __future__ import annotations

import ctypes
import tempfile
import timeit
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zmq
from numba import njit

from benchmarks.comparison import BenchmarkRow, Record, in_turns, permitted_priority, record_of
from transports.keys import make_keys

CASES = (("zeromq", 1, 0.5, 0.75), ("zeromq", 10, 0.5, 0.75), ("tcp", 1), ("amqp", 1))
"""Transport, orders in a message, the ratio to reach and to aim for."""
TRIES, CALLS, TAG_BYTES = 150, 1_000, 16


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    fixed = ("--rate", "max", "--duration", 2, "--no-spark", "--no-page", "--priority", permitted_priority())
    with tempfile.TemporaryDirectory(prefix="exchange-secure-") as place:
        make_keys(keys := Path(place) / "keys", days=1)
        for transport, packing, *targets in CASES:
            words, plain = ("run", "--transport", transport, "--packing", packing, *fixed), list[Record]()
            measures = partial(orders_per_s, [], *words, "--secure", keys), partial(orders_per_s, plain, *words)
            what = f"{transport} encrypted, flat out, orders in a message: {packing}"
            yield BenchmarkRow(what, "plain", "orders/s", *in_turns(*measures, repeats), *targets)
            if transport == "zeromq":
                yield BenchmarkRow(
                    "  bound by cryptography", "", "of plain", [bound(each, packing) for each in plain[1:]], []
                )


def orders_per_s(records: list[Record], *words: Any) -> float:
    records.append(record_of(*words))
    return float(records[-1]["rates"]["orders_per_s"])


def bound(plain: Record, packing: int) -> float:
    """The share of this run's rate that sealing and opening every message would leave."""
    counts, cpu_s = plain["counts"], sum(plain["components"][role]["cpu_s"] for role in ("gateway", "engine"))
    records = counts["orders_sent"] + counts["answers_received"]
    messages = records if packing == 1 else 2 * counts["orders_sent"] / packing  # packed answers are one message
    added_s = messages * sealed_and_opened_s(round(plain["mean_message_bytes"] * records / messages))
    return float(cpu_s / (cpu_s + added_s))


def sealed_and_opened_s(size: int) -> float:
    """The least time for a message of so many bytes, in the libsodium of pyzmq's wheel."""
    library = ctypes.CDLL(str(next((Path(zmq.__file__).parents[1] / "pyzmq.libs").glob("libsodium*"))))
    seal, unseal = library.crypto_box_easy_afternm, library.crypto_box_open_easy_afternm
    seal.argtypes = unseal.argtypes = [ctypes.c_size_t] * 5
    arrays = [np.zeros(length, np.uint8) for length in (size + TAG_BYTES, size, 24, 32)]  # the last: nonce, key
    sealed, text, nonce, key = (array.ctypes.data for array in arrays)

    @njit
    def messages() -> None:
        for _ in range(CALLS):
            seal(sealed, text, size, nonce, key)
            unseal(text, sealed, size + TAG_BYTES, nonce, key)

    return min(timeit.repeat(messages, number=1, repeat=TRIES)) / CALLS
