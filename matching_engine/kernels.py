"""The compiled core: order frames in, answer frames out.

Numba checks no bounds and wraps integers silently. So this file checks everything before the rule writes its first
byte: the frame's form, the order's fields, a free record, and room for all answers that the order can cause.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from exchange import compiled, market_ids, messages
from exchange.compiled import as_i64, as_u8, called, field_reader, fingerprint, inlined, kernel, signed, unsigned
from exchange.market_ids import NUMBER_BITS
from exchange.messages import (
    INCOMING_TYPES,
    LAYOUTS,
    LIMIT,
    MARKET,
    POST_ONLY,
    Cancel,
    CancelRequest,
    InstrumentOrder,
    Order,
    ReplaceRequest,
    TypedOrder,
)
from matching_engine import arena, encoding, levels, rule
from matching_engine.arena import (
    ANSWER_BYTES,
    BID,
    BLOCK_WORDS,
    BLOCKS,
    BOUNDED,
    CANCELS,
    FREE,
    ID,
    INSTRUMENTS,
    LEVEL,
    NEXT,
    NOTHING,
    ORDERS,
    REPLACES,
    VOLUME,
    Arena,
    Book,
    Bytes,
    EngineKind,
    Offsets,
    Words,
    book_in,
    book_of,
    entry_of,
    find,
    remember,
)
from matching_engine.encoding import (
    ANSWER_SIZES,
    SMALLEST_ANSWER,
    AnswerMemory,
    AnswersEnd,
    answers_in,
    has_room,
    write_rejection,
)
from matching_engine.levels import first_crossing, first_occupied, key_of, level_of
from matching_engine.rule import may_rest, replace_order, take_order, take_out, take_typed_order

# The reasons for which `handle` returns.
DONE = 0  # every frame was taken
ROOM = 1  # the answers lack room
FOREIGN = 2  # a frame that is no order for this engine
GROW = 3  # the book lacks a free record

# The reasons of rejections, as numbers on the wire.
BAD_SIDE = 1
BAD_PRICE = 2
BAD_VOLUME = 3
BOOK_FULL = 4
DUPLICATE_ID = 5
UNKNOWN_ID = 6
BAD_TYPE = 7
WOULD_TRADE = 8
NOTHING_TO_TRADE_WITH = 9
ANOTHERS_ORDER = 10
NO_SUCH_INSTRUMENT = 11

SOURCES = fingerprint(compiled, arena, levels, encoding, rule, market_ids, messages)
_order_id, _side, _price, _volume = (field_reader(name, Order) for name in ("id", "side", "price", "volume"))
_typed_id, _typed_side, _typed_price, _typed_volume, _typed_order_type = (
    field_reader(name, TypedOrder) for name in ("id", "side", "price", "volume", "order_type")
)
_instrument_order_id, _instrument, _instrument_side, _instrument_price, _instrument_volume, _instrument_type = (
    field_reader(name, InstrumentOrder) for name in ("id", "instrument", "side", "price", "volume", "order_type")
)
_cancel_id = field_reader("id", Cancel)
_cancel_request_id = field_reader("id", CancelRequest)
_cancelled_order = field_reader("order_id", CancelRequest)
_replace_request_id, _replaced_order, _new_price, _new_volume = (
    field_reader(name, ReplaceRequest) for name in ("id", "order_id", "price", "volume")
)


# ---- one record ----------------------------------------------------------------------------------------------


@inlined
def enter_order(book: Book, answers: AnswerMemory, end: AnswersEnd, source: Any, at: int) -> tuple[int, AnswersEnd]:
    """Match the order at byte `at`, or reject it. Returns DONE; ROOM or GROW, with nothing done, if memory is lacking.

    `end` is the end of the answers so far; the new end is returned, too. All functions below do the same.
    """
    order_id = signed(_order_id(source, at))
    side = signed(_side(source, at))
    price = signed(_price(source, at))
    volume = signed(_volume(source, at))
    if not is_plain(book, answers, end, order_id, side, price, volume):
        if not has_room(answers, end, volume):
            return ROOM, end
        if book.state[FREE] == NOTHING and not book.state[BOUNDED]:
            return GROW, end
        reason = objection(book, order_id, side, price, volume)
        if reason:
            book.state[ORDERS] += 1
            return DONE, write_rejection(book, answers, end, order_id, reason)
    book.state[ORDERS] += 1
    return DONE, take_order(book, answers, end, order_id, side - 1, price, volume)


@inlined
def within(value: int, first: int, last: int) -> bool:
    """Return whether first <= value <= last, by one comparison: a negative difference wraps to a huge number."""
    return unsigned(value - first) <= unsigned(last - first)


@inlined
def is_plain(
    book: Book, answers: AnswerMemory, end: AnswersEnd, order_id: int, side: int, price: int, volume: int
) -> bool:
    """Return whether this is the usual case: the order is valid, and there is memory for it and for its answers."""
    return (
        within(side, 1, 2)
        & within(price, 1, book.limit - 1)
        & (volume != 0)
        & (book.state[FREE] != NOTHING)
        & has_room(answers, end, volume)
        & (not book.keeps_ids or find(book, order_id) == NOTHING)
    )


@inlined
def objection(book: Book, order_id: int, side: int, price: int, volume: int) -> int:
    """Return the reason to reject an order; 0 if there is none."""
    reason = objection_to_fields(book, order_id, side, price, volume)
    if reason == 0 and is_full_for(book, side - 1, price):
        return BOOK_FULL
    return reason


@inlined
def objection_to_fields(book: Book, order_id: int, side: int, price: int, volume: int) -> int:
    """Return the reason to reject an order because of its own fields; 0 if there is none."""
    if not within(side, 1, 2):
        return BAD_SIDE
    if not within(price, 1, book.limit - 1):
        return BAD_PRICE
    if volume == 0:
        return BAD_VOLUME
    if book.keeps_ids and find(book, order_id) != NOTHING:
        return DUPLICATE_ID
    return 0


@inlined
def is_full_for(book: Book, side: int, price: int) -> bool:
    """Return whether no record is free and the order crosses nothing.

    An order that crosses needs no free record: either nothing of it is left, or it frees the record of another order.
    """
    opposite = side ^ 1
    reach = key_of(book, opposite, price)
    return book.state[FREE] == NOTHING and first_crossing(book, opposite, reach) > reach


@inlined
def is_anothers(book: Book, request_id: int, order_id: int) -> bool:
    """Return whether a request names an order of another gateway than its own."""
    return book.shared and (request_id >> NUMBER_BITS) != (order_id >> NUMBER_BITS)


@inlined
def enter_cancel(book: Book, answers: AnswerMemory, end: AnswersEnd, source: Any, at: int) -> tuple[int, AnswersEnd]:
    """Cancel the order that the cancel at byte `at` names, or reject the cancel. Returns DONE, or ROOM."""
    order_id = signed(_cancel_id(source, at))
    return cancel_order(book, answers, end, order_id, order_id)


@called
def enter_cancel_request(
    book: Book, answers: AnswerMemory, end: AnswersEnd, source: Any, at: int
) -> tuple[int, AnswersEnd]:
    """Cancel the order that the request at byte `at` names, or reject the request. Returns DONE, or ROOM."""
    return cancel_order(
        book, answers, end, signed(_cancel_request_id(source, at)), signed(_cancelled_order(source, at))
    )


@inlined
def cancel_order(
    book: Book, answers: AnswerMemory, end: AnswersEnd, answer_id: int, order_id: int
) -> tuple[int, AnswersEnd]:
    """Cancel the order `order_id`, or reject that. The answer bears `answer_id`."""
    if not has_room(answers, end, 0):
        return ROOM, end
    book.state[CANCELS] += 1
    if is_anothers(book, answer_id, order_id):
        return DONE, write_rejection(book, answers, end, answer_id, ANOTHERS_ORDER)
    order = signed(find(book, order_id)) if book.keeps_ids else NOTHING
    if order == NOTHING:
        return DONE, write_rejection(book, answers, end, answer_id, UNKNOWN_ID)
    return DONE, take_out(book_with(book, book.place, order), answers, end, order, answer_id)


@inlined
def book_with(book: Book, place: Any, order: int) -> Book:
    """Return the book in which the order of this link rests, whose place its level tells."""
    if place is None:
        return book
    level = signed(book.ids[entry_of(book, order) + LEVEL])
    return book_of(book, (level - 2 * BLOCKS) // (2 * book.state[BLOCK_WORDS]))


@called
def enter_typed_order(
    book: Book, answers: AnswerMemory, end: AnswersEnd, source: Any, at: int
) -> tuple[int, AnswersEnd]:
    """Match the typed order at byte `at`, or reject it. Returns DONE, ROOM or GROW, as `enter_order` does."""
    return enter_typed(
        book,
        answers,
        end,
        signed(_typed_id(source, at)),
        signed(_typed_side(source, at)),
        signed(_typed_price(source, at)),
        signed(_typed_volume(source, at)),
        signed(_typed_order_type(source, at)),
    )


@inlined
def enter_typed(
    book: Book,
    answers: AnswerMemory,
    end: AnswersEnd,
    order_id: int,
    side: int,
    price: int,
    volume: int,
    order_type: int,
) -> tuple[int, AnswersEnd]:
    """Match a typed order of these fields, or reject it."""
    if not has_room(answers, end, volume):
        return ROOM, end
    if book.state[FREE] == NOTHING and not book.state[BOUNDED]:
        return GROW, end
    book.state[ORDERS] += 1
    reason = objection_to_typed(book, order_id, side, price, volume, order_type)
    if reason:
        return DONE, write_rejection(book, answers, end, order_id, reason)
    if order_type == MARKET:
        price = last_price(book, side - 1)
    return DONE, take_typed_order(book, answers, end, order_id, side - 1, price, volume, order_type)


@inlined
def last_price(book: Book, side: int) -> int:
    """Return the last price at which an incoming order on this side can trade."""
    return book.limit - 1 if side == BID else 1


@inlined
def objection_to_typed(book: Book, order_id: int, side: int, price: int, volume: int, order_type: int) -> int:
    """Return the reason to reject a typed order; 0 if there is none."""
    if not within(side, 1, 2):
        return BAD_SIDE
    if not within(order_type, LIMIT, POST_ONLY):
        return BAD_TYPE
    is_market = order_type == MARKET
    if is_market and book.exact:
        return BAD_TYPE  # a market order has no price, and this policy trades at the order's own price only
    if is_market and price != 0:
        return BAD_PRICE
    reach = last_price(book, side - 1) if is_market else price
    reason = objection_to_fields(book, order_id, side, reach, volume)
    return reason if reason else objection_to_trading(book, side - 1, reach, order_type)


@inlined
def objection_to_trading(book: Book, side: int, price: int, order_type: int) -> int:
    """Return the reason to reject a typed order because of the resting orders; 0 if there is none."""
    opposite = side ^ 1
    reach = key_of(book, opposite, price)
    would_trade = first_crossing(book, opposite, reach) <= reach
    if would_trade:
        return WOULD_TRADE if order_type == POST_ONLY else 0
    if order_type == MARKET:
        return NOTHING_TO_TRADE_WITH
    return BOOK_FULL if may_rest(order_type) and book.state[FREE] == NOTHING else 0


@called
def enter_replace_request(
    book: Book, answers: AnswerMemory, end: AnswersEnd, source: Any, at: int
) -> tuple[int, AnswersEnd]:
    """Replace the order that the request at byte `at` names, or reject the request. Returns DONE, or ROOM."""
    price = signed(_new_price(source, at))
    volume = signed(_new_volume(source, at))
    if not has_room(answers, end, volume):
        return ROOM, end
    book.state[REPLACES] += 1
    request_id = signed(_replace_request_id(source, at))
    order_id = signed(_replaced_order(source, at))
    if is_anothers(book, request_id, order_id):
        return DONE, write_rejection(book, answers, end, request_id, ANOTHERS_ORDER)
    order = signed(find(book, order_id)) if book.keeps_ids else NOTHING
    if order == NOTHING:
        return DONE, write_rejection(book, answers, end, request_id, UNKNOWN_ID)
    if not within(price, 1, book.limit - 1):
        return DONE, write_rejection(book, answers, end, request_id, BAD_PRICE)
    if volume == 0:
        return DONE, write_rejection(book, answers, end, request_id, BAD_VOLUME)
    return DONE, replace_order(book_with(book, book.place, order), answers, end, order, request_id, price, volume)


# ---- orders of several instruments ---------------------------------------------------------------------------


@inlined
def enter_instrument_order(
    book: Book, answers: AnswerMemory, end: AnswersEnd, source: Any, at: int
) -> tuple[int, AnswersEnd]:
    """Match the order at byte `at` in the book of its instrument, or reject it. Returns as `enter_order` does."""
    instrument = signed(_instrument(source, at))
    order_id = signed(_instrument_order_id(source, at))
    if instrument >= book.state[INSTRUMENTS]:
        if not has_room(answers, end, 0):
            return ROOM, end
        book.state[ORDERS] += 1
        return DONE, write_rejection(book, answers, end, order_id, NO_SUCH_INSTRUMENT)
    book = book_of(book, instrument)
    side = signed(_instrument_side(source, at))
    price = signed(_instrument_price(source, at))
    volume = signed(_instrument_volume(source, at))
    is_limit = signed(_instrument_type(source, at)) == LIMIT
    if not is_limit or not is_plain(book, answers, end, order_id, side, price, volume):
        return enter_other_instrument_order(book, answers, end, source, at)
    book.state[ORDERS] += 1
    return DONE, take_order(book, answers, end, order_id, side - 1, price, volume)


@called
def enter_other_instrument_order(
    book: Book, answers: AnswerMemory, end: AnswersEnd, source: Any, at: int
) -> tuple[int, AnswersEnd]:
    """Match an order that is no plain limit order in this book, or reject it."""
    return enter_typed(
        book,
        answers,
        end,
        signed(_instrument_order_id(source, at)),
        signed(_instrument_side(source, at)),
        signed(_instrument_price(source, at)),
        signed(_instrument_volume(source, at)),
        signed(_instrument_type(source, at)),
    )


if unknown := set(INCOMING_TYPES) - {Order, Cancel, TypedOrder, ReplaceRequest, CancelRequest, InstrumentOrder}:
    raise LookupError(f"there is no kernel for {unknown.pop().__name__}, which INCOMING_TYPES names")
ORDER = LAYOUTS[Order].code
CANCEL = LAYOUTS[Cancel].code
TYPED_ORDER = LAYOUTS[TypedOrder].code
REPLACE_REQUEST = LAYOUTS[ReplaceRequest].code
CANCEL_REQUEST = LAYOUTS[CancelRequest].code
INSTRUMENT_ORDER = LAYOUTS[InstrumentOrder].code
BYTES_OF_ORDER = LAYOUTS[Order].size
BYTES_OF_CANCEL = LAYOUTS[Cancel].size
BYTES_OF_TYPED_ORDER = LAYOUTS[TypedOrder].size
BYTES_OF_REPLACE_REQUEST = LAYOUTS[ReplaceRequest].size
BYTES_OF_CANCEL_REQUEST = LAYOUTS[CancelRequest].size
BYTES_OF_INSTRUMENT_ORDER = LAYOUTS[InstrumentOrder].size


@inlined
def order_bytes(place: Any, code: int) -> int:
    """Return the bytes of a record that the engine takes, by its type byte; 0 for any other type.

    `place` is None for a book alone, which takes no orders with an instrument.
    """
    if place is not None and code == INSTRUMENT_ORDER:
        return BYTES_OF_INSTRUMENT_ORDER
    if code == ORDER:
        return BYTES_OF_ORDER
    if code == CANCEL:
        return BYTES_OF_CANCEL
    if code == TYPED_ORDER:
        return BYTES_OF_TYPED_ORDER
    if code == REPLACE_REQUEST:
        return BYTES_OF_REPLACE_REQUEST
    return BYTES_OF_CANCEL_REQUEST if code == CANCEL_REQUEST else 0


@inlined
def enter_record(book: Book, answers: AnswerMemory, end: AnswersEnd, source: Any, at: int) -> tuple[int, AnswersEnd]:
    """Enter the order or request at byte `at`; FOREIGN for a record of another type."""
    return enter_record_of(book, book.place, answers, end, source, at)


@inlined
def enter_record_of(
    book: Book, place: Any, answers: AnswerMemory, end: AnswersEnd, source: Any, at: int
) -> tuple[int, AnswersEnd]:
    """Enter a record in the book alone, if `place` is None; else in the book of the record's instrument."""
    if place is None:
        return enter_plain_record(book, answers, end, source, at)
    if source[at] == INSTRUMENT_ORDER:
        return enter_instrument_order(book, answers, end, source, at)
    return enter_plain_record(book_of(book, 0), answers, end, source, at)


