"""Measures the matching core: decode, validate, match and encode from memory to memory, a batch at a time.

Ours is `MatchingEngine.handle`, called from Python. The references are `reference/matching.cpp`, which finds the next
best price in a bitmap or by walking the array of price levels; `reference/order_types.cpp`, which has ids, order types,
cancels and replaces, too; and `benchmarks/reference_book.py`, sorted dictionaries of queues. Each reference must give
our answers, byte for byte.

Time is CPU time of the thread, so other programs count as little as possible. Files, batches and the book are made
before the clock starts. A figure is the best of a few passes, since the first has cold caches; a reference that takes a
second runs once.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.comparison import BenchmarkRow, Measure, in_turns
from benchmarks.cpp import built
from benchmarks.reference_book import ReferenceBook
from exchange.checksum import StreamChecksum
from exchange.messages import Cancel, Order, decode_all, encode
from exchange.order_mix import OrderMix
from gateway.mixed_orders import PAPERS_MIX, MixedOrders
from gateway.offering import MixedOrderFlow, OrderFlow
from gateway.seeded_orders import SeededOrders
from matching_engine.engine import HandleStop, MatchingEngine
from matching_engine.order_book import OrderBook
from transports.frames import FrameBatch

SEED = 1
PASSES = 3
"""A figure is the best of this many passes."""
BATCH_ORDERS = 4096
MIX_OF_ALL = "limit=43,post=7,market=5,ioc=3,fok=2,cancel=30,replace=10"
"""A mix of all kinds, of which no more orders rest at any time than the book has room for at first."""
SMALL = 50_000
"""Number of orders for the reference in Python."""


@dataclass
class Tape:
    """A stream of orders, with volumes of the default workload; and the settings of the book."""

    prices: tuple[int, int] = (450, 549)
    """The lowest and the highest price."""
    max_price: int = 999
    orders: int = 1_000_000
    with_ids: bool = False
    mix: str | None = None
    """The mix of messages; None for plain orders with uniform prices."""
    price_model: str = "uniform"
    instruments: int = 1
    """With several, each order names one, by Zipf's law."""
    answers: FrameBatch = field(default_factory=lambda: FrameBatch(1 << 16, 1 << 20))

    def batches(self) -> Iterator[FrameBatch]:
        """Yield the orders as frames, as the engine receives them."""
        is_plain = self.mix is None and self.instruments == 1
        flow = OrderFlow(self._plain_orders) if is_plain else MixedOrderFlow(self._mixed_orders(self.mix or PAPERS_MIX))
        for first in range(0, self.orders, BATCH_ORDERS):
            batch = FrameBatch(BATCH_ORDERS)
            flow.fill(batch, first + 1, min(BATCH_ORDERS, self.orders - first))
            yield batch

    def records(self) -> bytes:
        """Return the orders one after the other, as in a file."""
        orders = self._plain_orders if self.mix is None else self._mixed_orders(self.mix)
        return orders.records(1, self.orders)

    @property
    def _plain_orders(self) -> SeededOrders:
        return SeededOrders(SEED, self.prices, self.price_model)

    def _mixed_orders(self, mix: str) -> MixedOrders:
        return MixedOrders(OrderMix.parse(mix), SEED, self.prices, self.price_model, self.instruments)


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """The comparisons of the matching core."""
    default = Tape()
    with_bitmap = cpp("bitmap", default)
    yield compared(
        "1,000,000 default orders",
        default,
        "C++, levels with bitmap",
        with_bitmap,
        repeats,
        required=1.0,
        hoped_for=1.3,
    )

    by_id = Tape(with_ids=True)
    without_ids = cpp("bitmap", by_id)
    yield compared("the same, with an index of ids", by_id, "C++, without ids", without_ids, repeats)

    with_order_types = cpp_with_ids(by_id)
    yield compared("the same", by_id, "C++, with ids", with_order_types, repeats)

    moves = Tape(with_ids=True, mix="exchange-core", price_model="two-sided")
    yield compared(
        "1,000,000 of the mix exchange-core",
        moves,
        "C++, with ids",
        cpp_with_ids(moves),
        repeats,
        required=1.0,
        hoped_for=1.3,
    )

    several = Tape(with_ids=True, mix=MIX_OF_ALL, price_model="two-sided")
    yield compared("1,000,000 of a mix of all kinds", several, "C++, with ids", cpp_with_ids(several), repeats)

    wide = Tape(prices=(1, 65534), max_price=65534)
    walking = cpp("levels", wide, passes=1)
    yield compared(
        "uniform over 65,534 ticks", wide, "C++, array of levels", walking, repeats, required=20, hoped_for=40
    )
    yield compared("the same", wide, "C++, levels with bitmap", cpp("bitmap", wide), repeats)

    yield many_against_one(repeats)

    small = Tape(orders=SMALL)
    in_python = python(small)
    yield compared(
        f"{SMALL:,} default orders",
        small,
        "Python, sorted dictionaries",
        in_python,
        repeats,
        required=60,
        hoped_for=100,
    )


