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
    """One instrument's streams, or a part of them; `ends` says where in `answers` those to each order end."""

    instrument: int
    orders: npt.NDArray[np.void]
    due_ns: Longs | None
    answers: Bytes
    ends: Longs
    max_price: int
    orders_before: int = 0
    answers_before: int = 0
    """How many orders, and answers, come before this part."""

    @cached_property
    def starts(self) -> Longs:
        """The offset of each answer."""
        return offsets_of(self.answers, ANSWER_SIZES)[:-1]

    @cached_property
    def causes(self) -> Longs:
        """The index of the order that caused each answer."""
        return np.searchsorted(self.ends, self.starts, "right")

    def order_rows(self) -> Columns:
        rows = np.arange(len(self.orders))
        return {
            **self._moment(rows + self.orders_before, rows),
            "id": self.orders["id"],
            "side": self._side(rows),
            "price": self.orders["price"],
            "volume": self.orders["volume"],
        }

    def trade_rows(self) -> Columns:
        """Return a row for each resting order's trade; the incoming order has a message a level, which sums them up."""
        answers, trades = records_of(Trade, self.answers, self.starts)
        resting = trades["id"] != self.orders["id"][self.causes[answers]]
        answers, trades = answers[resting], trades[resting]
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
        answers, found = records_of(Confirmation, self.answers, self.starts)
        return {**self._moment(answers + self.answers_before, self.causes[answers]), "id": found["id"]}

    def quote_rows(self) -> Columns:
        """Return best prices after each change; a side without orders is null."""
        answers, found = records_of(Quote, self.answers, self.starts)
        causes = self.causes[answers]
        return {
            **self._moment(answers + self.answers_before, causes),
            "bid": pa.array(found["bid"], pa.int32(), mask=found["bid"] == 0),
            "ask": pa.array(found["ask"], pa.int32(), mask=found["ask"] > self.max_price),
            "incoming_id": self.orders["id"][causes],
        }

    def _moment(self, numbers: Longs, causes: Longs) -> Columns:
        times = None if self.due_ns is None else self.due_ns[causes]
        return {
            "sequence": numbers + 1,
            "time_ns": pa.nulls(len(causes), pa.int64()) if times is None else times,
            "clock": pa.repeat(None if times is None else "due", len(causes)).cast(pa.string()),
        }

    def _side(self, rows: Longs) -> pa.Array:
        codes = pa.array((self.orders["side"][rows] == BID).astype(np.int32))
        return pa.DictionaryArray.from_arrays(codes, ["ask", "bid"]).cast(pa.string())


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema({**ABOUT, **MOMENT, **columns})


NUMBER, ID, WORD = pa.int32(), pa.int64(), pa.string()
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
    arrays = [
        pa.repeat(pa.scalar(about[name], ABOUT[name]), size)
        if name in about
        else pa.array(columns[name]).cast(schema.field(name).type)
        for name in names
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema([schema.field(name) for name in names]))
