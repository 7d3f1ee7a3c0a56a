"""NASDAQ TotalView-ITCH 5.0: every message of a day, of all stocks, each after two bytes with its length, big-endian.

The orders of one stock become a tape. Messages name the stock by its locate code, which the stock directory gives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exchange.compiled import cached_kernel, inlined, signed
from exchange.messages import ASK, BID
from exchange_simulation.experiments.tapes import conversion
from exchange_simulation.experiments.tapes.conversion import (
    Conversion,
    add_order,
    delete_order,
    execute_order,
    is_half_full,
    reduce_order,
    replace_order,
)
from exchange_simulation.experiments.tapes.event_file import BAD, END_OF_CHUNK, GROW, EventFile
from transports.frames import Bytes, Longs


class ItchMessage(NamedTuple):
    """A message of ITCH 5.0."""

    name: str
    size: int
    is_converted: bool = False


ITCH_MESSAGES = {
    "S": ItchMessage("system events", 12),
    "R": ItchMessage("stock directory entries", 39),
    "H": ItchMessage("trading actions", 25),
    "Y": ItchMessage("short sale restrictions", 20),
    "L": ItchMessage("market participant positions", 26),
    "V": ItchMessage("circuit breaker levels", 35),
    "W": ItchMessage("circuit breaker breaches", 12),
    "K": ItchMessage("IPO quoting periods", 28),
    "J": ItchMessage("auction collars", 35),
    "h": ItchMessage("operational halts", 21),
    "A": ItchMessage("orders", 36, is_converted=True),
    "F": ItchMessage("orders with attribution", 40, is_converted=True),
    "E": ItchMessage("executions", 31, is_converted=True),
    "C": ItchMessage("executions with a price", 36, is_converted=True),
    "X": ItchMessage("partial cancels", 23, is_converted=True),
    "D": ItchMessage("deletes", 19, is_converted=True),
    "U": ItchMessage("replaces", 35, is_converted=True),
    "P": ItchMessage("trades of hidden orders", 44),
    "Q": ItchMessage("trades in a cross", 40),
    "B": ItchMessage("broken trades", 19),
    "I": ItchMessage("order imbalances", 50),
    "N": ItchMessage("retail price improvements", 20),
    "O": ItchMessage("direct listing prices", 48),
}
"""All messages by their type byte. The size is without the two bytes of the length."""


def _sizes() -> Longs:
    sizes = np.zeros(256, np.int64)
    for code, message in ITCH_MESSAGES.items():
        sizes[ord(code)] = message.size
    return sizes


SIZES = _sizes()
LENGTH_BYTES = 2
LEAST_EVENT_BYTES = LENGTH_BYTES + min(message.size for message in ITCH_MESSAGES.values() if message.is_converted)
STOCK_BYTES = 8

DIRECTORY = ord("R")
ADD = ord("A")
ADD_ATTRIBUTED = ord("F")
EXECUTED = ord("E")
EXECUTED_WITH_PRICE = ord("C")
CANCEL = ord("X")
DELETE = ord("D")
REPLACE = ord("U")
BUY = ord("B")

# Offsets of fields, from the type byte on. Those of an order, an execution or cancel, a replace, and the directory.
LOCATE = 1
LOCATE_BYTES = 2
TIME = 5
TIME_BYTES = 6
ORDER_NUMBER = 11
ADD_SIDE = 19
ADD_SHARES = 20
ADD_STOCK = 24
ADD_PRICE = 32
SHARES = 19
NEW_NUMBER = 19
NEW_SHARES = 27
NEW_PRICE = 31
DIRECTORY_STOCK = 11

# Words of `words` in `_convert`.
STOCK = 0  # the stock's symbol as a number
LOCATE_CODE = 1  # of the stock; NO_CODE until a message has it
OTHER_STOCKS = 2  # messages of other stocks, or of none
WORDS = 3
NO_CODE = -1


@inlined
def _big_endian(data: Bytes, at: int, size: int) -> int:
    """Return the number in the `size` bytes from `at` on."""
    value = signed(0)
    for i in range(size):
        value = (value << 8) | signed(data[at + i])
    number: int = value
    return number


@inlined
def _names_stock(data: Bytes, message: int, stock: int) -> bool:
    """Return whether the message has the symbol of this stock; only orders and the directory have one."""
    code = data[message]
    if code in (ADD, ADD_ATTRIBUTED):
        return _big_endian(data, message + ADD_STOCK, STOCK_BYTES) == stock
    return code == DIRECTORY and _big_endian(data, message + DIRECTORY_STOCK, STOCK_BYTES) == stock


@inlined
def _enter(conversion: Conversion, data: Bytes, message: int) -> None:
    """Put the message on the tape, if a record can say it."""
    code = data[message]
    time_ns = _big_endian(data, message + TIME, TIME_BYTES)
    number = _big_endian(data, message + ORDER_NUMBER, 8)
    if code in (ADD, ADD_ATTRIBUTED):
        side = BID if data[message + ADD_SIDE] == BUY else ASK
        price = _big_endian(data, message + ADD_PRICE, 4)
        add_order(conversion, time_ns, number, side, price, _big_endian(data, message + ADD_SHARES, 4))
    elif code == DELETE:
        delete_order(conversion, time_ns, number)
    elif code in (EXECUTED, EXECUTED_WITH_PRICE):
        execute_order(conversion, time_ns, number, _big_endian(data, message + SHARES, 4))
    elif code == CANCEL:
        reduce_order(conversion, time_ns, number, _big_endian(data, message + SHARES, 4))
    elif code == REPLACE:
        new_number = _big_endian(data, message + NEW_NUMBER, 8)
        price = _big_endian(data, message + NEW_PRICE, 4)
        replace_order(conversion, time_ns, number, new_number, price, _big_endian(data, message + NEW_SHARES, 4))


@cached_kernel(conversion)  # compiled again when a rule of conversion changes
def _convert(conversion: Conversion, data: Bytes, at: int, sizes: Longs, types: Longs, words: Longs) -> tuple[int, int]:
    """Convert the whole messages from `at` on. Returns why it stopped, and where.

    `types` counts the stock's messages by type, and `words` those of other stocks or of none.
    """
    while at + LENGTH_BYTES < len(data):
        if is_half_full(conversion):
            return GROW, at
        message = at + LENGTH_BYTES
        size = sizes[data[message]]
        if size == 0 or _big_endian(data, at, LENGTH_BYTES) != size:
            return BAD, at
        if message + size > len(data):
            break
        locate = _big_endian(data, message + LOCATE, LOCATE_BYTES)
        if _names_stock(data, message, words[STOCK]):
            words[LOCATE_CODE] = locate
        if locate == words[LOCATE_CODE]:
            types[data[message]] += 1
            _enter(conversion, data, message)
        else:
            words[OTHER_STOCKS] += 1
        at = message + size
    return END_OF_CHUNK, at


class ItchFile(EventFile):
    """Reads the messages of one stock, chunk by chunk."""

    name = "ITCH 5.0"
    least_event_bytes = LEAST_EVENT_BYTES

    def __init__(self, stock: str) -> None:
        """`stock`: its symbol. ValueError if it cannot be one."""
        if not (stock.isascii() and stock.isprintable() and 1 <= len(stock.strip()) <= STOCK_BYTES):
            raise ValueError(f"{stock!r} is no stock: give a symbol of 1 to {STOCK_BYTES} letters, as AAPL")
        symbol = stock.strip().upper().ljust(STOCK_BYTES).encode()
        self.tape_content = f"order of {stock}"
        self._types: Longs = np.zeros(256, np.int64)
        self._words: Longs = np.zeros(WORDS, np.int64)
        self._words[STOCK] = int.from_bytes(symbol, "big")
        self._words[LOCATE_CODE] = NO_CODE

    @property
    def events(self) -> int:
        return int(self._types.sum()) + int(self._words[OTHER_STOCKS])

    def convert(self, conversion: Conversion, chunk: Bytes, at: int, is_last: bool) -> tuple[int, int]:  # noqa: ARG002
        """Convert the messages from `at` on. Returns why it stopped, and where."""
        return _convert(conversion, chunk, at, SIZES, self._types, self._words)

    def objection(self, chunk: Bytes, at: int, offset: int) -> str:
        """Return the sentence about the bytes at `at`, which are no whole message."""
        left = len(chunk) - at
        if left <= LENGTH_BYTES:
            return f"truncated: a message of {left} bytes at offset {offset}"
        length = int.from_bytes(chunk[at : at + LENGTH_BYTES].tobytes(), "big")
        code = chr(chunk[at + LENGTH_BYTES])
        message = ITCH_MESSAGES.get(code)
        if message is None:
            return f"no message of ITCH 5.0 at offset {offset}: no message has the type {code!r}"
        if length != message.size:
            return (
                f"no message of ITCH 5.0 at offset {offset}: its length is {length}, where messages of type {code!r} "
                f"have {message.size} bytes"
            )
        return f"truncated: {left - LENGTH_BYTES} of {message.size} bytes of a message at offset {offset}"

    def left_out(self) -> dict[str, int]:
        """Return the counts of messages that no record of a tape can say."""
        counts = {"messages of other stocks, or of none": int(self._words[OTHER_STOCKS])}
        for code, message in ITCH_MESSAGES.items():
            if not message.is_converted:
                counts[message.name] = int(self._types[ord(code)])
        return counts
