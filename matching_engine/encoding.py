"""Answers, written as the wire's records.

A record leaves by stores of 8 and 2 bytes; what an 8-byte store writes past the record is written over by the next
one, so room means SLACK_BYTES more than the records take.
"""

from __future__ import annotations

from typing import NamedTuple

from exchange.messages import LAYOUTS, Cancelled, Confirmation, Quote, Rejection, Trade
from matching_engine.arena import (
    ASK,
    BEST,
    BID,
    CANCELLED,
    CONFIRMATIONS,
    LARGEST_VOLUME,
    QUOTES,
    REJECTIONS,
    Book,
    Bytes,
    Offsets,
)
from matching_engine.compiled import as_i64, as_u8, inlined, store_u16, store_u64

CONFIRMATION, CONFIRMATION_BYTES = LAYOUTS[Confirmation].code, LAYOUTS[Confirmation].size
TRADE, TRADE_BYTES = LAYOUTS[Trade].code, LAYOUTS[Trade].size
QUOTE, QUOTE_BYTES = LAYOUTS[Quote].code, LAYOUTS[Quote].size
REJECTION, REJECTION_BYTES = LAYOUTS[Rejection].code, LAYOUTS[Rejection].size
CANCELLATION, CANCELLATION_BYTES = LAYOUTS[Cancelled].code, LAYOUTS[Cancelled].size

SLACK_BYTES = 64  # besides trades: quote, confirmation, and a store's overhang
SLACK_FRAMES = 4
MOST_BYTES = 2 * LARGEST_VOLUME * TRADE_BYTES + SLACK_BYTES  # answers to one order: two trades a lot, at most
MOST_FRAMES = 2 * LARGEST_VOLUME + SLACK_FRAMES


class Answers(NamedTuple):
    """Where answers go, and how far they may."""

    buffer: Bytes
    offsets: Offsets
    packed: bool  # several answers to a frame, else each a frame of its own
    room_bytes: int
    room_frames: int


class End(NamedTuple):
    """How far the answers have been written."""

    byte: int
    frame: int


@inlined
def answers_in(buffer: Bytes, offsets: Offsets, end: End, packed: bool) -> Answers:
    """As if every answer were a trade, the largest: then room for frames is room for their bytes."""
    room_bytes, room_frames = len(buffer) - SLACK_BYTES, len(offsets) - SLACK_FRAMES
    if not packed:
        room_frames = min(room_frames, end.frame + (room_bytes - end.byte) // TRADE_BYTES)
    return Answers(as_u8(buffer), as_i64(offsets), packed, room_bytes, room_frames)


@inlined
def has_room(answers: Answers, end: End, volume: int) -> bool:
    """Whether the answers to an order of this volume fit, whatever it meets."""
    if answers.packed:
        return (end.byte + 2 * volume * TRADE_BYTES <= answers.room_bytes) & (end.frame < answers.room_frames)
    return end.frame + 2 * volume <= answers.room_frames


@inlined
def _written(answers: Answers, end: End, size: int) -> End:
    byte = end.byte + size
    if answers.packed:
        return End(byte, end.frame)
    answers.offsets[end.frame + 1] = byte
    return End(byte, end.frame + 1)


@inlined
def write_trade(answers: Answers, end: End, order_id: int, price: int, volume: int) -> End:
    store_u64(answers.buffer, end.byte, TRADE | order_id << 8 | price << 40 | volume << 56)
    store_u16(answers.buffer, end.byte + 7, volume)
    return _written(answers, end, TRADE_BYTES)


@inlined
def write_quote(book: Book, answers: Answers, end: End) -> End:
    ask, bid = book.state[BEST + ASK], book.limit - book.state[BEST + BID]
    store_u64(answers.buffer, end.byte, QUOTE | bid << 8 | ask << 24)
    book.state[QUOTES] += 1
    return _written(answers, end, QUOTE_BYTES)


@inlined
def write_confirmation(book: Book, answers: Answers, end: End, order_id: int) -> End:
    store_u64(answers.buffer, end.byte, CONFIRMATION | order_id << 8)
    book.state[CONFIRMATIONS] += 1
    return _written(answers, end, CONFIRMATION_BYTES)


@inlined
def write_rejection(book: Book, answers: Answers, end: End, order_id: int, reason: int) -> End:
    store_u64(answers.buffer, end.byte, REJECTION | order_id << 8 | reason << 40)
    book.state[REJECTIONS] += 1
    return _written(answers, end, REJECTION_BYTES)


@inlined
def write_cancelled(book: Book, answers: Answers, end: End, order_id: int, volume: int) -> End:
    store_u64(answers.buffer, end.byte, CANCELLATION | order_id << 8 | volume << 40)
    book.state[CANCELLED] += 1
    return _written(answers, end, CANCELLATION_BYTES)
