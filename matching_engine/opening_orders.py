"""Opening orders: the engine matches their tape before a run, forgets the answers, and keeps what rests in its book.

Their ids begin with the number of a gateway that no run has, so no order of a run has the id of an opening order.
"""

from __future__ import annotations

import numpy as np

from exchange.checksum import StreamChecksum
from exchange.market_ids import HIGHEST_NUMBER, OPENING_GATEWAY
from exchange.messages import (
    LAYOUTS,
    Cancel,
    CancelRequest,
    InstrumentOrder,
    MalformedMessage,
    ReplaceRequest,
    records_of,
)
from exchange.words import counted
from matching_engine import arena
from matching_engine.engine import MatchingEngine
from matching_engine.sessions.routing import stamp
from matching_engine.tape import match_tape, order_offsets
from transports.frames import Bytes, Longs


def has_cancels_or_replaces(tape: Bytes) -> bool:
    """Return whether the tape has cancels or replaces: then the book must find orders by id.

    MalformedMessage, with the offset, if the bytes are no tape.
    """
    starts = order_offsets(tape)[:-1]
    requests = [LAYOUTS[message].code for message in (Cancel, CancelRequest, ReplaceRequest)]
    return bool(np.isin(tape[starts], requests).any())


def fill_book(engine: MatchingEngine, tape: Bytes) -> None:
    """Match the tape, forget its answers, and let the engine count from 0 again. Changes the ids in `tape`.

    MalformedMessage, with the offset, if the bytes are no tape, an id is too high, or the engine has no book for the
    instrument of an order.
    """
    offsets = order_offsets(tape)
    _check_instruments(engine, tape, offsets[:-1])
    messages = len(offsets) - 1
    unused_checksum = StreamChecksum().state
    stamped = int(stamp(tape, offsets, 0, messages, OPENING_GATEWAY, unused_checksum))
    if stamped < messages:
        raise MalformedMessage(f"the id is above {HIGHEST_NUMBER}, the highest of an opening", int(offsets[stamped]))
    match_tape(engine, tape, lambda _answers: None)
    engine.book.state[arena.ORDERS : arena.ORDERS + arena.COUNTERS] = 0


def _check_instruments(engine: MatchingEngine, tape: Bytes, starts: Longs) -> None:
    """MalformedMessage if an order is of an instrument for which the engine has no book."""
    books = engine.book.instruments or 1
    places, orders = records_of(InstrumentOrder, tape, starts)
    without_book = np.flatnonzero(orders["instrument"] >= books)
    if len(without_book):
        first = int(without_book[0])
        raise MalformedMessage(
            f"an order is of instrument {orders['instrument'][first]}; the engine's book has "
            f"{counted(books, 'instruments')}, numbered from 0: give more --instruments",
            int(starts[places[first]]),
        )