@inlined
def enter_plain_record(
    book: Book, answers: AnswerMemory, end: AnswersEnd, source: Any, at: int
) -> tuple[int, AnswersEnd]:
    """Enter a record without an instrument: an order of this book, or a request."""
    if source[at] == ORDER:
        return enter_order(book, answers, end, source, at)
    if source[at] == CANCEL:
        return enter_cancel(book, answers, end, source, at)
    if source[at] == TYPED_ORDER:
        return enter_typed_order(book, answers, end, source, at)
    if source[at] == REPLACE_REQUEST:
        return enter_replace_request(book, answers, end, source, at)
    if source[at] == CANCEL_REQUEST:
        return enter_cancel_request(book, answers, end, source, at)
    return FOREIGN, end


# ---- frames --------------------------------------------------------------------------------------------------


@inlined
def take_record(
    book: Book, answers: AnswerMemory, end: AnswersEnd, source: Any, start: int, stop: int
) -> tuple[int, AnswersEnd]:
    """Enter a frame of exactly one record; FOREIGN for any other frame."""
    if start == stop or stop - start != order_bytes(book.place, source[start]):
        return FOREIGN, end
    return enter_record(book, answers, end, source, start)


@inlined
def take_pack(
    book: Book, answers: AnswerMemory, end: AnswersEnd, source: Any, at: int, stop: int, largest_frame: int
) -> tuple[int, int, AnswersEnd]:
    """Enter the records of a well-formed frame from byte `at` on. Returns why it stopped, and where.

    The answers go into one frame, or into several if one would be larger than `largest_frame`.
    """
    while at < stop:
        why, end = enter_record(book, answers, end, source, at)
        if why != DONE:
            return why, at, end
        at += order_bytes(book.place, source[at])
    if end.frame + frames_needed(answers, end, largest_frame) > answers.room_frames:
        return ROOM, at, end
    return DONE, at, close_frame(answers, end, largest_frame)


