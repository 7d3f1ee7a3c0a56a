"""Answers as the wire's records: kernels write them."""

from __future__ import annotations

from typing import Any, NamedTuple

from exchange.compiled import as_i64, as_u8, inlined, record_writer
from exchange.messages import (
    ANSWER_TYPES,
    LAYOUTS,
    Cancelled,
    Confirmation,
    InstrumentQuote,
    Quote,
    Rejection,
    Replaced,
    Trade,
    sizes_by_code,
)
from matching_engine.arena import (
    ANSWER_BYTES,
    ASK,
    BID,
    CANCELLED,
    CONFIRMATIONS,
    LARGEST_VOLUME,
    QUOTES,
    REJECTIONS,
    REPLACED,
    Book,
    Bytes,
    Offsets,
    best_of,
)

BYTES_OF_INSTRUMENT = LAYOUTS[InstrumentQuote].size - LAYOUTS[Quote].size
TRADE_BYTES = LAYOUTS[Trade].size
ANSWER_SIZES = sizes_by_code(ANSWER_TYPES)
LARGEST_ANSWER = int(ANSWER_SIZES.max())
SMALLEST_ANSWER = int(ANSWER_SIZES[ANSWER_SIZES > 0].min())

_put_trade = record_writer(Trade, "id", "price", "volume")
_put_quote = record_writer(Quote, "bid", "ask")
_put_instrument_quote = record_writer(InstrumentQuote, "instrument", "bid", "ask")
_put_confirmation = record_writer(Confirmation, "id")
_put_rejection = record_writer(Rejection, "id", "reason")
_put_cancelled = record_writer(Cancelled, "id", "volume")
_put_replaced = record_writer(Replaced, "id", "price", "volume")

# Room for the answers to an order besides its trades: a quote, and a confirmation or its like.
SLACK_BYTES = 64
SLACK_FRAMES = 4
# The most that the answers to one order take: two trades a lot, and the slack.
MOST_BYTES = 2 * LARGEST_VOLUME * TRADE_BYTES + SLACK_BYTES
MOST_FRAMES = 2 * LARGEST_VOLUME + SLACK_FRAMES


class AnswerMemory(NamedTuple):
    """The memory for answers, and the room that they may fill."""

    buffer: Bytes
    offsets: Offsets
    packed: bool  # whether all answers to a frame go into one frame; if not, each answer has its own
    room_bytes: int  # trades must end here at the latest; the slack after it is for other answers
    room_frames: int


class AnswersEnd(NamedTuple):
    """The end of the answers written so far: the next byte, and the number of frames."""

    byte: int
    frame: int


@inlined
def answers_in(buffer: Bytes, offsets: Offsets, end: AnswersEnd, packed: bool) -> AnswerMemory:
    """Return the memory, with the room that is left in it.

    Every answer counts as the largest one: where there is room for frames, there is room for their bytes.
    """
    room_bytes = len(buffer) - SLACK_BYTES
    room_frames = len(offsets) - SLACK_FRAMES
    if not packed:
        room_frames = min(room_frames, end.frame + (room_bytes - end.byte) // LARGEST_ANSWER)
    return AnswerMemory(as_u8(buffer), as_i64(offsets), packed, room_bytes, room_frames)


@inlined
def has_room(answers: AnswerMemory, end: AnswersEnd, volume: int) -> bool:
    """Return whether the answers to an order of this volume fit: there are at most two trades a lot."""
    if answers.packed:
        return (end.byte + 2 * volume * TRADE_BYTES <= answers.room_bytes) & (end.frame < answers.room_frames)
    return end.frame + 2 * volume <= answers.room_frames


@inlined
def _end_at(answers: AnswerMemory, end: AnswersEnd, byte: int) -> AnswersEnd:
    """Return the end after writing a record that ends at this byte."""
    if answers.packed:
        return AnswersEnd(byte, end.frame)
    answers.offsets[end.frame + 1] = byte
    return AnswersEnd(byte, end.frame + 1)


@inlined
def write_trade(answers: AnswerMemory, end: AnswersEnd, order_id: int, price: int, volume: int) -> AnswersEnd:
    return _end_at(answers, end, _put_trade(answers.buffer, end.byte, (order_id, price, volume)))


@inlined
def write_quote(book: Book, answers: AnswerMemory, end: AnswersEnd) -> AnswersEnd:
    book.state[QUOTES] += 1
    ask = best_of(book, ASK)
    bid = book.limit - best_of(book, BID)
    return _end_at(answers, end, _put_best_prices(book.state, answers.buffer, end.byte, book.place, bid, ask))


@inlined
def _put_best_prices(state: Offsets, buffer: Bytes, at: int, place: Any, bid: int, ask: int) -> int:
    """Write a quote; an instrument quote for one of several books. Returns its end.

    An instrument quote counts as a quote in ANSWER_BYTES, from which the number of trades follows.
    """
    if place is None:
        return _put_quote(buffer, at, (bid, ask))
    state[ANSWER_BYTES] -= BYTES_OF_INSTRUMENT
    return _put_instrument_quote(buffer, at, (place.instrument, bid, ask))


@inlined
def write_confirmation(book: Book, answers: AnswerMemory, end: AnswersEnd, order_id: int) -> AnswersEnd:
    book.state[CONFIRMATIONS] += 1
    return _end_at(answers, end, _put_confirmation(answers.buffer, end.byte, (order_id,)))


@inlined
def write_rejection(book: Book, answers: AnswerMemory, end: AnswersEnd, order_id: int, reason: int) -> AnswersEnd:
    book.state[REJECTIONS] += 1
    return _end_at(answers, end, _put_rejection(answers.buffer, end.byte, (order_id, reason)))


@inlined
def write_cancelled(book: Book, answers: AnswerMemory, end: AnswersEnd, order_id: int, volume: int) -> AnswersEnd:
    book.state[CANCELLED] += 1
    return _end_at(answers, end, _put_cancelled(answers.buffer, end.byte, (order_id, volume)))


@inlined
def write_replaced(
    book: Book, answers: AnswerMemory, end: AnswersEnd, order_id: int, price: int, volume: int
) -> AnswersEnd:
    book.state[REPLACED] += 1
    return _end_at(answers, end, _put_replaced(answers.buffer, end.byte, (order_id, price, volume)))
