"""Every message on the wire, from one table: the classes below.

A record is a message's bytes: its type byte, which is the class's number in `TYPES`, then its fields, packed and
little-endian, in the order of the class. `LAYOUTS` derives from the classes all sizes, offsets and numpy dtypes, and
compiled code takes its constants from `LAYOUTS`, too. A frame is one record or, with packing, several records one after
the other. Only a statistics record has no fixed size: it fills its frame.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt

U8 = Annotated[int, "B"]
U16 = Annotated[int, "H"]
U32 = Annotated[int, "I"]
U64 = Annotated[int, "Q"]
Json = Annotated[bytes, "rest of the frame"]

PROTOCOL_VERSION = 4
ASK = 1
BID = 2

LIMIT = 1  # trades up to its price; the rest of it rests
MARKET = 2  # trades at any price; the rest of it is cancelled
IMMEDIATE_OR_CANCEL = 3  # trades up to its price; the rest of it is cancelled
FILL_OR_KILL = 4  # trades whole, up to its price, or is cancelled
POST_ONLY = 5  # rests, or is rejected if it would trade


class Order(NamedTuple):
    id: U32
    side: U8
    price: U16  # ticks
    volume: U16  # lots


class Confirmation(NamedTuple):
    """The answer to an order that caused no trade."""

    id: U32


class Trade(NamedTuple):
    """The order `id` traded. A resting order gets a trade for each fill, an incoming order one for each price level."""

    id: U32
    price: U16
    volume: U16


class Quote(NamedTuple):
    """Best prices after a change: bid 0 stands for no bid, ask max price + 1 for no ask."""

    bid: U16
    ask: U16


class Throughput(NamedTuple):
    meter: U8  # a byte of exchange/instances.py, as every meter and source is
    rate_per_s: U64


class Timestamp(NamedTuple):
    meter: U8
    correlation_id: U64  # the order's id
    time_ns: U64


class End(NamedTuple):
    """Ends a session: how many business messages the sender sent and received, and their checksums."""

    sent: U64
    sent_checksum: U64
    received: U64
    received_checksum: U64


class Rejection(NamedTuple):
    id: U32
    reason: U8


class Statistics(NamedTuple):
    """One JSON document for the reporter."""

    document: Json


class Cancel(NamedTuple):
    id: U32


class Cancelled(NamedTuple):
    id: U32
    volume: U16  # taken out of the book


class TypedOrder(NamedTuple):
    """An order with a type: LIMIT to POST_ONLY above. A limit order of this form does what an Order does."""

    id: U32
    side: U8
    price: U16  # ticks; 0 for a market order
    volume: U16  # lots
    order_type: U8


class ReplaceRequest(NamedTuple):
    """Gives the resting order `order_id` another price, another volume, or both. Its answer bears the request's id."""

    id: U32
    order_id: U32
    price: U16
    volume: U16  # lots that shall rest, or trade


class Replaced(NamedTuple):
    """The answer to a replace request: what rests of the order now."""

    id: U32  # of the request
    price: U16
    volume: U16


class CancelRequest(NamedTuple):
    """Cancels the resting order `order_id`, as a Cancel does, but its answer bears the request's id."""

    id: U32
    order_id: U32


class InstrumentOrder(NamedTuple):
    """A typed order of one of several instruments. A request has no instrument: the order that it names has one."""

    id: U32
    instrument: U16  # from 0 on
    side: U8
    price: U16  # ticks; 0 for a market order
    volume: U16  # lots
    order_type: U8


class InstrumentQuote(NamedTuple):
    """Best prices of one of several instruments after a change, as in a Quote."""

    instrument: U16
    bid: U16
    ask: U16


class Hello(NamedTuple):
    """Opens every session, before any clock starts. New fields of later versions come last."""

    version: U16
    run: U64
    source: U8
    policy: U8
    packing: U16
    max_price: U16
    wall_ns: U64
    monotonic_ns: U64
    instruments: U16  # of the whole market; 0 in a hello of version 2, which has no such field
    gateways: U8  # of the market; this field and the next two are 0 in hellos before version 4
    engines: U8  # of the market
    engine: U8  # number of the session's engine


class Resume(NamedTuple):
    """Resumes a session that broke; only recoverable sessions use this message.

    The gateway says how many answers it has, and their checksum. The engine replies with the same session number and
    with how many orders it has; then it sends the answers that the gateway lacks. An engine that was started again asks
    the gateway for a Resume by sending one with session 0. For a reporter and its sources see
    stats_reporter/recovering/reporter.py.
    """

    session: U32  # the gateway counts its sessions: each number is higher than the one before
    messages: U64
    checksum: U64  # of the answers; between a reporter and a source, the time in the source's hello


