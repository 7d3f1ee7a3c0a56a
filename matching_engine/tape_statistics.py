"""What the engine makes of a tape: trades, rejections, the spread, and how many price levels hold orders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exchange import messages
from exchange.compiled import cached_kernel, field_reader, inlined, signed
from exchange.instruments import LARGEST_MARKET
from exchange.messages import ASK, BID, LAYOUTS, InstrumentQuote, Quote, Rejection, Trade
from exchange.workload import MAX_PRICE
from matching_engine import encoding
from matching_engine.engine import HandleStop, MatchingEngine
from matching_engine.order_book import OrderBook, RestingTotal
from matching_engine.tape import batches, order_offsets
from transports.frames import Bytes, FrameBatch, Longs

ANSWER_BYTES = 1 << 22
ANSWER_FRAMES = 1 << 16
TRADE = LAYOUTS[Trade].code
QUOTE = LAYOUTS[Quote].code
INSTRUMENT_QUOTE = LAYOUTS[InstrumentQuote].code
REJECTION = LAYOUTS[Rejection].code
ANSWER_SIZES = encoding.ANSWER_SIZES
PACKED = 2
"""The packing with which all answers to a message are one frame."""

# Places in `totals` of `_tally`.
BEST_BID = 0
BEST_ASK = 1
TRADES = 2
VOLUME = 3
TOTALS = 4

_trade_id = field_reader("id", Trade)
_trade_volume = field_reader("volume", Trade)
_bid = field_reader("bid", Quote)
_ask = field_reader("ask", Quote)
_instrument_bid, _instrument_ask = (field_reader(name, InstrumentQuote) for name in ("bid", "ask"))
_reason = field_reader("reason", Rejection)


@dataclass(frozen=True)
class MatchedTape:
    """Figures of a tape that was matched with an empty book, in price-time priority and with ids."""

    messages: int
    trades: int
    """Trades of a resting order with an incoming one."""
    volume: int
    """Lots that were traded."""
    rejections: Longs
    """By reason, shape (256,)."""
    spreads: Longs
    """By ticks: the number of messages after which best ask - best bid was that many ticks.

    With several instruments, these are the prices of the instrument that was quoted last."""
    levels: Longs
    """Price levels that held orders, noted once a batch of messages and at the end."""
    resting_asks: RestingTotal
    """The orders that rest at the end."""
    resting_bids: RestingTotal


@inlined
def _id_of_last_trade(answers: Bytes, start: int, end: int, sizes: Longs) -> int:
    """Return the order id of the last trade between two offsets; -1 if there is none."""
    trade_id = -1
    at = start
    while at < end:
        if answers[at] == TRADE:
            trade_id = signed(_trade_id(answers, at))
        at += sizes[answers[at]]
    return trade_id


@cached_kernel(messages, encoding)
def _tally(
    answers: Bytes,
    offsets: Longs,
    frames: int,
    sizes: Longs,
    highest_price: int,
    totals: Longs,
    spreads: Longs,
    rejections: Longs,
) -> None:
    """Count the answers. A frame has all answers to one message.

    A match is two trades of the same volume: one of the resting order, and one of the incoming order. A trade of the
    incoming order, which is the last one in the frame, is not counted.
    With several instruments, the spread after a message is that of the instrument of the last quote.
    """
    for frame in range(frames):
        incoming_id = _id_of_last_trade(answers, offsets[frame], offsets[frame + 1], sizes)
        at = offsets[frame]
        while at < offsets[frame + 1]:
            code = answers[at]
            if code == TRADE and signed(_trade_id(answers, at)) != incoming_id:
                totals[TRADES] += 1
                totals[VOLUME] += signed(_trade_volume(answers, at))
            elif code == QUOTE:
                totals[BEST_BID] = signed(_bid(answers, at))
                totals[BEST_ASK] = signed(_ask(answers, at))
            elif code == INSTRUMENT_QUOTE:
                totals[BEST_BID] = signed(_instrument_bid(answers, at))
                totals[BEST_ASK] = signed(_instrument_ask(answers, at))
            elif code == REJECTION:
                rejections[signed(_reason(answers, at))] += 1
            at += sizes[code]
        if totals[BEST_BID] > 0 and totals[BEST_ASK] <= highest_price:
            spreads[totals[BEST_ASK] - totals[BEST_BID]] += 1


def matched(tape: Bytes, instruments: int | None = None) -> MatchedTape:
    """Match the tape with an empty book of all prices, and return its figures.

    `instruments`: how many its orders name; None if they name none. Books of many instruments have no more prices than
    memory allows.

    MalformedMessage, with the offset, if the bytes are no tape.
    """
    offsets = order_offsets(tape)
    highest_price = MAX_PRICE if instruments is None else min(MAX_PRICE, LARGEST_MARKET // (2 * instruments))
    book = OrderBook(highest_price, with_ids=True, instruments=instruments)
    engine = MatchingEngine(book, packing=PACKED)
    answers = FrameBatch(ANSWER_FRAMES, ANSWER_BYTES, largest_frame=ANSWER_BYTES)
    totals = np.zeros(TOTALS, np.int64)
    totals[BEST_ASK] = highest_price + 1
    spreads = np.zeros(MAX_PRICE + 1, np.int64)
    rejections = np.zeros(256, np.int64)
    levels: list[int] = []
    for orders in batches(tape, offsets):
        first = 0
        stop = HandleStop.ROOM
        while stop is not HandleStop.DONE:
            answers.clear()
            first, stop = engine.handle(orders, answers, first)
            _tally(
                answers.buffer,
                answers.offsets,
                answers.count,
                ANSWER_SIZES,
                highest_price,
                totals,
                spreads,
                rejections,
            )
        levels.append(engine.book.occupied_levels)
    return MatchedTape(
        messages=len(offsets) - 1,
        trades=int(totals[TRADES]),
        volume=int(totals[VOLUME]),
        rejections=rejections,
        spreads=spreads,
        levels=np.array(levels),
        resting_asks=engine.book.total_resting(ASK),
        resting_bids=engine.book.total_resting(BID),
    )
