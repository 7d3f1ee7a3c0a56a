"""Writers of market data files, after the published layouts, and a plain market whose events they write."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.reference_book import ReferenceBook
from exchange.messages import (
    ASK,
    BID,
    Cancelled,
    CancelRequest,
    Message,
    Order,
    Rejection,
    ReplaceRequest,
    Trade,
    TypedOrder,
)

STOCK = "TEST"
OTHER_STOCK = "ELSE"
LOCATE_OF = {STOCK: 7, OTHER_STOCK: 8}
UNITS_A_TICK = 100  # a cent, in ten-thousandths of a dollar


@dataclass(frozen=True)
class Event:
    """What happened to a resting order. `kind`: add, reduce, delete, execute, replace or hidden."""

    kind: str
    number: int
    side: int = BID
    price: int = 0  # units of 0.0001 dollars
    shares: int = 0
    new_number: int = 0


def itch(events: Iterable[Event], stock: str = STOCK, first_ns: int = 0, step_ns: int = 1_000) -> bytes:
    """Return the events as messages of ITCH 5.0 of one stock, after its entry in the directory."""
    content = [itch_directory(stock, first_ns)]
    content += [itch_message(event, stock, first_ns + i * step_ns) for i, event in enumerate(events)]
    return b"".join(content)


def framed(message: bytes) -> bytes:
    return struct.pack(">H", len(message)) + message


def head(code: str, stock: str, time_ns: int) -> bytes:
    return struct.pack(">cHH", code.encode(), LOCATE_OF[stock], 0) + time_ns.to_bytes(6, "big")


def itch_directory(stock: str, time_ns: int) -> bytes:
    return framed(head("R", stock, time_ns) + struct.pack(">8s20s", stock.ljust(8).encode(), b" " * 20))


CODES = {
    "add": "A",
    "attributed": "F",
    "execute": "E",
    "execute at": "C",
    "reduce": "X",
    "delete": "D",
    "replace": "U",
    "hidden": "P",
}


def itch_message(event: Event, stock: str, time_ns: int) -> bytes:
    """Return the event as one message with its length."""
    side = b"B" if event.side == BID else b"S"
    symbol = stock.ljust(8).encode()
    fields = {
        "add": struct.pack(">cI8sI", side, event.shares, symbol, event.price),
        "attributed": struct.pack(">cI8sI4s", side, event.shares, symbol, event.price, b"MPID"),
        "execute": struct.pack(">IQ", event.shares, 1),
        "execute at": struct.pack(">IQcI", event.shares, 1, b"Y", event.price),
        "reduce": struct.pack(">I", event.shares),
        "delete": b"",
        "replace": struct.pack(">QII", event.new_number, event.shares, event.price),
        "hidden": struct.pack(">cI8sIQ", side, event.shares, symbol, event.price, 1),
    }
    number = struct.pack(">Q", event.number)
    return framed(head(CODES[event.kind], stock, time_ns) + number + fields[event.kind])


LOBSTER_TYPES = {"add": 1, "reduce": 2, "delete": 3, "execute": 4, "hidden": 5}


def lobster(events: Iterable[Event], first_ns: int = 34_200_000_000_000, step_ns: int = 1_000) -> str:
    """Return the events, which have no replaces, as lines of LOBSTER's message file."""
    lines = []
    for i, event in enumerate(events):
        time_ns = first_ns + i * step_ns
        time = f"{time_ns // 10**9}.{time_ns % 10**9:09}"
        direction = 1 if event.side == BID else -1
        code = LOBSTER_TYPES[event.kind]
        lines.append(f"{time},{code},{event.number},{event.shares},{event.price},{direction}\n")
    return "".join(lines)


def events_of(messages: Iterable[Message], book: ReferenceBook, with_replaces: bool) -> Iterator[Event]:
    """Match the messages with the book, and yield the events that such a market would publish.

    Without replaces, a replaced order is deleted and added again.
    """
    number_of: dict[int, int] = {}  # the published number of each resting order
    next_number = 1_000_000_007

    def published(order_id: int, side: int, price: int, lots: int) -> Event:
        nonlocal next_number
        next_number += 3
        number_of[order_id] = next_number
        return Event("add", next_number, side, price * UNITS_A_TICK, lots)

    for message in messages:
        replaced = book.orders.by_id.get(message.order_id) if isinstance(message, ReplaceRequest) else None
        before = (replaced.side, replaced.price, replaced.volume) if replaced else None
        answers = book.handle(message)
        if any(isinstance(answer, Rejection) for answer in answers):
            continue
        incoming_id = message.order_id if isinstance(message, ReplaceRequest) else message.id
        if isinstance(message, ReplaceRequest) and before is not None:
            keeps_place = message.price == before[1] and message.volume <= before[2]
            number = number_of[message.order_id]
            if keeps_place:
                yield Event("reduce", number, before[0], before[1] * UNITS_A_TICK, before[2] - message.volume)
                continue
            traded_at_once = any(isinstance(answer, Trade) for answer in answers)
            if with_replaces and not traded_at_once:
                next_number += 3
                number_of[message.order_id] = next_number
                price = message.price * UNITS_A_TICK
                yield Event("replace", number, before[0], price, message.volume, next_number)
                continue
            yield Event("delete", number, before[0], before[1] * UNITS_A_TICK, before[2])
        traded = [answer for answer in answers if isinstance(answer, Trade) and answer.id != incoming_id]
        for trade in traded:
            side = ASK if _incoming_side(message, before) == BID else BID
            yield Event("execute", number_of[trade.id], side, trade.price * UNITS_A_TICK, trade.volume)
        if isinstance(message, CancelRequest):
            [lots] = [answer.volume for answer in answers if isinstance(answer, Cancelled)]
            yield Event("delete", number_of[message.order_id], shares=lots)
            continue
        resting = book.orders.by_id.get(incoming_id)
        if resting is not None:
            yield published(incoming_id, resting.side, resting.price, resting.volume)


def _incoming_side(message: Message, replaced: tuple[int, int, int] | None) -> int:
    if isinstance(message, Order | TypedOrder):
        return message.side
    return replaced[0] if replaced else BID
