"""The fate of every order of a run, and the times without service: from the run's record, its spool and its streams.

The record is checked against the other two: the samples in the spool, and the streams that the gateway recorded.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange.messages import LAYOUTS, Confirmation, MalformedMessage, Order, Rejection, Trade, decode_record
from exchange.records import SAMPLE
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.reading import spool_records
from exchange_simulation.launching.record.streams import count_orders

Longs = npt.NDArray[np.int64]
LEAST_SAMPLES = 100
"""The number of samples that a p99 needs; with fewer it would depend on one order."""
BIN_NS = 100_000_000
"""The length of a bin of the timeline."""


@dataclass(frozen=True)
class AnsweredSamples:
    """The sampled orders that were answered, sorted by the time of their answers. All times are of CLOCK_MONOTONIC."""

    ids: Longs
    due_ns: Longs
    handed_over_ns: Longs
    answered_ns: Longs

    def start_ns(self, rate_per_s: float) -> int:
        """Return the due time of the run's first order, calculated from the first answered sample."""
        return int(self.due_ns[0] - (self.ids[0] - 1) * 1e9 / rate_per_s)


def _samples(folder: Path) -> Iterator[tuple[int, int, int, int]]:
    """Yield the samples of a run's spool: id, due_ns, handed_over_ns, answered_ns."""
    for record in spool_records(folder):
        if record["kind"] == SAMPLE:
            sample = record["payload"]
            yield sample["id"], sample["due_ns"], sample["handed_over_ns"], sample["answered_ns"]


def answered_samples(folder: Path) -> AnsweredSamples | None:
    """Return the answered samples of a run's spool; None if there are none yet, or the spool cannot be read yet."""
    try:
        samples = sorted(_samples(folder), key=lambda sample: sample[3])  # by answered_ns
        columns = np.array(samples, np.int64).T
    except UserError:
        return None
    if not samples:
        return None
    ids, due_ns, handed_over_ns, answered_ns = columns
    return AnsweredSamples(ids=ids, due_ns=due_ns, handed_over_ns=handed_over_ns, answered_ns=answered_ns)


@dataclass(frozen=True)
class FaultWindow:
    """The times of a run and of its fault, CLOCK_MONOTONIC.

    If a fault is not lifted, the phase after it begins when the exchange answers again.
    """

    run_start_ns: int
    """The first order's due time."""
    run_length_ns: int
    """The planned length."""
    fault_start_ns: int
    fault_end_ns: int | None
    """None if the fault is not lifted."""

    def on_clock_ahead(self, ahead_ns: int) -> FaultWindow:
        """Return the window by a clock that is ahead of this one."""
        fault_end_ns = None if self.fault_end_ns is None else self.fault_end_ns + ahead_ns
        return replace(
            self,
            run_start_ns=self.run_start_ns + ahead_ns,
            fault_start_ns=self.fault_start_ns + ahead_ns,
            fault_end_ns=fault_end_ns,
        )


def counts(
    record: dict[str, Any] | None, folder: Path, samples: AnsweredSamples | None, window: FaultWindow, rate_per_s: float
) -> dict[str, int | None]:
    """Return the numbers of orders sent, answered, lost, doubled, reordered, and unreported.

    `sent` is the highest number that the record, the samples or the gateway's stream have. Without a record, all orders
    that were due before the fault count as sent. `unreported` are lost orders that the record does not show.
    """
    recorded = record["counts"] if record and "counts" in record else {}
    sent = recorded.get("orders_sent", 0)
    answered = recorded.get("orders_answered", 0)
    # The number of orders that were sent by evidence other than the record's count of sent orders.
    evident = recorded.get("orders_received", 0)
    if samples:
        evident = max(evident, int(samples.ids.max()))
    orders = folder / "orders.bin"
    if orders.exists():
        evident = max(evident, count_orders(orders))
    if not record:
        due_before_fault = round((window.fault_start_ns - window.run_start_ns) * rate_per_s / 1e9)
        evident = max(evident, due_before_fault)
    all_sent = max(sent, evident)
    lost = all_sent - answered
    # The record of a failed run accounts for the orders that it counts as sent; any others are missing from it.
    has_failed = record is not None and record.get("status") in {"partial", "invalid"}
    unreported = all_sent - sent if has_failed else lost
    return {
        "sent": all_sent,
        "answered": answered,
        "lost": lost,
        **_wrong_answers(folder),
        "unreported": unreported,
    }