class MarketTrade(NamedTuple):
    """Market data: an incoming order traded with one resting order."""

    instrument: U16  # 0 while the engine has one book
    sequence: U64  # market data counts from 1 in each feed
    read_ns: U64  # the engine's monotonic clock when it had read the order
    price: U16  # ticks
    volume: U16  # lots


class MarketQuote(NamedTuple):
    """Market data: best prices after a change, as in a Quote."""

    instrument: U16
    sequence: U64
    read_ns: U64
    bid: U16
    ask: U16


class DepthLevel(NamedTuple):
    """Market data: one of the best price levels of a side has changed."""

    instrument: U16
    sequence: U64
    read_ns: U64  # of the newest order that the book has
    side: U8
    place: U8  # 0 is the best price
    price: U16  # 0 if the side has no such level
    volume: U32  # lots that rest there


class SnapshotRequest(NamedTuple):
    """A subscriber asks for a snapshot: at its start, and after a gap if the feed is conflated."""

    subscriber: U8


class Snapshot(NamedTuple):
    """Best prices after the market data up to `sequence`. It follows a hello, and its depth levels follow it."""

    instrument: U16
    sequence: U64
    subscriber: U8  # who asked
    bid: U16
    ask: U16


class FeedReceipt(NamedTuple):
    """Says that a subscriber has got everything up to `sequence`. It is sent after the snapshot, and after the end."""

    subscriber: U8
    sequence: U64


Message = (
    Order
    | Confirmation
    | Trade
    | Quote
    | Throughput
    | Timestamp
    | End
    | Rejection
    | Statistics
    | Cancel
    | Cancelled
    | Hello
    | Resume
    | TypedOrder
    | ReplaceRequest
    | Replaced
    | CancelRequest
    | InstrumentOrder
    | InstrumentQuote
    | MarketTrade
    | MarketQuote
    | DepthLevel
    | SnapshotRequest
    | Snapshot
    | FeedReceipt
)
M = TypeVar("M", bound=Message)

TYPES: dict[int, type[Message]] = {
    1: Order,
    2: Confirmation,
    3: Trade,
    4: Quote,
    5: Throughput,
    6: Timestamp,
    7: End,
    8: Rejection,
    9: Statistics,
    10: Cancel,
    11: Cancelled,
    12: Hello,
    13: Resume,
    14: TypedOrder,
    15: ReplaceRequest,
    16: Replaced,
    17: CancelRequest,
    18: InstrumentOrder,
    19: InstrumentQuote,
    # 20 to 23 belong to no message.
    24: MarketTrade,
    25: MarketQuote,
    26: DepthLevel,
    27: SnapshotRequest,
    28: Snapshot,
    29: FeedReceipt,
}
"""The message of each type byte."""


INCOMING_TYPES: tuple[type[Message], ...] = (
    Order,
    Cancel,
    TypedOrder,
    ReplaceRequest,
    CancelRequest,
    InstrumentOrder,
)
"""Records that a matching engine takes. `matching_engine/kernels.py` must have a kernel for each."""
ANSWER_TYPES: tuple[type[Message], ...] = (
    Confirmation,
    Trade,
    Quote,
    Rejection,
    Cancelled,
    Replaced,
    InstrumentQuote,
)
"""Records with which a matching engine answers."""
QUOTE_TYPES: tuple[type[Message], ...] = (Quote, InstrumentQuote)
"""Answers that name no order."""
MARKET_DATA_TYPES: tuple[type[Message], ...] = (MarketTrade, MarketQuote, DepthLevel)
"""Records of a market-data feed that have a sequence number."""


class MalformedMessage(ValueError):
    """Bytes that are no message. `offset` is the byte of the frame or file at which the bad record starts."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(f"{reason} at offset {offset}")
        self.reason = reason
        self.offset = offset


@dataclass(frozen=True)
class MessageLayout:
    """A message class as bytes: the dtype has the type byte as its first field, `type`."""

    code: int
    packed: struct.Struct
    dtype: np.dtype[np.void]

    @property
    def size(self) -> int:
        """Bytes of a record with its type byte; the least for a record that fills its frame."""
        return self.packed.size

    def offset(self, field: str) -> int:
        """Return the bytes from the record's start to the field. KeyError if the message has no such field."""
        return int(self._fields[field][1])

    def width(self, field: str) -> int:
        return int(self._fields[field][0].itemsize)

    @property
    def _fields(self) -> Mapping[str, Any]:
        return self.dtype.fields or {}


