"""The trades among answers, as columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exchange import messages
from exchange.kernel_cache import cached_kernel
from exchange.messages import LAYOUTS, Cancelled, Confirmation, Quote, Rejection, Trade
from matching_engine.compiled import load_u16, load_u64

TRADE, TRADE_BYTES = LAYOUTS[Trade].code, LAYOUTS[Trade].size
_SIZE_OF_ANSWER = np.zeros(256, np.int64)
for _message in (Confirmation, Quote, Rejection, Cancelled, Trade):
    _SIZE_OF_ANSWER[LAYOUTS[_message].code] = LAYOUTS[_message].size

Bytes = npt.NDArray[np.uint8]


class TradeColumns(NamedTuple):
    """Room for trades, a row each."""

    id: npt.NDArray[np.uint32]
    price: npt.NDArray[np.uint16]
    volume: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, rows: int) -> TradeColumns:
        return cls(np.zeros(rows, np.uint32), np.zeros(rows, np.uint16), np.zeros(rows, np.uint16))


@cached_kernel(messages)
def copy_trades(
    answers: Bytes, ids: npt.NDArray[np.uint32], prices: npt.NDArray[np.uint16], volumes: npt.NDArray[np.uint16],
    row: int,
) -> int:  # fmt: skip
    """Copy the trades among an engine's answers into the columns from `row` on: the row behind the last."""
    at = 0
    while at < len(answers):
        if answers[at] == TRADE:
            head = load_u64(answers, at)
            ids[row], prices[row], volumes[row] = head >> 8, head >> 40, load_u16(answers, at + 7)
            row += 1
        at += _SIZE_OF_ANSWER[answers[at]]
    return row
