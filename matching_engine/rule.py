"""The matching rule: trade, rest, answer. Nothing here checks its arguments; `kernels.py` checks them first."""

from __future__ import annotations

from exchange.compiled import inlined, signed
from matching_engine.arena import (
    BEST,
    FREE,
    ID,
    LEVEL,
    NEXT,
    PREVIOUS,
    VOLUME,
    VOLUME_CANCELLED,
    VOLUME_IN,
    Book,
    entry_of,
    forget,
    link,
    remember,
)
from matching_engine.encoding import (
    AnswerMemory,
    AnswersEnd,
    write_cancelled,
    write_confirmation,
    write_quote,
    write_trade,
)
from matching_engine.levels import first_crossing, key_of, level_of, mark_occupied, move_best, side_and_key_of


@inlined
def take_order(
    book: Book, answers: AnswerMemory, end: AnswersEnd, order_id: int, side: int, price: int, volume: int
) -> AnswersEnd:
    """Match an incoming order, rest what is left of it, and answer.

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
        level = level_of(opposite, key)
        level_price = key_of(book, opposite, key)
        before = remaining
        resting, remaining, end = fill_whole(book, answers, end, level, level_price, remaining)
        if resting == level:
            key, moved = move_best(book, opposite, key)
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
    """Rest what is left of an order, as the newest of its price level. Returns whether its price is a new best one."""
    order = book.state[FREE]
    book.state[FREE] = book.records[order + NEXT]
    book.records[order + ID] = order_id
    book.records[order + VOLUME] = volume
    key = key_of(book, side, price)
    level = level_of(side, key)
    link(book, book.records[level + PREVIOUS], order)
    link(book, order, level)
    mark_occupied(book, side, key)
    if book.keeps_ids:
        remember(book, order_id, order, level)
    if key >= book.state[BEST + side]:
        return False
    book.state[BEST + side] = key
    return True


@inlined
def take_out(book: Book, answers: AnswerMemory, end: AnswersEnd, order: int) -> AnswersEnd:
    """Cancel a resting order, and answer: a quote if the best price moves, then the cancelled volume."""
    level = signed(book.ids[entry_of(book, order) + LEVEL])
    moved = False
    side, key = side_and_key_of(level)
    order_id = signed(book.records[order + ID])
    volume = signed(book.records[order + VOLUME])
    book.state[VOLUME_CANCELLED + side] += volume
    link(book, book.records[order + PREVIOUS], book.records[order + NEXT])
    release(book, order)
    if book.records[level + NEXT] == level:
        _, moved = move_best(book, side, key)
    if moved:
        end = write_quote(book, answers, end)
    return write_cancelled(book, answers, end, order_id, volume)