@inlined
def is_pack(book: Book, source: Any, start: int, stop: int, packing: int) -> bool:
    """Return whether the frame consists of one to `packing` whole records."""
    at = start
    count = 0
    while at < stop and order_bytes(book.place, source[at]) > 0:
        at += order_bytes(book.place, source[at])
        count += 1
    return at == stop and within(count, 1, packing)


@inlined
def frames_needed(answers: AnswerMemory, end: AnswersEnd, largest_frame: int) -> int:
    """Return the most frames that the answers so far may take: one; if that is too large, one for each answer."""
    size = end.byte - answers.offsets[end.frame]
    if size <= largest_frame:
        return 1
    return size // SMALLEST_ANSWER


@inlined
def close_frame(answers: AnswerMemory, end: AnswersEnd, largest_frame: int) -> AnswersEnd:
    """End the frame of all answers to one order frame. If it is too large, cut it into the longest frames possible."""
    frame = end.frame
    at = answers.offsets[end.frame]
    while end.byte - answers.offsets[frame] > largest_frame and at < end.byte:
        following = at + ANSWER_SIZES[answers.buffer[at]]
        if following - answers.offsets[frame] > largest_frame and at > answers.offsets[frame]:
            frame += 1
            answers.offsets[frame] = at
        at = following
    answers.offsets[frame + 1] = end.byte
    return AnswersEnd(end.byte, frame + 1)


