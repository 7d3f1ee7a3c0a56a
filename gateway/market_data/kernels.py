"""Compiled reading of market data: counts, gaps, checksum, delivery times, best prices and depth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from exchange import checksum, compiled, log_buckets, measurements, messages
from exchange.checksum import State, hash_into
from exchange.compiled import cached_kernel, field_reader, signed
from exchange.log_buckets import log_bucket
from exchange.messages import LAYOUTS, MARKET_DATA_TYPES, DepthLevel, MarketQuote, MarketTrade, sizes_by_code

# Numbers of a subscriber.
EXPECTED = 0  # the next sequence number
MESSAGES = 1
TRADES = 2
QUOTES = 3
LEVELS = 4
GAPS = 5
MISSED = 6
REPEATED = 7
SUM_NS = 10  # of delivery times, of which the histogram needs sum, least and most
MIN_NS = 11
MAX_NS = 12
NUMBERS = 16
HIGHEST_SEQUENCE = 1 << 48
"""No feed gets there, so a record with a higher number is damaged."""

TRADE = LAYOUTS[MarketTrade].code
QUOTE = LAYOUTS[MarketQuote].code
LEVEL = LAYOUTS[DepthLevel].code
_instrument = field_reader("instrument", *MARKET_DATA_TYPES)
SIZES = sizes_by_code(MARKET_DATA_TYPES)
_sequence = field_reader("sequence", *MARKET_DATA_TYPES)
_read_ns = field_reader("read_ns", *MARKET_DATA_TYPES)
_bid, _ask = (field_reader(name, MarketQuote) for name in ("bid", "ask"))
_side, _place, _price, _volume = (field_reader(name, DepthLevel) for name in ("side", "place", "price", "volume"))


@cached_kernel(checksum, compiled, log_buckets, measurements, messages)
def is_market_data(data: npt.NDArray[np.uint8], begin: int, end: int) -> bool:
    """Return whether the bytes from `begin` to `end` are one or more whole records of market data."""
    at = begin
    while at < end and SIZES[data[at]] > 0:
        at += SIZES[data[at]]
    return begin < end and at == end


@cached_kernel(checksum, compiled, log_buckets, measurements, messages)
def take_records(
    data: npt.NDArray[np.uint8],
    begin: int,
    end: int,
    now_ns: int,
    numbers: npt.NDArray[np.int64],
    buckets: npt.NDArray[np.int64],
    hashed: State,
    best: npt.NDArray[np.int64],
    depth: npt.NDArray[np.int64],
) -> None:
    """Count the records in the bytes from `begin` to `end`, which had come at `now_ns`.

    `buckets`, shape (BUCKETS,), counts delivery times. `best`, shape (instruments, 2), has bid and ask, and `depth`,
    shape (instruments, 2, places, 2), price and volume of each level. A record whose number has come before, or is
    beyond HIGHEST_SEQUENCE, is counted as repeated, and otherwise left out.
    """
    at = begin
    while at < end:
        size = SIZES[data[at]]
        sequence = signed(_sequence(data, at))
        if sequence < numbers[EXPECTED] or sequence > HIGHEST_SEQUENCE:
            numbers[REPEATED] += 1
            at += size
            continue
        if sequence > numbers[EXPECTED]:
            numbers[GAPS] += 1
            numbers[MISSED] += sequence - numbers[EXPECTED]
        numbers[EXPECTED] = sequence + 1
        numbers[MESSAGES] += 1
        hash_into(hashed, data, at, at + size)
        took_ns = max(now_ns - signed(_read_ns(data, at)), 0)
        buckets[log_bucket(took_ns)] += 1
        numbers[SUM_NS] += took_ns
        numbers[MIN_NS] = took_ns if numbers[MESSAGES] == 1 else min(numbers[MIN_NS], took_ns)
        numbers[MAX_NS] = max(numbers[MAX_NS], took_ns)
        instrument = signed(_instrument(data, at))
        is_known = instrument < len(best)
        if data[at] == TRADE:
            numbers[TRADES] += 1
        elif data[at] == QUOTE:
            numbers[QUOTES] += 1
            if is_known:
                best[instrument, 0] = signed(_bid(data, at))
                best[instrument, 1] = signed(_ask(data, at))
        else:
            numbers[LEVELS] += 1
            side = signed(_side(data, at)) - 1
            place = signed(_place(data, at))
            if is_known and 0 <= side < depth.shape[1] and place < depth.shape[2]:
                depth[instrument, side, place, 0] = signed(_price(data, at))
                depth[instrument, side, place, 1] = signed(_volume(data, at))
        at += size
