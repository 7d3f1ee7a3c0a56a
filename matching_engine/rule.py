"""The matching rule: trade, rest, answer. Nothing here checks its arguments; `kernels.py` checks them first."""

from __future__ import annotations

from exchange.compiled import called, inlined, signed
from exchange.messages import FILL_OR_KILL, LIMIT, POST_ONLY
from matching_engine.arena import (
    ASK,
    BID,
    FREE,
    ID,
    LEVEL,
    NEXT,
    PREVIOUS,
    VOLUME,
    VOLUME_CANCELLED,
    VOLUME_IN,
    Book,
    best_of,
    entry_of,
    forget,
    link,
    make_level,
    remember,
    set_best,
)
from matching_engine.encoding import (
    AnswerMemory,
    AnswersEnd,
    write_cancelled,
    write_confirmation,
    write_quote,
    write_replaced,
    write_trade,
)
from matching_engine.levels import (
    first_crossing,
    first_occupied,
    key_of,
    level_of,
    mark_occupied,
    remove_level,
    side_and_key_of,
)


@inlined
def take_order(
    book: Book, answers: AnswerMemory, end: AnswersEnd, order_id: int, side: int, price: int, volume: int
) -> AnswersEnd:
    """Match an incoming order, rest its remaining volume, and answer.

    The answers are its trades, a quote if the best price moved, and a confirmation if it did not trade.
    """
    book.state[VOLUME_IN + side] += volume
    remaining, moved, end = match(book, answers, end, order_id, side, price, volume)
    if remaining > 0:
        moved |= rest(book, order_id, side, price, remaining)
    if moved:
        end = write_quote(book, answers, end)
    if remaining == volume:
        end = write_confirmation(book, answers, end, order_id)
    return end


@inlined
def match(
    book: Book, answers: AnswerMemory, end: AnswersEnd, order_id: int, side: int, price: int, volume: int
) -> tuple[int, bool, AnswersEnd]:
    """Trade while the incoming order crosses. Returns what remains of it, whether the best price moved, and the end."""
    opposite = side ^ 1
    remaining = volume
    moved = False
    reach = key_of(book, opposite, price)
    key = first_crossing(book, opposite, reach)
    while key <= reach and remaining > 0:
        level = level_of(book, opposite, key)
        level_price = key_of(book, opposite, key)
        before = remaining
        resting, remaining, end = fill_whole(book, answers, end, level, level_price, remaining)
        if resting == level:
            key, moved = remove_level(book, opposite, key)
        elif remaining > 0:
            book.records[resting + VOLUME] -= remaining
            end = write_trade(answers, end, book.records[resting + ID], level_price, remaining)
            remaining = 0
        end = write_trade(answers, end, order_id, level_price, before - remaining)
    return remaining, moved, end


@inlined
def fill_whole(
    book: Book, answers: AnswerMemory, end: AnswersEnd, level: int, price: int, remaining: int
) -> tuple[int, int, AnswersEnd]:
    """Trade with the level's resting orders, oldest first, as long as the remaining volume fills an order whole.

    Returns the next order, or the level itself if no order is left there; the volume that remains; and the end.
    """
    resting = book.records[level + NEXT]
    while book.records[resting + VOLUME] <= remaining:
        volume = signed(book.records[resting + VOLUME])
        end = write_trade(answers, end, book.records[resting + ID], price, volume)
        remaining -= volume
        following = book.records[resting + NEXT]
        release(book, resting)
        resting = following
    link(book, level, resting)
    return resting, remaining, end


@inlined
def release(book: Book, order: int) -> None:
    """Free the record of an order that was filled whole or cancelled."""
    if book.keeps_ids:
        forget(book, order)
    book.records[order + NEXT] = book.state[FREE]
    book.state[FREE] = order


@inlined
def rest(book: Book, order_id: int, side: int, price: int, volume: int) -> bool:
    """Rest an order's remaining volume as the newest of its price level. Returns whether the price is a new best."""
    order = book.state[FREE]
    book.state[FREE] = book.records[order + NEXT]
    book.records[order + ID] = order_id
    book.records[order + VOLUME] = volume
    key = key_of(book, side, price)
    level = level_of(book, side, key)
    make_level(book.records, book.place, level)
    link(book, book.records[level + PREVIOUS], order)
    link(book, order, level)
    mark_occupied(book, side, key)
    if book.keeps_ids:
        remember(book, order_id, order, level)
    if key >= best_of(book, side):
        return False
    set_best(book, side, key)
    return True


