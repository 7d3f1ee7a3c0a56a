"""The matching rule: trade, rest, tell. Nothing here checks its arguments; `kernels.py` has done so before."""

from __future__ import annotations

from matching_engine.arena import BEST, FREE, ID, NEXT, PREVIOUS, VOLUME, VOLUME_CANCELLED, VOLUME_IN, Book, link
from matching_engine.by_id import LEVEL, entry_of, forget, remember
from matching_engine.compiled import inlined, signed
from matching_engine.encoding import (
    Answers,
    End,
    write_cancelled,
    write_confirmation,
    write_quote,
    write_trade,
)
from matching_engine.levels import first_crossing, key_of, level_of, mark_occupied, move_best, side_and_key_of


@inlined
def take_order(book: Book, answers: Answers, end: End, order_id: int, side: int, price: int, volume: int) -> End:
    """Match an incoming order, rest what is left of it, and answer: trades, quote, confirmation."""
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
    book: Book, answers: Answers, end: End, order_id: int, side: int, price: int, volume: int
) -> tuple[int, bool, End]:
    """Trade while the incoming order crosses: what remains of it, whether the best price has moved, the end."""
    opposite, remaining, moved = side ^ 1, volume, False
    reach = key_of(book, opposite, price)
    key = first_crossing(book, opposite, reach)
    while key <= reach and remaining > 0:
        level, level_price, before = level_of(opposite, key), key_of(book, opposite, key), remaining
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
def fill_whole(book: Book, answers: Answers, end: End, level: int, price: int, remaining: int) -> tuple[int, int, End]:
    """Trade with the level's orders that the volume fills whole, oldest first: the order behind them, what remains."""
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
    """A finished order's record is free again."""
    if book.keeps_ids:
        forget(book, order)
    book.records[order + NEXT] = book.state[FREE]
    book.state[FREE] = order


@inlined
def rest(book: Book, order_id: int, side: int, price: int, volume: int) -> bool:
    """Put what is left of an order last in time at its price level: whether that is a new best price."""
    order = book.state[FREE]
    book.state[FREE] = book.records[order + NEXT]
    book.records[order + ID], book.records[order + VOLUME] = order_id, volume
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
def take_out(book: Book, answers: Answers, end: End, order: int) -> End:
    """Cancel a resting order: quote if the best price moves, then what was taken out."""
    level, moved = signed(book.ids[entry_of(book, order) + LEVEL]), False
    side, key = side_and_key_of(level)
    order_id, volume = signed(book.records[order + ID]), signed(book.records[order + VOLUME])
    book.state[VOLUME_CANCELLED + side] += volume
    link(book, book.records[order + PREVIOUS], book.records[order + NEXT])
    release(book, order)
    if book.records[level + NEXT] == level:
        _, moved = move_best(book, side, key)
    if moved:
        end = write_quote(book, answers, end)
    return write_cancelled(book, answers, end, order_id, volume)
