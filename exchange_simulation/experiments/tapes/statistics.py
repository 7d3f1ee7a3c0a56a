"""The statistics of a tape: its mix, what its orders do in a book, and when they are due."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exchange.allowed import BadSetting
from exchange.messages import MalformedMessage
from exchange_simulation.launching.errors import reading
from gateway.tape import CHUNK_ORDERS, check_due, due_path, map_file
from gateway.tape_records import mix_of, read_records
from matching_engine.kernels import UNKNOWN_ID
from matching_engine.tape_statistics import matched
from transports.frames import Longs
from transports.regular_files import check_regular

SHARES = (0.1, 0.5, 0.9)
"""The percentiles of the spread, as shares."""


@dataclass(frozen=True)
class Spread:
    """Best ask - best bid, in ticks, over the messages after which the book had both."""

    p10_ticks: int
    p50_ticks: int
    p90_ticks: int
    two_sided_percent: float
    """Messages after which the book had a bid and an ask, of all messages."""


@dataclass(frozen=True)
class Levels:
    """Price levels that hold orders, of both sides together."""

    mean: float
    most: int
    at_end: int


@dataclass(frozen=True)
class ArrivalFigures:
    """When the messages are due, from the file of due times."""

    length_s: float
    messages_per_s: float
    busiest_second: int
    """Messages that are due in the busiest second, counted from the first message."""
    gap_p50_us: float
    gap_p99_us: float
    at_once_percent: float
    """Messages that are due at the same time as the one before."""


@dataclass(frozen=True)
class TapeStatistics:
    """The figures of a tape, as `exchange tape stats --json` prints them."""

    tape: str
    messages: int
    kinds: dict[str, int]
    """The number of messages of each kind that occurs."""
    mix: str | None
    """The same as percentages, for --mix; None if no order of the tape can rest."""
    instruments: int
    """One more than the highest number of an instrument; 1 if no order names one."""
    trades: int
    """Trades of a resting order with an incoming one."""
    volume_traded: int
    """In lots."""
    order_to_trade_ratio: float | None
    """Messages for each trade; None without a trade."""
    rejections: int
    too_late: int
    """Cancels and replaces that were rejected because their order was not in the book."""
    spread: Spread | None
    """None if the book never had a bid and an ask."""
    levels: Levels
    resting_orders: int
    """Orders in the book at the end."""
    resting_volume: int
    """Lots in the book at the end."""
    arrivals: ArrivalFigures | None
    """None without a file of due times, or if all messages are due at once."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def statistics_of(tape: Path) -> TapeStatistics:
    """Match the tape, and return its statistics. UserError if it is no tape, or its due times are damaged."""
    with reading(tape, MalformedMessage):
        check_regular(tape)
        content = np.fromfile(tape, np.uint8)
        records = read_records(content)
        in_book = matched(content, records.instruments)
    kinds = {kind: count for kind, count in records.by_kind.items() if count > 0}
    at_end = (in_book.resting_asks, in_book.resting_bids)
    return TapeStatistics(
        tape=str(tape),
        messages=in_book.messages,
        kinds=kinds,
        mix=_mix(kinds),
        instruments=records.instruments or 1,
        trades=in_book.trades,
        volume_traded=in_book.volume,
        order_to_trade_ratio=in_book.messages / in_book.trades if in_book.trades else None,
        rejections=int(in_book.rejections.sum()),
        too_late=int(in_book.rejections[UNKNOWN_ID]),
        spread=_spread(in_book.spreads, in_book.messages),
        levels=Levels(float(in_book.levels.mean()), int(in_book.levels.max()), int(in_book.levels[-1])),
        resting_orders=sum(side.orders for side in at_end),
        resting_volume=sum(side.volume for side in at_end),
        arrivals=_arrivals(tape, in_book.messages),
    )


def _mix(kinds: dict[str, int]) -> str | None:
    try:
        return mix_of(kinds)
    except BadSetting:
        return None


def _spread(spreads: Longs, messages: int) -> Spread | None:
    """Return the percentiles of the counts by spread; None if there are none."""
    cumulated = np.cumsum(spreads)
    two_sided = int(cumulated[-1])
    if two_sided == 0:
        return None
    ranks = [max(1, round(share * two_sided)) for share in SHARES]
    p10, p50, p90 = np.searchsorted(cumulated, ranks).tolist()
    return Spread(p10, p50, p90, 100 * two_sided / messages)


def _arrivals(tape: Path, messages: int) -> ArrivalFigures | None:
    """Return the figures of the due times beside the tape. UserError if they are damaged."""
    due = due_path(tape)
    if not due.exists():
        return None
    with reading(due, ValueError):
        check_regular(due)
        check_due(due, messages)
    due_ns = map_file(due).view("<i8")
    length_ns = int(due_ns[-1]) - int(due_ns[0])
    if length_ns == 0:
        return None
    gaps_ns = np.diff(due_ns)
    p50_ns, p99_ns = np.percentile(gaps_ns, (50, 99)).tolist()
    return ArrivalFigures(
        length_s=length_ns / 1e9,
        messages_per_s=(messages - 1) * 1e9 / length_ns,
        busiest_second=_busiest_second(due_ns),
        gap_p50_us=p50_ns / 1e3,
        gap_p99_us=p99_ns / 1e3,
        at_once_percent=100 * int((gaps_ns == 0).sum()) / messages,
    )


def _busiest_second(due_ns: Longs) -> int:
    """Return the most messages that are due in one second, counted from the first message."""
    most = 0
    in_last_second = 0
    last_second = 0
    for first in range(0, len(due_ns), CHUNK_ORDERS):
        seconds, counts = np.unique((due_ns[first : first + CHUNK_ORDERS] - due_ns[0]) // 10**9, return_counts=True)
        if seconds[0] == last_second:
            counts[0] += in_last_second
        most = max(most, int(counts.max()))
        last_second = int(seconds[-1])
        in_last_second = int(counts[-1])
    return most