@inlined
def take_out(book: Book, answers: AnswerMemory, end: AnswersEnd, order: int, answer_id: int) -> AnswersEnd:
    """Cancel a resting order, and answer: a quote if the best price moves, then the cancelled volume."""
    volume = signed(book.records[order + VOLUME])
    if remove(book, order):
        end = write_quote(book, answers, end)
    return write_cancelled(book, answers, end, answer_id, volume)


@inlined
def remove(book: Book, order: int) -> bool:
    """Take a resting order out of the book. Returns whether the best price moved."""
    level = signed(book.ids[entry_of(book, order) + LEVEL])
    side, key = side_and_key_of(book, level)
    book.state[VOLUME_CANCELLED + side] += book.records[order + VOLUME]
    link(book, book.records[order + PREVIOUS], book.records[order + NEXT])
    release(book, order)
    moved = False
    if book.records[level + NEXT] == level:
        _, moved = remove_level(book, side, key)
    return moved


# ---- order types and replaces: rarer than orders, so kernels call them ------------------------------------------


@inlined
def may_rest(order_type: int) -> bool:
    """Return whether the remaining volume of such an order rests; otherwise it is cancelled."""
    return (order_type == LIMIT) | (order_type == POST_ONLY)


@called
def take_typed_order(
    book: Book,
    answers: AnswerMemory,
    end: AnswersEnd,
    order_id: int,
    side: int,
    price: int,
    volume: int,
    order_type: int,
) -> AnswersEnd:
    """Match a typed order, rest or cancel its remaining volume, and answer.

    The answers are its trades, a quote if the best price moved, and then: the cancelled volume, if any; else a
    confirmation, if it did not trade. A market order comes with the last price that it could reach.
    """
    book.state[VOLUME_IN + side] += volume
    if order_type == FILL_OR_KILL and volume_within_reach(book, side ^ 1, price, volume) < volume:
        book.state[VOLUME_CANCELLED + side] += volume
        return write_cancelled(book, answers, end, order_id, volume)
    remaining, moved, end = match(book, answers, end, order_id, side, price, volume)
    if remaining > 0 and may_rest(order_type):
        moved |= rest(book, order_id, side, price, remaining)
    if moved:
        end = write_quote(book, answers, end)
    if remaining > 0 and not may_rest(order_type):
        book.state[VOLUME_CANCELLED + side] += remaining
        return write_cancelled(book, answers, end, order_id, remaining)
    if remaining == volume:
        end = write_confirmation(book, answers, end, order_id)
    return end


@inlined
def volume_within_reach(book: Book, side: int, price: int, enough: int) -> int:
    """Return the volume on a side with which an incoming order of this price would trade; at least `enough` if more."""
    reach = key_of(book, side, price)
    key = first_crossing(book, side, reach)
    volume = 0
    while key <= reach and volume < enough:
        level = level_of(book, side, key)
        order = signed(book.records[level + NEXT])
        while order != level and volume < enough:
            volume += signed(book.records[order + VOLUME])
            order = signed(book.records[order + NEXT])
        key = first_occupied(book, side, key + 1)
    return volume


@called
def replace_order(
    book: Book, answers: AnswerMemory, end: AnswersEnd, order: int, request_id: int, price: int, volume: int
) -> AnswersEnd:
    """Give a resting order another price and volume, and answer to the request.

    At the same price, with no more volume than before, the order keeps its place in time. Otherwise it leaves the book
    and comes in again, so it may trade. The answers are its trades, a quote if a best price is another than before, and
    what rests of the order now.
    """
    order_id = signed(book.records[order + ID])
    before = signed(book.records[order + VOLUME])
    side, key = side_and_key_of(book, signed(book.ids[entry_of(book, order) + LEVEL]))
    if key == key_of(book, side, price) and volume <= before:
        book.records[order + VOLUME] = volume
        book.state[VOLUME_CANCELLED + side] += before - volume
        return write_replaced(book, answers, end, request_id, price, volume)
    best_ask = best_of(book, ASK)
    best_bid = best_of(book, BID)
    remove(book, order)
    book.state[VOLUME_IN + side] += volume
    remaining, _, end = match(book, answers, end, order_id, side, price, volume)
    if remaining > 0:
        rest(book, order_id, side, price, remaining)
    if best_of(book, ASK) != best_ask or best_of(book, BID) != best_bid:
        end = write_quote(book, answers, end)
    return write_replaced(book, answers, end, request_id, price, remaining)
