"""Compares two ways to take the orders of several senders from RabbitMQ: one queue for all, and a queue for each.

    one queue    16 senders ── orders ──▶ [one queue]  ── one connection ──▶  receiver     pattern fan-in
    pairs        16 senders ── orders ──▶ [16 queues]  ── 16 connections ──▶  receiver     pattern pair, as in a market

The receiver is one compiled loop over the calls that the links lend, as the engine's turns are. Orders have ten bytes:
the time of sending, and the sender. The reference is the pairs; `required` is left out, since the figures decide
nothing by themselves: docs/decisions/0019-one-queue-of-orders.md weighs them.

The last row has no choice of queues: it is the CPU time of the whole engine with sixteen gateways and with two, at the
same rate and without quotes, so that only the number of connections differs. One queue could save little more than the
difference. A lone gateway is no reference, since it always gets quotes.
"""

from __future__ import annotations

import multiprocessing
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier, Event
from typing import Any

import numpy as np
from numba import types

from benchmarks.brokers import is_installed, running_server, server_cpu_ns
from benchmarks.comparison import BenchmarkRow, Cost, in_turns, permitted_priority, record_of, usage_of
from exchange.compiled import cached_kernel
from transports import lending, lent_table
from transports.base import Link, Pattern
from transports.declaration import RunningBroker
from transports.frames import Bytes, FrameBatch, Longs
from transports.lending import NOTICE, RECEIVE, SIGNAL, SLEEP, Lent, lent_by, monotonic_ns, poll
from transports.lent_table import FIRST_POLLFD, LINK_COLUMNS, MAY_HAVE_SENT, LentTable, memory_of, numbers_of
from transports.registry import connect, listen

SCHEME = "amqp"
SENDERS = (4, 16)
RATE_OF_SENDER = 500
PACED_ORDERS = 1_000
"""The orders of each sender at a fixed rate: two seconds."""
FLAT_OUT_ORDERS = 160_000
"""The orders of all senders together, flat out."""
ENGINE_RATE = 8_000
ENGINE_ORDERS = 32_000
BATCH_CAPACITY = 512
"""The most orders that are received from a link before it is the next one's turn, as in the engine's turns."""
BATCH_ORDERS = 100
"""Orders that a sender hands over at once, flat out."""
ORDER = struct.Struct("<qH")
"""When the order was sent, in ns of the monotonic clock, and its sender's number."""
FEW = 5
"""Repeats of rows that take long."""
PATIENCE_S = 60.0
LEAD_NS = 20_000_000
"""The time from the start of all senders to their first order at a fixed rate."""
NS_PER_S = 1_000_000_000
NS_PER_US = 1_000

# Indexes of the counts of `take_orders`.
RECEIVED = 0
"""Orders so far."""
FIRST_NS = 1
"""When the first orders were received."""
LAST_NS = 2
"""When the latest orders were received."""

_LONG = types.int64
_LONGS = types.int64[::1]
TAKE_ORDERS = types.void(
    *map(types.FunctionType, (RECEIVE, SLEEP)),
    types.int64[:, ::1],
    _LONGS,
    _LONGS,
    types.uint8[::1],
    _LONGS,
    _LONG,
    _LONGS,
    _LONG,
    _LONGS,
    _LONG,
)


@cached_kernel(lending, lent_table, signature=TAKE_ORDERS)
def take_orders(
    receive: Any,
    sleep: Any,
    rows: Longs,
    pollfds: Longs,
    owners: Longs,
    buffer: Bytes,
    offsets: Longs,
    largest: int,
    delays_ns: Longs,
    orders: int,
    counts: Longs,
    until_ns: int,
) -> None:
    """Receive from all links until this many orders came, until `until_ns`, or until Python is needed.

    A delay is the time from sending an order to its receipt.
    """
    timespec = np.empty(2, np.int64)
    needs_python = False
    while counts[RECEIVED] < orders and not needs_python:
        has_moved = False
        for row in range(len(rows)):
            if rows[row, MAY_HAVE_SENT] == 0:
                continue
            numbers = numbers_of(rows, row)
            received = receive(numbers, memory_of(rows, row), buffer, offsets, 0, largest)
            needs_python |= numbers[NOTICE] != 0
            if received == 0:
                rows[row, MAY_HAVE_SENT] = 0
                continue
            has_moved = True
            now_ns = monotonic_ns(timespec)
            if counts[RECEIVED] == 0:
                counts[FIRST_NS] = now_ns
            counts[LAST_NS] = now_ns
            for i in range(received):
                sent_ns = buffer[offsets[i] : offsets[i] + 8].view(np.int64)[0]
                delays_ns[counts[RECEIVED] + i] = now_ns - sent_ns
            counts[RECEIVED] += received
        if has_moved:
            continue
        if monotonic_ns(timespec) >= until_ns:
            break
        reason = poll(pollfds, timespec, until_ns)
        if reason == SIGNAL:
            break
        for i in range(len(pollfds)):
            if pollfds[i] >> 48:  # the field `revents`, the last two bytes
                row = owners[i]
                rows[row, MAY_HAVE_SENT] = 1
                if i != rows[row, FIRST_POLLFD] or reason != 0:
                    numbers = numbers_of(rows, row)
                    sleep(numbers, memory_of(rows, row), 0)  # it notes what Python has to do
                    needs_python |= numbers[NOTICE] != 0


