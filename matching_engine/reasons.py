"""The words for the reasons of rejections; kernels.py has their numbers, and docs/matching.md describes them."""

from __future__ import annotations

from matching_engine.kernels import (
    ANOTHERS_ORDER,
    BAD_PRICE,
    BAD_SIDE,
    BAD_TYPE,
    BAD_VOLUME,
    BOOK_FULL,
    DUPLICATE_ID,
    NO_SUCH_INSTRUMENT,
    NOTHING_TO_TRADE_WITH,
    UNKNOWN_ID,
    WOULD_TRADE,
)

REASONS = {
    BAD_SIDE: "side",
    BAD_PRICE: "price",
    BAD_VOLUME: "volume",
    BOOK_FULL: "book full",
    DUPLICATE_ID: "duplicate id",
    UNKNOWN_ID: "unknown order",
    BAD_TYPE: "order type",
    WOULD_TRADE: "would trade",
    NOTHING_TO_TRADE_WITH: "nothing to trade with",
    ANOTHERS_ORDER: "another gateway's order",
    NO_SUCH_INSTRUMENT: "no such instrument",
}