def many_against_one(repeats: int) -> BenchmarkRow:
    """Compare orders of 1,000 instruments with the same orders of one, in turns."""
    many = Tape(instruments=1_000)
    one = Tape()
    batches_of_one = list(one.batches())

    def with_one() -> float:
        return max(our_orders_per_s(one, batches_of_one) for _ in range(PASSES))

    return compared(
        "1,000 instruments, Zipf", many, "ours, one instrument", with_one, repeats, required=0.6, hoped_for=0.8
    )


def compared(
    title: str,
    tape: Tape,
    against: str,
    reference: Measure | None,
    repeats: int,
    required: float | None = None,
    hoped_for: float | None = None,
) -> BenchmarkRow:
    """Match the tape with our engine and with a reference, in turns. The row's figures are orders a second."""
    batches = list(tape.batches())

    def best_of_our_passes() -> float:
        return max(our_orders_per_s(tape, batches) for _ in range(PASSES))

    ours, theirs = in_turns(best_of_our_passes, reference, repeats)
    return BenchmarkRow(title, against, "orders/s", ours, theirs, required, hoped_for)


def our_orders_per_s(tape: Tape, batches: list[FrameBatch], checksum: StreamChecksum | None = None) -> float:
    """Match the batches in a new book; returns orders a second. With `checksum`, the answers are added to it."""
    instruments = None if tape.instruments == 1 else tape.instruments
    engine = MatchingEngine(OrderBook(tape.max_price, with_ids=tape.with_ids, instruments=instruments))
    answers = tape.answers
    engine.warm()
    start_ns = time.thread_time_ns()
    for batch in batches:
        first = 0
        stop = HandleStop.ROOM
        while stop is not HandleStop.DONE:
            answers.clear()
            first, stop = engine.handle(batch, answers, first)
            if checksum:
                checksum.update(answers.span(0, answers.count))
    return tape.orders * 1e9 / (time.thread_time_ns() - start_ns)


def our_checksum(tape: Tape) -> str:
    """Return the checksum of our answers."""
    checksum = StreamChecksum()
    our_orders_per_s(tape, list(tape.batches()), checksum)
    return checksum.hex


def cpp(search: str, tape: Tape, passes: int = PASSES) -> Measure | None:
    """Check that the C++ program gives our answers to the tape; returns a function that measures its orders a second.

    `search` is how the program finds the next best price: "bitmap" or "levels". None if there is no compiler.
    """
    program = built("matching")
    if program is None:
        return None
    return _program([str(program), search, str(tape.max_price)], tape, passes)


def cpp_with_ids(tape: Tape) -> Measure | None:
    """Do the same with the C++ program that has ids, order types, cancels and replaces."""
    program = built("order_types")
    if program is None:
        return None
    return _program([str(program), str(tape.max_price)], tape, PASSES)


def _program(command: list[str], tape: Tape, passes: int) -> Measure:
    """Check a program's answers to the tape; returns a function that measures its orders a second.

    The program takes the number of passes, the tape, and a file for its answers as its last words.
    """
    folder = tempfile.TemporaryDirectory(prefix="exchange-tape-")
    orders = Path(folder.name, "orders.bin")
    answers = Path(folder.name, "answers.bin")
    orders.write_bytes(tape.records())
    subprocess.run([*command, "1", str(orders), str(answers)], check=True, capture_output=True)
    check_answers(tape, answers.read_bytes())

    def best_of_its_passes(_folder: tempfile.TemporaryDirectory[str] = folder) -> float:
        """The default value keeps the temporary folder until this function is gone."""
        finished = subprocess.run([*command, str(passes), str(orders)], check=True, capture_output=True, text=True)
        rates = []
        for line in finished.stdout.splitlines():
            matched, _answers, _bytes, seconds = line.split()
            rates.append(int(matched) / float(seconds))
        return max(rates)

    return best_of_its_passes


def python(tape: Tape) -> Measure:
    """Check that the reference in Python gives our answers; returns a function that measures its orders a second.

    The reference reads and writes the same bytes as our engine.
    """
    records = tape.records()
    check_answers(tape, b"".join(python_answers(tape, records)))

    def run() -> float:
        start_ns = time.thread_time_ns()
        for _ in python_answers(tape, records):
            pass
        return tape.orders * 1e9 / (time.thread_time_ns() - start_ns)

    return run


def python_answers(tape: Tape, records: bytes) -> Iterator[bytes]:
    """Yield the answers of the reference in Python, encoded."""
    book = ReferenceBook(tape.max_price)
    for message in decode_all(records):
        assert isinstance(message, Order | Cancel)
        for answer in book.handle(message):
            yield encode(answer)


def check_answers(tape: Tape, answers: bytes) -> None:
    """Raise AssertionError unless the reference's answers equal ours."""
    checksum = StreamChecksum()
    checksum.update(np.frombuffer(answers, np.uint8))
    if checksum.hex != our_checksum(tape):
        raise AssertionError(f"the reference's answers to {tape} differ from ours")