# ---- what Python calls ---------------------------------------------------------------------------------------


@cache
def handler(
    *, exact: bool, keeps_ids: bool, packed: bool, shared: bool = False, several: Any = None
) -> Callable[..., tuple[int, int, int, int, int]]:
    """Return the kernel for one kind of engine. `several`: None for one book, SEVERAL for a book an instrument."""
    kind = EngineKind(exact, keeps_ids, packed, shared, SOURCES)

    def handle(
        orders: Bytes,
        order_offsets: Offsets,
        first: int,
        count: int,
        resume_at: int,
        packing: int,
        buffer: Bytes,
        offsets: Offsets,
        frames: int,
        resume_to: int,
        largest_frame: int,
        arena: Arena,
        index: Words,
    ) -> tuple[int, int, int, int, int]:
        """Match the order frames from `first` to `count` - 1.

        Returns why it stopped, the frame and byte to go on at, and the end of the answers as frame and byte. After a
        call that stopped within a frame, `resume_at` is the byte to go on at, and `resume_to` the end of its answers.
        """
        book = book_in(arena, index, kind, several)
        source = as_u8(orders)
        source_offsets = as_i64(order_offsets)
        byte = max(resume_to, offsets[frames])
        why = DONE
        frame = first
        at = source_offsets[first]
        end = AnswersEnd(byte, frames)
        answers = answers_in(buffer, offsets, end, kind.packed)
        while frame < count:
            stop = source_offsets[frame + 1]
            if kind.packed:
                at = max(at, resume_at)
                if at == source_offsets[frame] and not is_pack(book, source, at, stop, packing):
                    why = FOREIGN
                else:
                    why, at, end = take_pack(book, answers, end, source, at, stop, largest_frame)
            else:
                why, end = take_record(book, answers, end, source, at, stop)
            if why != DONE:
                break
            at = stop
            frame += 1
        book.state[ANSWER_BYTES] += end.byte - byte
        return why, frame, at, end.frame, end.byte

    # Each kind has its own cache file, since two processes that write one file could load each other's code.
    traits = {"_exact": exact, "_ids": keeps_ids, "_packed": packed, "_shared": shared, "_several": several}
    handle.__qualname__ = "handle" + "".join(trait for trait, is_set in traits.items() if is_set)
    return kernel(handle)