def _layout(code: int, message: type[Message]) -> MessageLayout:
    numpy_codes = {"B": "u1", "H": "<u2", "I": "<u4", "Q": "<u8"}
    codes = {name: hint.__metadata__[0] for name, hint in get_type_hints(message, include_extras=True).items()}
    numbers = {name: c for name, c in codes.items() if c in numpy_codes}
    return MessageLayout(
        code=code,
        packed=struct.Struct("<B" + "".join(numbers.values())),
        dtype=np.dtype([("type", "u1"), *((name, numpy_codes[c]) for name, c in numbers.items())]),
    )


LAYOUTS: dict[type[Message], MessageLayout] = {m: _layout(code, m) for code, m in TYPES.items()}


def noun_of(message: type[Message]) -> str:
    """Return the words of a message's name. For example: typed order"""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", message.__name__).lower()


def sizes_by_code(messages: tuple[type[Message], ...]) -> npt.NDArray[np.int64]:
    """Return the record sizes of these messages by type byte, shape (256,); 0 for every other type byte."""
    sizes = np.zeros(256, np.int64)
    for message in messages:
        sizes[LAYOUTS[message].code] = LAYOUTS[message].size
    return sizes


def records_of(
    message: type[Message], data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.void]]:
    """Return the messages of one class in `data`: their numbers among all records, and the messages.

    `starts` are the offsets of all records, which are numbered from 0.
    """
    layout = LAYOUTS[message]
    numbers = np.flatnonzero(data[starts] == layout.code)
    rows = data[starts[numbers][:, None] + np.arange(layout.size)]
    return numbers, rows.reshape(-1).view(layout.dtype)


def encode(message: Message) -> bytes:
    """Return the message's record. struct.error if a field does not fit its width."""
    layout = LAYOUTS[type(message)]
    if isinstance(message, Statistics):
        return layout.packed.pack(layout.code) + message.document
    return layout.packed.pack(layout.code, *message)


def decode_record(data: bytes | memoryview, offset: int = 0) -> tuple[Message, int]:
    """Return the message whose record starts at `offset`, and the record's end. MalformedMessage if there is none."""
    if offset >= len(data):
        raise MalformedMessage("no record", offset)
    kind = TYPES.get(data[offset])
    if kind is None:
        raise MalformedMessage(f"unknown type byte {data[offset]}", offset)
    layout = LAYOUTS[kind]
    end = offset + layout.size
    if end > len(data):
        missing = f"{layout.size} bytes of {kind.__name__}, only {len(data) - offset} left"
        raise MalformedMessage(missing, offset)
    if kind is Statistics:
        return Statistics(bytes(data[end:])), len(data)
    fields: tuple[Any, ...] = layout.packed.unpack_from(data, offset)
    return kind(*fields[1:]), end


def decode(frame: bytes | memoryview) -> Message:
    """Return the message whose record is the whole frame. MalformedMessage if the frame is not exactly one record."""
    message, end = decode_record(frame)
    if end != len(frame):
        raise MalformedMessage(f"{len(frame) - end} bytes behind {type(message).__name__}", end)
    return message


def read(frame: bytes) -> Message | None:
    """Return the message whose record is the whole frame; None for a foreign frame, which callers count and drop.

    A hello of another version is a hello, whatever its length, so that the peer can be refused with the reason.
    """
    try:
        return decode(_hello_of_our_length(frame) if _is_hello_of_another_version(frame) else frame)
    except MalformedMessage:
        return None


def _is_hello_of_another_version(frame: bytes) -> bool:
    """Return True if the frame is at least as long as a hello of version 2, and has another version than ours."""
    layout = LAYOUTS[Hello]
    if len(frame) < layout.offset("instruments") or frame[0] != layout.code:
        return False
    version_start = layout.offset("version")
    version_end = version_start + layout.width("version")
    return int.from_bytes(frame[version_start:version_end], "little") != PROTOCOL_VERSION


def _hello_of_our_length(frame: bytes) -> bytes:
    """Return the frame with the fields of our version: missing fields are 0, and unknown ones are left out."""
    size = LAYOUTS[Hello].size
    return frame[:size].ljust(size, b"\0")


def decode_all(data: bytes | memoryview) -> Iterator[Message]:
    """Yield the messages of a packed frame, a tape, or a file of answers. MalformedMessage at a malformed record."""
    offset = 0
    while offset < len(data):
        message, offset = decode_record(data, offset)
        yield message
