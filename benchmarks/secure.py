"""What encryption costs: a run flat out with `--secure`, against the same run without.

    gateway ⇄ engine    CURVE of libzmq over zeromq, TLS of Python over tcp and amqps

The row below CURVE is its bound: the share of the plain rate that is left if a message costs no more than libsodium
needs to seal and open it. Flat out, gateway and engine share the processors with their I/O threads, so this time is
added to an order's CPU time. The bound holds only if the plain run keeps all processors busy; otherwise a ratio may lie
above it.
"""

from __future__ import annotations

import ctypes
import tempfile
import timeit
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zmq
from numba import njit

from benchmarks.comparison import BenchmarkRow, Record, in_turns, permitted_priority, record_of, usage_of
from transports.keys import make_keys


class Case(NamedTuple):
    """A transport and a number of orders in a message, with the required and the hoped-for ratio to the plain rate."""

    transport: str
    packing: int
    required: float | None = None
    hoped_for: float | None = None


CASES = (Case("zeromq", 1, 0.5, 0.75), Case("zeromq", 10, 0.5, 0.75), Case("tcp", 1), Case("amqp", 1))
TRIES = 150
"""The time to seal and open is the least of this many tries."""
CALLS = 1_000
"""Number of messages in a try."""
TAG_BYTES = 16
NONCE_BYTES = 24
KEY_BYTES = 32


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Compare the encrypted and the plain rate of each case; over ZeroMQ, the bound follows in the next row."""
    fixed = ("--rate", "max", "--duration", 2, "--no-spark", "--no-page", "--priority", permitted_priority())
    with tempfile.TemporaryDirectory(prefix="exchange-secure-") as place:
        keys = Path(place) / "keys"
        make_keys(keys, days=1)
        for case in CASES:
            words = ("run", "--transport", case.transport, "--packing", case.packing, *fixed)
            secure_records: list[Record] = []
            plain_records: list[Record] = []
            secure, plain = in_turns(
                partial(orders_per_s, secure_records, *words, "--secure", keys),
                partial(orders_per_s, plain_records, *words),
                repeats,
            )
            title = f"{case.transport} encrypted, flat out, orders in a message: {case.packing}"
            yield BenchmarkRow(title, "plain", "orders/s", secure, plain, case.required, case.hoped_for)
            if case.transport == "zeromq":
                bounds = [bound(record, case.packing) for record in plain_records[1:]]
                yield BenchmarkRow(
                    title="  bound by cryptography", against="", unit="of plain", ours=bounds, reference=[]
                )


def orders_per_s(records: list[Record], *words: Any) -> float:
    """Run the exchange; returns its rate, and appends its run.json to `records`."""
    records.append(record_of(*words))
    return float(records[-1]["rates"]["orders_per_s"])


def bound(plain: Record, packing: int) -> float:
    """Return the share of a plain run's rate that sealing and opening every message would leave."""
    counts = plain["counts"]
    cpu_s = usage_of(plain, "gateway", "cpu_s") + usage_of(plain, "engine", "cpu_s")
    records = counts["orders_sent"] + counts["answers_received"]
    # With packing, all answers to a message of orders are one message.
    messages = records if packing == 1 else 2 * counts["orders_sent"] / packing
    added_s = messages * sealed_and_opened_s(round(plain["mean_message_bytes"] * records / messages))
    return float(cpu_s / (cpu_s + added_s))


def sealed_and_opened_s(size: int) -> float:
    """Measure the least time in which the libsodium of pyzmq's wheel seals and opens a message of `size` bytes."""
    libraries = Path(zmq.__file__).parents[1] / "pyzmq.libs"
    library = ctypes.CDLL(str(next(libraries.glob("libsodium*"))))
    seal = library.crypto_box_easy_afternm
    unseal = library.crypto_box_open_easy_afternm
    seal.argtypes = [ctypes.c_size_t] * 5
    unseal.argtypes = [ctypes.c_size_t] * 5
    sealed_array = np.zeros(size + TAG_BYTES, np.uint8)
    text_array = np.zeros(size, np.uint8)
    nonce_array = np.zeros(NONCE_BYTES, np.uint8)
    key_array = np.zeros(KEY_BYTES, np.uint8)
    sealed, text, nonce, key = (array.ctypes.data for array in (sealed_array, text_array, nonce_array, key_array))

    @njit
    def seal_and_open() -> None:
        for _ in range(CALLS):
            seal(sealed, text, size, nonce, key)
            unseal(text, sealed, size + TAG_BYTES, nonce, key)

    return min(timeit.repeat(seal_and_open, number=1, repeat=TRIES)) / CALLS
