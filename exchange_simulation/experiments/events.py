"""The market's events as typed columns: orders, trades, confirmations and quotes, from recorded runs and simulations.

    orders, answers, where those to each order end ──▶ Market ──▶ a table a kind, as Arrow

An answer's time is that of the order that caused it: its due time, in ns since the stream's first order was due.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from exchange.messages import BID, Confirmation, Quote, Trade, records_of
from matching_engine.encoding import ANSWER_SIZES
from matching_engine.tape import offsets_of

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Columns = dict[str, Any]
ABOUT = {"experiment": pa.string(), "run": pa.string(), "part": pa.int32(), "instrument": pa.int32()}
MOMENT = {"sequence": pa.int64(), "time_ns": pa.int64(), "clock": pa.string()}


@dataclass(frozen=True)
class Market:
    """One instrument's streams of orders and answers, or a part of them."""

    instrument: int
    orders: npt.NDArray[np.void]
    """A structured array, in the layout of an order."""
    due_ns: Longs | None
    """When each order was due; None if the orders had no due times."""
    answers: Bytes
    """The encoded answers, one after the other."""
    ends: Longs
    """For each order, the offset in `answers` at which the answers to it end."""
    max_price: int
    orders_before: int = 0
    """The number of orders that come before this part."""
    answers_before: int = 0
    """The number of answers that come before this part."""

    @cached_property
    def starts(self) -> Longs:
        """The offset of each answer."""
        return offsets_of(self.answers, ANSWER_SIZES)[:-1]

    @cached_property
    def causes(self) -> Longs:
        """The index of the order that caused each answer."""
        return np.searchsorted(self.ends, self.starts, "right")

    def order_rows(self) -> Columns:
        """Return a row for each order."""
        rows = np.arange(len(self.orders))
        return {
            **self._moment(rows + self.orders_before, rows),
            "id": self.orders["id"],
            "side": self._side(rows),
            "price": self.orders["price"],
            "volume": self.orders["volume"],
        }

    def trade_rows(self) -> Columns:
        """Return a row for each trade of a resting order.

        The engine also sends the incoming order one message for each price level, which sums these trades up; those
        messages have no rows.
        """
        answers, trades = records_of(Trade, self.answers, self.starts)
        is_of_resting_order = trades["id"] != self.orders["id"][self.causes[answers]]
        answers = answers[is_of_resting_order]
        trades = trades[is_of_resting_order]
        causes = self.causes[answers]
        return {
            **self._moment(answers + self.answers_before, causes),
            "price": trades["price"],
            "volume": trades["volume"],
            "aggressor": self._side(causes),
            "resting_id": trades["id"],
            "incoming_id": self.orders["id"][causes],
        }

    def confirmation_rows(self) -> Columns:
        """Return a row for each confirmation."""
        answers, confirmations = records_of(Confirmation, self.answers, self.starts)
        return {**self._moment(answers + self.answers_before, self.causes[answers]), "id": confirmations["id"]}

    def quote_rows(self) -> Columns:
        """Return a row with the best prices after each change of them; a side without orders is null."""
        answers, quotes = records_of(Quote, self.answers, self.starts)
        causes = self.causes[answers]
        return {
            **self._moment(answers + self.answers_before, causes),
            "bid": pa.array(quotes["bid"], pa.int32(), mask=quotes["bid"] == 0),
            "ask": pa.array(quotes["ask"], pa.int32(), mask=quotes["ask"] > self.max_price),
            "incoming_id": self.orders["id"][causes],
        }

    def _moment(self, numbers: Longs, causes: Longs) -> Columns:
        """Return the columns of MOMENT for events with these numbers, caused by these orders."""
        size = len(causes)
        if self.due_ns is None:
            time_ns = pa.nulls(size, pa.int64())
            clock = pa.nulls(size, pa.string())
        else:
            time_ns = self.due_ns[causes]
            clock = pa.repeat("due", size).cast(pa.string())
        return {"sequence": numbers + 1, "time_ns": time_ns, "clock": clock}

    def _side(self, rows: Longs) -> pa.Array:
        """Return the words for the sides of these orders."""
        codes = pa.array((self.orders["side"][rows] == BID).astype(np.int32))
        return pa.DictionaryArray.from_arrays(codes, ["ask", "bid"]).cast(pa.string())


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema({**ABOUT, **MOMENT, **columns})


NUMBER = pa.int32()
ID = pa.int64()
WORD = pa.string()
TABLES: dict[str, tuple[pa.Schema, Callable[[Market], Columns]]] = {
    "orders": (_schema(id=ID, side=WORD, price=NUMBER, volume=NUMBER), Market.order_rows),
    "trades": (_schema(price=NUMBER, volume=NUMBER, aggressor=WORD, resting_id=ID, incoming_id=ID), Market.trade_rows),
    "confirmations": (_schema(id=ID), Market.confirmation_rows),
    "quotes": (_schema(bid=NUMBER, ask=NUMBER, incoming_id=ID), Market.quote_rows),
}
"""By the table's name: its columns, and the function that makes its rows."""


def event_rows(table: str, market: Market, **about: Any) -> pa.Table:
    """Return the rows of one table; `about` gives the values of the first columns, of which some may be left out."""
    schema, rows_of = TABLES[table]
    columns = rows_of(market)
    about |= {"instrument": market.instrument}
    names = [name for name in schema.names if name in about or name not in ABOUT]
    size = len(columns["sequence"])
    arrays = []
    for name in names:
        if name in about:
            arrays.append(pa.repeat(pa.scalar(about[name], ABOUT[name]), size))
        else:
            arrays.append(pa.array(columns[name]).cast(schema.field(name).type))
    return pa.Table.from_arrays(arrays, schema=pa.schema([schema.field(name) for name in names]))
