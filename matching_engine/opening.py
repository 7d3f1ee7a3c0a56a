"""Orders that rest in an engine's book before a run: a tape is matched first, and leaves no other trace.

The ids of these orders begin with a gateway that no run has, so they never clash with those of a run's orders.
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
from matching_engine import arena as layout
from matching_engine.engine import MatchingEngine
from matching_engine.sessions.routing import stamp
from matching_engine.tape import match_tape, order_offsets
from transports.frames import Bytes, Longs


def names_orders(tape: Bytes) -> bool:
    """Return whether the tape has cancels or replaces, so that the book must find orders by id.

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
    count = len(offsets) - 1
    stamped = int(stamp(tape, offsets, 0, count, OPENING_GATEWAY, StreamChecksum().state))
    if stamped < count:
        raise MalformedMessage(f"the id is above {HIGHEST_NUMBER}, the highest of an opening", int(offsets[stamped]))
    match_tape(engine, tape, lambda _answers: None)
    engine.book.state[layout.ORDERS : layout.ORDERS + layout.COUNTERS] = 0


def _check_instruments(engine: MatchingEngine, tape: Bytes, starts: Longs) -> None:
    """MalformedMessage if an order is of an instrument for which the engine has no book."""
    books = engine.book.instruments or 1
    numbers, orders = records_of(InstrumentOrder, tape, starts)
    beyond = np.flatnonzero(orders["instrument"] >= books)
    if len(beyond):
        first = int(beyond[0])
        raise MalformedMessage(
            f"an order of instrument {orders['instrument'][first]}, from 0 on, and the engine has "
            f"{counted(books, 'instruments')}: give more --instruments",
            int(starts[numbers[first]]),
        )
