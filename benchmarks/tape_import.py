"""Measures `exchange tape import --format itch50` on a made file: messages a second of CPU time, writing included.

The file has orders, executions, partial cancels, deletes and replaces, in about the shares of a real day. Either all of
them are of the stock that is imported, or one block of orders in a hundred is.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.comparison import BenchmarkRow, Floor
from exchange_simulation.experiments.tapes.importing import import_tape
from exchange_simulation.experiments.tapes.itch50 import ItchFile

STOCK = "MADE"
OTHER_STOCK = "ELSE"
BLOCK_ORDERS = 20_000
"""Orders that rest at the same time."""
MESSAGES_A_BLOCK = BLOCK_ORDERS * 215 // 100
BLOCKS = 70
UNITS_A_TICK = 100
HEAD = [("length", ">u2"), ("type", "S1"), ("locate", ">u2"), ("tracking", ">u2"), ("time", "V6"), ("number", ">u8")]
LAYOUTS = {
    "A": np.dtype([*HEAD, ("side", "S1"), ("shares", ">u4"), ("stock", "S8"), ("price", ">u4")]),
    "E": np.dtype([*HEAD, ("shares", ">u4"), ("match", ">u8")]),
    "X": np.dtype([*HEAD, ("shares", ">u4")]),
    "D": np.dtype(HEAD),
    "U": np.dtype([*HEAD, ("new_number", ">u8"), ("shares", ">u4"), ("price", ">u4")]),
}


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """The speed of an import, in messages of the file a second."""
    with tempfile.TemporaryDirectory(prefix="exchange-itch-") as folder:
        source = Path(folder, "made.itch")
        output = Path(folder, "tape.bin")
        for title, shares in (
            ("ITCH 5.0 to a tape, all of one stock", 1),
            ("one block in a hundred of the stock", 100),
        ):
            write_itch(source, BLOCKS, shares)
            messages = BLOCKS * MESSAGES_A_BLOCK
            speeds = [messages_per_s(source, output, messages) for _ in range(repeats + 1)]
            yield Floor(title=title, unit="messages/s", ours=speeds[1:], required=3e6, hoped_for=10e6)


def messages_per_s(source: Path, output: Path, messages: int) -> float:
    start_ns = time.thread_time_ns()
    imported = import_tape(source, ItchFile(STOCK), output, UNITS_A_TICK)
    elapsed_ns = time.thread_time_ns() - start_ns
    if imported.events != messages:
        raise AssertionError(f"{imported.events} messages were read of {messages}")
    return messages * 1e9 / elapsed_ns


def write_itch(path: Path, blocks: int, blocks_a_stock: int) -> None:
    """Write blocks of messages. Every `blocks_a_stock`th block is of STOCK, the others of another stock."""
    random = np.random.default_rng(1)
    with path.open("wb") as file:
        for block in range(blocks):
            is_of_stock = block % blocks_a_stock == 0
            file.write(_block(random, block, STOCK if is_of_stock else OTHER_STOCK, 1 if is_of_stock else 2))


def _block(random: np.random.Generator, block: int, stock: str, locate: int) -> bytes:
    """Return the lives of BLOCK_ORDERS orders: all arrive; some shrink, trade or are replaced; all leave."""
    first_number = 1 + 2 * block * BLOCK_ORDERS
    numbers = random.permutation(np.arange(first_number, first_number + BLOCK_ORDERS))
    some = BLOCK_ORDERS // 20

    def messages(code: str, named: np.ndarray, part: int) -> np.ndarray:
        layout = LAYOUTS[code]
        rows_of_code = np.zeros(len(named), layout)
        rows_of_code["length"] = layout.itemsize - 2
        rows_of_code["type"] = code
        rows_of_code["locate"] = locate
        time_ns = (block * 10 + part) * 1_000_000
        rows_of_code["time"] = np.void(time_ns.to_bytes(6, "big"))
        rows_of_code["number"] = named
        return rows_of_code

    adds = messages("A", numbers, 0)
    adds["side"] = np.where(random.integers(0, 2, BLOCK_ORDERS) == 0, b"B", b"S")
    adds["shares"] = random.integers(100, 1000, BLOCK_ORDERS)
    adds["stock"] = stock.ljust(8)
    adds["price"] = UNITS_A_TICK * random.integers(10_000, 11_000, BLOCK_ORDERS)
    partial_cancels = messages("X", numbers[:some], 1)
    partial_cancels["shares"] = 10
    executions = messages("E", numbers[some : 2 * some], 2)
    executions["shares"] = 50
    replaces = messages("U", numbers[2 * some : 3 * some], 3)
    replaces["new_number"] = numbers[2 * some : 3 * some] + BLOCK_ORDERS
    replaces["shares"] = 500
    replaces["price"] = UNITS_A_TICK * random.integers(10_000, 11_000, some)
    remaining = np.concatenate((numbers[: 2 * some], replaces["new_number"].astype(np.int64), numbers[3 * some :]))
    deletes = messages("D", random.permutation(remaining), 4)
    return b"".join(part.tobytes() for part in (adds, partial_cancels, executions, replaces, deletes))