@cache
def indexer(*, several: Any = None) -> Callable[[Arena, Words], None]:
    """Return the kernel that enters every resting order into an empty index."""
    kind = EngineKind(exact=False, keeps_ids=True, packed=False, shared=False, sources=SOURCES)

    def fill_index(arena: Arena, index: Words) -> None:
        book = book_in(arena, index, kind, several)
        for instrument in range(max(book.state[INSTRUMENTS], 1)):
            book = book_in_turn(book, book.place, instrument)
            for side in range(2):
                key = first_occupied(book, side, 0)
                while key < book.limit:
                    level = level_of(book, side, key)
                    order = signed(book.records[level + NEXT])
                    while order != level:
                        remember(book, signed(book.records[order + ID]), order, level)
                        order = signed(book.records[order + NEXT])
                    key = first_occupied(book, side, key + 1)

    fill_index.__qualname__ = "fill_index_several" if several else "fill_index"
    return kernel(fill_index)


@inlined
def book_in_turn(book: Book, place: Any, instrument: int) -> Book:
    """Return the book of an instrument, or the book alone."""
    if place is None:
        return book
    return book_of(book, instrument)


@cache
def resting_counter(*, several: Any = None) -> Callable[[Arena, Words, int], tuple[int, int]]:
    """Return the kernel that counts the orders that rest on a side of all books, and their lots."""
    kind = EngineKind(exact=False, keeps_ids=False, packed=False, shared=False, sources=SOURCES)

    def count_resting(arena: Arena, index: Words, side: int) -> tuple[int, int]:
        book = book_in(arena, index, kind, several)
        orders = 0
        volume = 0
        for instrument in range(max(book.state[INSTRUMENTS], 1)):
            book = book_in_turn(book, book.place, instrument)
            key = first_occupied(book, side, 0)
            while key < book.limit:
                level = level_of(book, side, key)
                order = signed(book.records[level + NEXT])
                while order != level:
                    orders += 1
                    volume += signed(book.records[order + VOLUME])
                    order = signed(book.records[order + NEXT])
                key = first_occupied(book, side, key + 1)
        return orders, volume

    count_resting.__qualname__ = "count_resting_several" if several else "count_resting"
    return kernel(count_resting)
