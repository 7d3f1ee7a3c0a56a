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
        """Return the first order's due time, CLOCK_MONOTONIC; it is calculated from the first answered sample."""
        return int(self.due_ns[0] - (self.ids[0] - 1) * 1e9 / rate_per_s)


def _samples(folder: Path) -> Iterator[tuple[int, int, int, int]]:
    """Yield the samples of a run's spool, in the order of the fields of `AnsweredSamples`."""
    for record in records(folder):
        if record["kind"] == SAMPLE:
            sample = record["payload"]
            yield sample["id"], sample["due_ns"], sample["handed_over_ns"], sample["answered_ns"]


def orders_in_spool(folder: Path) -> AnsweredSamples | None:
    """Return the samples; None if there are none yet."""
    try:
        rows = np.array(sorted(_samples(folder), key=lambda row: row[3]), np.int64)
    except (UserError, TypeError):
        return None
    if not len(rows):
        return None
    return AnsweredSamples(*rows.T)


@dataclass(frozen=True)
class FaultWindow:
    """The times of a fault, CLOCK_MONOTONIC.

    A fault that is not lifted ends when the exchange answers again, or never.
    """

    start_ns: int
    """The first order's due time."""
    began_ns: int
    lifted_ns: int | None
    length_ns: int
    """The run's planned length."""


def counts(
    record: dict[str, Any] | None, folder: Path, samples: AnsweredSamples | None, window: FaultWindow, rate_per_s: float
) -> dict[str, int | None]:
    """Return the numbers of orders sent, answered, lost, doubled, reordered, and missing from the record.

    Orders are sent if the record, a sample, or the gateway's stream says so. Without a record, all orders that were due
    before the fault count as sent.
    """
    recorded = record["counts"] if record and "counts" in record else {}
    sent = recorded.get("orders_sent", 0)
    answered = recorded.get("orders_answered", 0)
    evident = recorded.get("orders_received", 0)
    if samples:
        evident = max(evident, int(samples.ids.max()))
    orders = folder / "orders.bin"
    if orders.exists():
        evident = max(evident, orders.stat().st_size // LAYOUTS[Order].size)
    if not record:
        evident = max(evident, round((window.began_ns - window.start_ns) * rate_per_s / 1e9))
    unreported = max(0, evident - sent)
    tells_of_loss = record is not None and record.get("status") in {"partial", "invalid"}
    if not tells_of_loss:
        unreported += sent - answered
    return {
        "sent": max(sent, evident),
        "answered": answered,
        "lost": max(sent, evident) - answered,
        **_misanswered(folder),
        "unreported": unreported,
    }


def _misanswered(folder: Path) -> dict[str, int | None]:
    """Count orders answered twice, and orders whose first answer came after a later order's; None without a stream.

    An order is answered twice if it is confirmed twice, or if its trades have more volume than it has.
    """
    answers = _answers(folder / "answers.bin")
    if not answers:
        return {"doubled": None, "reordered": None}
    orders = np.fromfile(folder / "orders.bin", LAYOUTS[Order].dtype)
    offered = dict(zip(orders["id"].tolist(), orders["volume"].tolist(), strict=True))
    confirmed: Counter[int] = Counter()
    traded: Counter[int] = Counter()
    for answer in answers:
        if isinstance(answer, Confirmation):
            confirmed[answer.id] += 1
        elif isinstance(answer, Trade):
            traded[answer.id] += answer.volume
    doubled = {order_id for order_id, times in confirmed.items() if times > 1}
    doubled |= {order_id for order_id, volume in traded.items() if volume > offered.get(order_id, volume)}
    ids_by_first_answer = np.array(list(dict.fromkeys(answer.id for answer in answers)), np.int64)
    is_reordered = ids_by_first_answer < np.maximum.accumulate(ids_by_first_answer)
    return {"doubled": len(doubled), "reordered": int(is_reordered.sum())}


def _answers(path: Path) -> list[Confirmation | Trade | Rejection]:
    """Return the answers to orders that the gateway wrote down, up to the first that is not whole."""
    answers: list[Confirmation | Trade | Rejection] = []
    if not path.exists():
        return answers
    stream = path.read_bytes()
    position = 0
    with contextlib.suppress(MalformedMessage):
        while position < len(stream):
            message, position = decode_record(stream, position)
            if isinstance(message, Confirmation | Trade | Rejection):
                answers.append(message)
    return answers


def service(samples: AnsweredSamples | None, window: FaultWindow) -> dict[str, Any]:
    """Return how long the exchange did not answer, whether it came back, and p99 from due about the fault.

    `without_service_s` is the longest time from the fault on in which no sampled order was answered. `p99_us` has the
    phases before, during and after the fault, in microseconds; None for a phase of fewer than LEAST_SAMPLES.
    """
    if samples is None:
        return {"without_service_s": None, "came_back": False, "p99_us": {}}
    end_ns = window.start_ns + window.length_ns
    answered_since_ns = samples.answered_ns[samples.answered_ns > window.began_ns]
    moments_ns = np.concatenate(([window.began_ns], answered_since_ns))
    gaps_ns = np.diff(np.append(moments_ns, max(end_ns, int(moments_ns[-1]))))
    longest = int(gaps_ns.argmax())
    came_back = longest < len(gaps_ns) - 1
    if window.lifted_ns:
        over_ns = window.lifted_ns
    elif came_back:
        over_ns = int(moments_ns[longest + 1])
    else:
        over_ns = end_ns
    took_us = (samples.answered_ns - samples.due_ns) / 1e3
    phases = {
        "before": samples.due_ns < window.began_ns,
        "during": (samples.due_ns >= window.began_ns) & (samples.due_ns < over_ns),
        "after": samples.due_ns >= over_ns,
    }
    p99_us = {phase: _p99(took_us[is_in_phase]) for phase, is_in_phase in phases.items()}
    return {"without_service_s": int(gaps_ns[longest]) / 1e9, "came_back": came_back, "p99_us": p99_us}


def _p99(values: npt.NDArray[np.float64]) -> float | None:
    return float(np.percentile(values, 99)) if values.size >= LEAST_SAMPLES else None


def timeline(samples: AnsweredSamples | None, window: FaultWindow, interval: int) -> list[list[float]]:
    """Return a row for each 100 ms: seconds since the first order, orders handed over and orders answered a second.

    Lost orders are in no row, not even as handed over.
    """
    if samples is None:
        return []
    last_ns = max(window.start_ns + window.length_ns, int(samples.answered_ns.max()))
    edges_ns = np.arange(window.start_ns, last_ns + BIN_NS, BIN_NS)
    orders_per_s_of_a_sample = interval * 1e9 / BIN_NS
    handed_over, _ = np.histogram(samples.handed_ns, edges_ns)
    answered, _ = np.histogram(samples.answered_ns, edges_ns)
    seconds = [round((edge_ns - window.start_ns) / 1e9, 3) for edge_ns in edges_ns[:-1].tolist()]
    handed_over_per_s = (handed_over * orders_per_s_of_a_sample).tolist()
    answered_per_s = (answered * orders_per_s_of_a_sample).tolist()
    return [list(row) for row in zip(seconds, handed_over_per_s, answered_per_s, strict=True)]