@dataclass(frozen=True, kw_only=True)
class QueueFigures:
    """What one measurement gave."""

    orders_per_s: float
    receiver_us: float
    """CPU time of the receiving process, for each order."""
    broker_us: float
    """CPU time of the broker, for each order."""
    p50_us: float
    """From sending to receipt."""
    p99_us: float


@dataclass(frozen=True)
class Way:
    """A way to take the orders of several senders."""

    pattern: Pattern
    has_own_queues: bool
    """Whether each sender has a queue, and the receiver a connection for it."""

    def url(self, broker_url: str, sender: int) -> str:
        """Return the address at which a sender, counted from 0, connects."""
        return f"{broker_url}?pair={sender + 1}" if self.has_own_queues else broker_url

    def links(self, broker_url: str, token: str, senders: int) -> list[Link]:
        """Open the receiver's links."""
        number = senders if self.has_own_queues else 1
        return [listen(self.url(broker_url, i), token, self.pattern) for i in range(number)]


ONE_QUEUE = Way(Pattern.FAN_IN, has_own_queues=False)
PAIRS = Way(Pattern.PAIR, has_own_queues=True)


@dataclass(frozen=True)
class Load:
    """What each sender sends."""

    senders: int
    orders_of_sender: int
    is_paced: bool
    """Whether each sends RATE_OF_SENDER orders a second; otherwise as fast as it goes."""

    @property
    def orders(self) -> int:
        return self.senders * self.orders_of_sender

    @property
    def words(self) -> str:
        pace = f"{RATE_OF_SENDER} orders/s each" if self.is_paced else "flat out"
        return f"{self.senders} senders, {pace}"


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure both ways flat out and at a fixed rate, then the engine's CPU time with sixteen gateways and two."""
    if not is_installed(SCHEME):
        return
    few = min(repeats, FEW)
    with running_server(SCHEME) as broker:
        for senders in SENDERS:
            yield from rows_of(broker, Load(senders, FLAT_OUT_ORDERS // senders, is_paced=False), few)
            yield from rows_of(broker, Load(senders, PACED_ORDERS, is_paced=True), few)
    ours, reference = in_turns(partial(engine_us, 16), partial(engine_us, 2), few)
    yield Cost(
        f"CPU time of the engine at {ENGINE_RATE:,} orders/s in all from 16 gateways over AMQP, without quotes",
        "2 gateways",
        "us/order",
        ours,
        reference,
    )


def rows_of(broker: RunningBroker, load: Load, repeats: int) -> Iterator[BenchmarkRow]:
    """Measure both ways in turns, after one round that does not count; yield a row for each figure."""
    one_queue = []
    pairs = []
    for _ in range(repeats + 1):
        one_queue.append(measured(broker, ONE_QUEUE, load))
        pairs.append(measured(broker, PAIRS, load))
    del one_queue[0], pairs[0]
    title = f"one queue of orders, {load.words}"
    against = f"{load.senders} queues"
    if not load.is_paced:
        yield BenchmarkRow(
            f"{title}: rate",
            against,
            "orders/s",
            [figures.orders_per_s for figures in one_queue],
            [figures.orders_per_s for figures in pairs],
        )
    costs = [("receiver's CPU", "us/order", "receiver_us"), ("broker's CPU", "us/order", "broker_us")]
    if load.is_paced:
        costs += [("p50 from sending to receipt", "us", "p50_us"), ("p99", "us", "p99_us")]
    for words, unit, name in costs:
        yield Cost(
            f"{title}: {words}",
            against,
            unit,
            [getattr(figures, name) for figures in one_queue],
            [getattr(figures, name) for figures in pairs],
        )


def measured(broker: RunningBroker, way: Way, load: Load) -> QueueFigures:
    """Send all orders of a load, each sender in a process of its own, and receive them in this process."""
    token = f"order-queue-{time.monotonic_ns()}"
    forking = multiprocessing.get_context("fork")
    begins = forking.Barrier(load.senders + 1)
    is_over = forking.Event()
    senders = [
        forking.Process(
            target=send, args=(way.url(broker.url, number), token, way.pattern, load, number, begins, is_over)
        )
        for number in range(load.senders)
    ]
    for sender in senders:
        sender.start()
    links = way.links(broker.url, token, load.senders)
    try:
        begins.wait(PATIENCE_S)
        return received(broker, links, load)
    finally:
        is_over.set()
        for sender in senders:
            sender.join(PATIENCE_S)
            if sender.is_alive():
                sender.kill()
        for link in links:
            link.close()


def received(broker: RunningBroker, links: Sequence[Link], load: Load) -> QueueFigures:
    """Receive all orders. RuntimeError if they do not come in time."""
    delays_ns = np.zeros(load.orders + BATCH_CAPACITY, np.int64)
    counts = np.zeros(3, np.int64)
    batch = FrameBatch(BATCH_CAPACITY)
    table = LentTable(len(links), LINK_COLUMNS)
    until_ns = time.monotonic_ns() + int(PATIENCE_S * NS_PER_S)
    cpu_ns_before = time.process_time_ns()
    broker_ns_before = server_cpu_ns(broker)
    while counts[RECEIVED] < load.orders:
        if time.monotonic_ns() > until_ns:
            raise RuntimeError(f"{counts[RECEIVED]} of {load.orders} orders came")
        lent_of_links = [lent_of(link) for link in links]
        table.place(list(enumerate(lent_of_links)))
        take_orders(
            lent_of_links[0].receive,
            lent_of_links[0].sleep,
            table.rows,
            table.pollfds,
            table.owners,
            batch.buffer,
            batch.offsets,
            batch.largest_frame,
            delays_ns,
            load.orders,
            counts,
            until_ns,
        )
        for lent in lent_of_links:
            lent.settle()
    receiver_ns = time.process_time_ns() - cpu_ns_before
    broker_ns = server_cpu_ns(broker) - broker_ns_before
    delays_us = delays_ns[: load.orders] / NS_PER_US
    return QueueFigures(
        orders_per_s=load.orders * NS_PER_S / float(counts[LAST_NS] - counts[FIRST_NS]),
        receiver_us=receiver_ns / NS_PER_US / load.orders,
        broker_us=broker_ns / NS_PER_US / load.orders,
        p50_us=float(np.percentile(delays_us, 50)),
        p99_us=float(np.percentile(delays_us, 99)),
    )


def lent_of(link: Link) -> Lent:
    lent = lent_by(link)
    if lent is None:
        raise RuntimeError(f"{link.url} lends no calls: the broker may be in alarm")
    return lent


def send(url: str, token: str, pattern: Pattern, load: Load, number: int, begins: Barrier, is_over: Event) -> None:
    """Be a sender: connect, wait for the others, send all orders, and stay until the receiver has all of them."""
    link = connect(url, token, time.monotonic_ns() + int(PATIENCE_S * NS_PER_S), pattern)
    begins.wait(PATIENCE_S)
    if load.is_paced:
        send_paced(link, load, number)
    else:
        send_flat_out(link, load.orders_of_sender, number)
    link.drain(time.monotonic_ns() + int(PATIENCE_S * NS_PER_S))
    is_over.wait(PATIENCE_S)
    link.close()


def send_flat_out(link: Link, orders: int, number: int) -> None:
    left = orders
    while left:
        order = ORDER.pack(time.monotonic_ns(), number)
        batch = FrameBatch.of(*[order] * min(left, BATCH_ORDERS))
        send_whole(link, batch)
        left -= batch.count


def send_paced(link: Link, load: Load, number: int) -> None:
    """Send an order every 1 / RATE_OF_SENDER; the senders' due times are spread evenly."""
    every_ns = NS_PER_S // RATE_OF_SENDER
    first_ns = time.monotonic_ns() + LEAD_NS + every_ns * number // load.senders
    batch = FrameBatch()
    for i in range(load.orders_of_sender):
        due_ns = first_ns + i * every_ns
        while time.monotonic_ns() < due_ns:
            link.wait(due_ns, readable=False)
        batch.clear()
        batch.append(ORDER.pack(time.monotonic_ns(), number))
        send_whole(link, batch)


def send_whole(link: Link, batch: FrameBatch) -> None:
    """Send all frames of a batch, and wait for room if the link takes no more."""
    first = link.send(batch, 0)
    while first < batch.count:
        link.wait(time.monotonic_ns() + NS_PER_S, readable=False, writable=True)
        first = link.send(batch, first)


def engine_us(gateways: int) -> float:
    """Run the exchange over AMQP; returns the engine's CPU time for each order, in us."""
    load = ("--gateways", gateways, "--rate", ENGINE_RATE, "--orders", ENGINE_ORDERS, "--quotes-to", "none")
    record = record_of("run", "--no-page", "--transport", SCHEME, *load, "--priority", permitted_priority())
    return usage_of(record, "engine", "cpu_s") * 1e6 / ENGINE_ORDERS