def _wrong_answers(folder: Path) -> dict[str, int | None]:
    """Return the numbers of doubled and reordered orders; None without recorded streams of plain orders.

    An order is doubled if it is confirmed twice, or if its trades have more volume than the order. It is reordered if
    its first answer came after the first answer of a later order.
    """
    answers = _answers(folder / "answers.bin")
    if not answers:
        return {"doubled": None, "reordered": None}
    orders = np.fromfile(folder / "orders.bin", LAYOUTS[Order].dtype)
    if (orders["type"] != LAYOUTS[Order].code).any():
        return {"doubled": None, "reordered": None}  # replaces and cancels change how much an order may trade
    volume_by_id = dict(zip(orders["id"].tolist(), orders["volume"].tolist(), strict=True))
    confirmed: Counter[int] = Counter()
    traded: Counter[int] = Counter()
    for answer in answers:
        if isinstance(answer, Confirmation):
            confirmed[answer.id] += 1
        elif isinstance(answer, Trade):
            traded[answer.id] += answer.volume
    doubled = {order_id for order_id, confirmations in confirmed.items() if confirmations > 1}
    for order_id, volume in traded.items():
        if order_id in volume_by_id and volume > volume_by_id[order_id]:
            doubled.add(order_id)
    ids_in_order_of_first_answer = np.array(list(dict.fromkeys(answer.id for answer in answers)), np.int64)
    is_reordered = ids_in_order_of_first_answer < np.maximum.accumulate(ids_in_order_of_first_answer)
    return {"doubled": len(doubled), "reordered": int(is_reordered.sum())}


def _answers(path: Path) -> list[Confirmation | Trade | Rejection]:
    """Return the answers to orders in the gateway's recorded stream, up to the first that is cut short."""
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
    """Return the fields about the service after the fault, for the cell's entry in faults.json.

    without_service_s  the longest time, from the fault on, in which no sampled order was answered
    came_back          whether the exchange answered after that time
    p99_us             p99 from due before, during and after the fault; None for a phase of fewer than LEAST_SAMPLES
    """
    if samples is None:
        return {"without_service_s": None, "came_back": False, "p99_us": {}}
    end_ns = window.run_start_ns + window.run_length_ns
    answered_later_ns = samples.answered_ns[samples.answered_ns > window.fault_start_ns]
    gap_starts_ns = np.concatenate(([window.fault_start_ns], answered_later_ns))
    last_gap_end_ns = max(end_ns, int(gap_starts_ns[-1]))
    gaps_ns = np.diff(np.append(gap_starts_ns, last_gap_end_ns))
    longest_gap = int(gaps_ns.argmax())
    came_back = longest_gap < len(gaps_ns) - 1  # the last gap ends with the run, and not with an answer
    if window.fault_end_ns:
        after_ns = window.fault_end_ns
    elif came_back:
        answered_again_ns = gap_starts_ns[longest_gap + 1]
        after_ns = int(answered_again_ns)
    else:
        after_ns = end_ns
    completion_us = (samples.answered_ns - samples.due_ns) / 1e3
    phases = {
        "before": samples.due_ns < window.fault_start_ns,
        "during": (samples.due_ns >= window.fault_start_ns) & (samples.due_ns < after_ns),
        "after": samples.due_ns >= after_ns,
    }
    p99_us = {phase: _p99(completion_us[is_in_phase]) for phase, is_in_phase in phases.items()}
    return {"without_service_s": int(gaps_ns[longest_gap]) / 1e9, "came_back": came_back, "p99_us": p99_us}


def _p99(values: npt.NDArray[np.float64]) -> float | None:
    """Return the p99 of the values; None for fewer than LEAST_SAMPLES."""
    if values.size < LEAST_SAMPLES:
        return None
    return float(np.percentile(values, 99))


def timeline(samples: AnsweredSamples | None, window: FaultWindow, sampling_interval: int) -> list[list[float]]:
    """Return a row for each BIN_NS: seconds since the first order, orders/s handed over, orders/s answered.

    Only answered orders are counted, also among those handed over.
    """
    if samples is None:
        return []
    last_ns = max(window.run_start_ns + window.run_length_ns, int(samples.answered_ns.max()))
    edges_ns = np.arange(window.run_start_ns, last_ns + BIN_NS, BIN_NS)
    orders_per_s_of_a_sample = sampling_interval * 1e9 / BIN_NS  # the rate that one sample in a bin stands for
    handed_over, _ = np.histogram(samples.handed_over_ns, edges_ns)
    answered, _ = np.histogram(samples.answered_ns, edges_ns)
    seconds = [round((edge_ns - window.run_start_ns) / 1e9, 3) for edge_ns in edges_ns[:-1].tolist()]
    handed_over_per_s = (handed_over * orders_per_s_of_a_sample).tolist()
    answered_per_s = (answered * orders_per_s_of_a_sample).tolist()
    return [list(row) for row in zip(seconds, handed_over_per_s, answered_per_s, strict=True)]
