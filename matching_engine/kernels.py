"""The compiled core: order frames in, answer frames out.

Numba checks no bounds and wraps integers silently, so this file makes sure of everything before the rule writes its
first byte: the frame's form, the order's fields, a free record, and room for all answers the order can have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from exchange import messages
from exchange.kernel_cache import fingerprint
from exchange.messages import LAYOUTS, Cancel, Order
from matching_engine import arena, by_id, compiled, encoding, levels, rule
from matching_engine.arena import (
    ANSWER_BYTES,
    BOUNDED,
    CANCELS,
    FIRST_LEVEL,
    FREE,
    ID,
    LEVEL_WORDS,
    NEXT,
    NOTHING,
    ORDERS,
    Book,
    Bytes,
    Kind,
    Longs,
    Offsets,
    Words,
    book_in,
)
from matching_engine.by_id import find, remember
from matching_engine.compiled import as_i64, as_u8, inlined, kernel, load_u16, load_u32, load_u64, signed, unsigned
from matching_engine.encoding import (
    CANCELLATION,
    CANCELLATION_BYTES,
    QUOTE_BYTES,
    REJECTION,
    REJECTION_BYTES,
    TRADE,
    TRADE_BYTES,
    Answers,
    End,
    answers_in,
    has_room,
    write_rejection,
)
from matching_engine.levels import first_crossing, key_of
from matching_engine.rule import take_order, take_out

DONE, ROOM, FOREIGN, GROW = 0, 1, 2, 3  # why `handle` came back
BAD_SIDE, BAD_PRICE, BAD_VOLUME, BOOK_FULL, DUPLICATE_ID, UNKNOWN_ID = 1, 2, 3, 4, 5, 6
ORDER, ORDER_BYTES = LAYOUTS[Order].code, LAYOUTS[Order].size
CANCEL, CANCEL_BYTES = LAYOUTS[Cancel].code, LAYOUTS[Cancel].size

_COMPILED = (compiled, arena, levels, by_id, encoding, rule, messages)
SOURCES = fingerprint(*_COMPILED)


# ---- one record ----------------------------------------------------------------------------------------------


@inlined
def enter_order(book: Book, answers: Answers, end: End, source: Any, at: int) -> tuple[int, End]:
    """Match the order at `at`, or reject it; ROOM or GROW, with nothing done, where there is no place for that."""
    head, volume = load_u64(source, at), load_u16(source, at + 8)
    order_id, side, price = signed(head >> 8) & 0xFFFFFFFF, signed(head >> 40) & 0xFF, signed(head >> 48)
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
    """One comparison, where wrapping below `first` makes the difference huge."""
    return unsigned(value - first) <= unsigned(last - first)


@inlined
def is_plain(book: Book, answers: Answers, end: End, order_id: int, side: int, price: int, volume: int) -> bool:
    """Whether nothing at all speaks against the order: almost always."""
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
    """The reason to reject an order, or 0."""
    if not within(side, 1, 2):
        return BAD_SIDE
    if not within(price, 1, book.limit - 1):
        return BAD_PRICE
    if volume == 0:
        return BAD_VOLUME
    if book.keeps_ids and find(book, order_id) != NOTHING:
        return DUPLICATE_ID
    return BOOK_FULL if is_full_for(book, side - 1, price) else 0


@inlined
def is_full_for(book: Book, side: int, price: int) -> bool:
    """No record is free, and the order crosses nothing: one that crosses ends, or frees a record."""
    opposite = side ^ 1
    reach = key_of(book, opposite, price)
    return book.state[FREE] == NOTHING and first_crossing(book, opposite, reach) > reach


@inlined
def enter_cancel(book: Book, answers: Answers, end: End, source: Any, at: int) -> tuple[int, End]:
    if not has_room(answers, end, 0):
        return ROOM, end
    book.state[CANCELS] += 1
    order_id = load_u32(source, at + 1)
    order = signed(find(book, order_id)) if book.keeps_ids else NOTHING
    if order == NOTHING:
        return DONE, write_rejection(book, answers, end, order_id, UNKNOWN_ID)
    return DONE, take_out(book, answers, end, order)


# ---- frames --------------------------------------------------------------------------------------------------


@inlined
def take_record(book: Book, answers: Answers, end: End, source: Any, start: int, stop: int) -> tuple[int, End]:
    """A frame of exactly one order or cancel, else FOREIGN."""
    if stop - start == ORDER_BYTES and source[start] == ORDER:
        return enter_order(book, answers, end, source, start)
    if stop - start == CANCEL_BYTES and source[start] == CANCEL:
        return enter_cancel(book, answers, end, source, start)
    return FOREIGN, end


@inlined
def take_pack(
    book: Book, answers: Answers, end: End, source: Any, at: int, stop: int, largest_frame: int
) -> tuple[int, int, End]:
    """The records of a well-formed frame, from `at` on, all answers in one frame: why it stopped, and where."""
    why = DONE
    while at < stop:
        if source[at] == ORDER:
            why, end = enter_order(book, answers, end, source, at)
            size = ORDER_BYTES
        else:
            why, end = enter_cancel(book, answers, end, source, at)
            size = CANCEL_BYTES
        if why != DONE:
            return why, at, end
        at += size
    if end.frame + frames_needed(answers, end, largest_frame) > answers.room_frames:
        return ROOM, at, end
    return DONE, at, close_frame(answers, end, largest_frame)


@inlined
def is_pack(source: Any, start: int, stop: int, packing: int) -> bool:
    """One to `packing` whole orders or cancels, and nothing else."""
    at, count = start, 0
    while at < stop and (source[at] == ORDER or source[at] == CANCEL):
        at += ORDER_BYTES if source[at] == ORDER else CANCEL_BYTES
        count += 1
    return at == stop and within(count, 1, packing)


@inlined
def frames_needed(answers: Answers, end: End, largest_frame: int) -> int:
    """At most: one, or where it is too large as many as there may be answers."""
    size = end.byte - answers.offsets[end.frame]
    return 1 if size <= largest_frame else size // QUOTE_BYTES


@inlined
def close_frame(answers: Answers, end: End, largest_frame: int) -> End:
    """End the frame of all answers to one order frame; where it is too large, after each answer that just fits."""
    frame, at = end.frame, answers.offsets[end.frame]
    while end.byte - answers.offsets[frame] > largest_frame and at < end.byte:
        following = at + answer_bytes(answers.buffer[at])
        if following - answers.offsets[frame] > largest_frame and at > answers.offsets[frame]:
            frame += 1
            answers.offsets[frame] = at
        at = following
    answers.offsets[frame + 1] = end.byte
    return End(end.byte, frame + 1)


@inlined
def answer_bytes(kind: int) -> int:
    if kind == TRADE:
        return TRADE_BYTES
    if kind == REJECTION:
        return REJECTION_BYTES
    return CANCELLATION_BYTES if kind == CANCELLATION else QUOTE_BYTES  # a confirmation is as long as a quote


# ---- what Python calls ---------------------------------------------------------------------------------------


@cache
def handler(*, exact: bool, keeps_ids: bool, packed: bool) -> Callable[..., tuple[int, int, int, int, int]]:
    """The kernel for one kind of engine."""
    kind = Kind(exact, keeps_ids, packed, SOURCES)

    def handle(
        orders: Bytes, order_offsets: Offsets, first: int, count: int, resume_at: int, packing: int,
        buffer: Bytes, offsets: Offsets, frames: int, resume_to: int, largest_frame: int,
        arena: Longs, index: Words,
    ) -> tuple[int, int, int, int, int]:  # fmt: skip
        """Match order frames first..count-1: why it stopped, the frame and byte to go on at, the answers' end.

        Where an earlier call stopped within a frame, `resume_at` is the byte to go on at, `resume_to` its answers' end.
        """
        book, source, source_offsets = book_in(arena, index, kind), as_u8(orders), as_i64(order_offsets)
        byte, why, frame, at = max(resume_to, offsets[frames]), DONE, first, source_offsets[first]
        end = End(byte, frames)
        answers = answers_in(buffer, offsets, end, kind.packed)
        while frame < count:
            stop = source_offsets[frame + 1]
            if kind.packed:
                at = max(at, resume_at)
                if at == source_offsets[frame] and not is_pack(source, at, stop, packing):
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

    # A file of numba's cache each: two processes that add to one at a time may take the other's code for their own.
    handle.__qualname__ = f"handle{'_exact' * exact}{'_ids' * keeps_ids}{'_packed' * packed}"
    return kernel(handle)


@cache
def indexer() -> Callable[[Longs, Words], None]:
    """The kernel that enters every resting order into an empty index."""
    kind = Kind(exact=False, keeps_ids=True, packed=False, sources=SOURCES)

    @kernel
    def fill_index(arena: Longs, index: Words) -> None:
        book = book_in(arena, index, kind)
        for number in range(2 * (book.limit + 1)):
            level = FIRST_LEVEL + LEVEL_WORDS * number
            order = signed(book.records[level + NEXT])
            while order != level:
                remember(book, signed(book.records[order + ID]), order, level)
                order = signed(book.records[order + NEXT])

    return fill_index
