"""What became of every order of a run, and when the exchange answered: from its record, its spool and its streams.

The record is judged by evidence beside it: the samples in the spool, and the streams that the gateway wrote down.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange.messages import LAYOUTS, Confirmation, MalformedMessage, Order, Rejection, Trade, decode_record
from exchange.records import SAMPLE
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.reading import records

Longs = npt.NDArray[np.int64]
LEAST_SAMPLES = 100
"""A p99 of fewer samples would depend on one order."""
BIN_NS = 100_000_000


@dataclass(frozen=True)
class AnsweredSamples:
    """The sampled orders that were answered, by the time of their answers; the clock is CLOCK_MONOTONIC."""

    ids: Longs
    due_ns: Longs
    handed_ns: Longs
    answered_ns: Longs

    def start_ns(self, rate_per_s: float) -> int:
        """The first order's due time."""
        return int(self.due_ns[0] - (self.ids[0] - 1) * 1e9 / rate_per_s)


def _samples(folder: Path) -> Iterator[tuple[int, int, int, int]]:
    for record in records(folder):
        if record["kind"] == SAMPLE:
            sample = record["payload"]
            yield sample["id"], sample["due_ns"], sample["handed_over_ns"], sample["answered_ns"]


def orders_in_spool(folder: Path) -> AnsweredSamples | None:
    """The samples; None if there are none yet."""
    try:
        rows = np.array(sorted(_samples(folder), key=lambda row: row[3]), np.int64)
    except (UserError, TypeError):
        return None
    return AnsweredSamples(*rows.T) if len(rows) else None


@dataclass(frozen=True)
class FaultWindow:
    """When the fault began, and ended; a fault that is not lifted ends when the exchange answers again, or never."""

    start_ns: int
    began_ns: int
    lifted_ns: int | None
    length_ns: int
    """The run's planned length."""


def counts(
    record: dict[str, Any] | None, folder: Path, samples: AnsweredSamples | None, window: FaultWindow, rate_per_s: float
) -> dict[str, int | None]:
    """Orders sent, answered, lost, doubled, reordered, and those that the record does not tell of."""
    counted = (record or {}).get("counts", {})
    sent, answered = counted.get("orders_sent", 0), counted.get("orders_answered", 0)
    orders = folder / "orders.bin"
    evident = max(
        counted.get("orders_received", 0),
        int(samples.ids.max()) if samples else 0,
        orders.stat().st_size // LAYOUTS[Order].size if orders.exists() else 0,
        0 if record else round((window.began_ns - window.start_ns) * rate_per_s / 1e9),
    )
    says_so = (record or {}).get("status") in {"partial", "invalid"}
    unreported = max(0, evident - sent) + (0 if says_so else sent - answered)
    return {
        "sent": max(sent, evident),
        "answered": answered,
        "lost": max(sent, evident) - answered,
        **_misanswered(folder),
        "unreported": unreported,
    }


def _misanswered(folder: Path) -> dict[str, int | None]:
    """Orders answered twice, and orders whose first answer came behind a later order's; None if no stream was left.

    An order is answered twice if it is confirmed twice, or if its trades have more volume than it has.
    """
    found = _answers(folder / "answers.bin")
    if not found:
        return {"doubled": None, "reordered": None}
    orders = np.fromfile(folder / "orders.bin", LAYOUTS[Order].dtype)
    offered = dict(zip(orders["id"].tolist(), orders["volume"].tolist(), strict=True))
    confirmed = Counter(answer.id for answer in found if isinstance(answer, Confirmation))
    traded: Counter[int] = Counter()
    for answer in found:
        if isinstance(answer, Trade):
            traded[answer.id] += answer.volume
    twice = {id_ for id_, times in confirmed.items() if times > 1}
    twice |= {id_ for id_, volume in traded.items() if volume > offered.get(id_, volume)}
    first = np.array(list(dict.fromkeys(answer.id for answer in found)), np.int64)
    return {"doubled": len(twice), "reordered": int((first < np.maximum.accumulate(first)).sum())}


def _answers(path: Path) -> list[Confirmation | Trade | Rejection]:
    """The answers to orders that the gateway wrote down, up to the first that is not whole."""
    data, at = path.read_bytes() if path.exists() else b"", 0
    found: list[Confirmation | Trade | Rejection] = []
    with contextlib.suppress(MalformedMessage):
        while at < len(data):
            message, at = decode_record(data, at)
            if isinstance(message, Confirmation | Trade | Rejection):
                found.append(message)
    return found


def service(samples: AnsweredSamples | None, window: FaultWindow) -> dict[str, Any]:
    """Seconds without an answer, and p99 of completion from due before, during and after the fault, microseconds.

    `without_service_s` is the longest time from the fault on in which no sampled order was answered.
    """
    if samples is None:
        return {"without_service_s": None, "came_back": False, "p99_us": {}}
    end_ns = window.start_ns + window.length_ns
    stops = np.concatenate(([window.began_ns], samples.answered_ns[samples.answered_ns > window.began_ns]))
    gaps = np.diff(np.append(stops, max(end_ns, int(stops[-1]))))
    longest = int(gaps.argmax())
    came_back = longest < len(gaps) - 1
    over_ns = window.lifted_ns or (int(stops[longest + 1]) if came_back else end_ns)
    took_us = (samples.answered_ns - samples.due_ns) / 1e3
    phases = {
        "before": samples.due_ns < window.began_ns,
        "during": (samples.due_ns >= window.began_ns) & (samples.due_ns < over_ns),
        "after": samples.due_ns >= over_ns,
    }
    took = {phase: took_us[chosen] for phase, chosen in phases.items()}
    p99 = {phase: float(np.percentile(us, 99)) if us.size >= LEAST_SAMPLES else None for phase, us in took.items()}
    return {"without_service_s": int(gaps[longest]) / 1e9, "came_back": came_back, "p99_us": p99}


def timeline(samples: AnsweredSamples | None, window: FaultWindow, interval: int) -> list[list[float]]:
    """Rows of 100 ms: seconds since the first order, orders handed over and orders answered a second.

    Lost orders are in no row, not even as handed over.
    """
    if samples is None:
        return []
    last_ns = max(window.start_ns + window.length_ns, int(samples.answered_ns.max()))
    edges = np.arange(window.start_ns, last_ns + BIN_NS, BIN_NS)
    per_s = interval * 1e9 / BIN_NS
    handed, _ = np.histogram(samples.handed_ns, edges)
    answered, _ = np.histogram(samples.answered_ns, edges)
    return [
        [round((at - window.start_ns) / 1e9, 3), float(h * per_s), float(a * per_s)]
        for at, h, a in zip(edges[:-1].tolist(), handed.tolist(), answered.tolist(), strict=True)
    ]
