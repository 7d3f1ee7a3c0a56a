"""The measurements of each cell: all tries, the repeats that count, and rows of medians over them for the record."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from exchange.estimates import IntervalEstimate, median
from exchange.json_records import Record
from exchange_simulation.launching.record.noise import noise_share
from exchange_simulation.launching.transport_urls import guarantee_of
from exchange_simulation.messaging.cell import Cell, Figures
from exchange_simulation.messaging.measuring import COMPLETE, INVALID, PARTIAL
from exchange_simulation.repeats.noise_rule import RedoRule, noise_caveats, set_aside_words
from transports.guarantees import unlike_guarantees

UNFINISHED = "it goes on, or was killed"
"""The reason in a record that is written before the benchmark has ended."""
SEED = 1
"""The seed of the bootstrap."""
MEASUREMENTS = "measurements"
"""The noun for repeats of cells in sentences on noise."""


@dataclass
class Measurements:
    """The tries of every cell, in the order of the plan."""

    cells: list[Cell]
    rule: RedoRule | None
    """Chooses the tries that are set aside for noise; without a rule all tries count."""
    tries: list[list[Record]] = field(init=False)
    """The tries of each cell; the field `repeat` of a try is the number of its repeat."""
    stopped: str | None = UNFINISHED
    """The reason why tries are missing; None if none is."""
    resumed: int = 0
    """How often the benchmark was interrupted and went on."""

    def __post_init__(self) -> None:
        self.tries = [[] for _ in self.cells]

    def record(self) -> Record:
        """Status, reasons, caveats, the use of the rule on noise, and a row for each cell that was measured."""
        rows = [_row(cell, tries, self.rule) for cell, tries in zip(self.cells, self.tries, strict=True) if tries]
        reasons = list(_wrong_answers(rows))
        status = INVALID if reasons else COMPLETE
        if self.stopped:
            reasons.insert(0, self.stopped)
            status = PARTIAL
        return {
            "status": status,
            "reasons": reasons,
            "resumed": self.resumed,
            "caveats": [*_unlike_guarantees(self.cells), *_interruptions(self.resumed), *_caveats(rows, self.rule)],
            "redo_noisy": _use_of(self.rule, rows),
            "rows": rows,
        }


def _unlike_guarantees(cells: Sequence[Cell]) -> Iterator[str]:
    """A sentence if the transports have different guarantees.

    None for a benchmark without the setting `delivery`: its links have several guarantees.
    """
    guarantees = {
        cell.transport: guarantee_of(cell.transport, cell.settings) for cell in cells if "delivery" in cell.settings
    }
    sentence = unlike_guarantees(guarantees)
    if sentence:
        yield sentence


def _interruptions(resumed: int) -> Iterator[str]:
    """A sentence if the benchmark was interrupted: its repeats are of several times, each with servers of its own."""
    if resumed:
        how_often = "once" if resumed == 1 else f"{resumed} times"
        yield f"the benchmark was interrupted and went on {how_often}, each time with new servers"


def _wrong_answers(rows: Sequence[Record]) -> Iterator[str]:
    """Yield a sentence for each reason why an answer was wrong."""
    for row in rows:
        for repeat in row["repeats"]:
            if repeat["status"] == INVALID:
                for reason in repeat["reasons"]:
                    yield f"{row['words']}, repeat {repeat['repeat']}: {reason}"


def _caveats(rows: Sequence[Record], rule: RedoRule | None) -> Iterator[str]:
    """Sentences on noise: the measurements that were set aside, and noisy measurements that count."""
    set_aside = [{**repeat, "name": _name_of(row, repeat)} for row in rows for repeat in row["set_aside"]]
    if rule and set_aside:
        yield set_aside_words(set_aside, rule, MEASUREMENTS)
    shares = [noise_share(repeat) for row in rows for repeat in row["repeats"]]
    yield from noise_caveats(shares, len(set_aside), rule, MEASUREMENTS)


def _name_of(row: Record, repeat: Record) -> str:
    """The name of a measurement in a sentence.

    For example: repeat 1 of tcp 64 B 1000@5s,8000@5s
    """
    return f"repeat {repeat['repeat']} of {row['words'].replace(', ', ' ')}"


def _use_of(rule: RedoRule | None, rows: Sequence[Record]) -> Record | None:
    """The rule and how often it was used, as in a trial's record; None if noisy measurements are kept."""
    if rule is None:
        return None
    set_aside = sum(len(row["set_aside"]) for row in rows)
    return rule.use_as_dict(set_aside, [repeat for row in rows for repeat in row["repeats"]])


def _row(cell: Cell, tries: Sequence[Record], rule: RedoRule | None) -> Record:
    """A cell's row; its figures are medians over the repeats whose answers were right."""
    chosen = _choose(tries, rule)
    figures_of_repeats = [
        figures_with_usage(repeat, cell.has_broker) for repeat in chosen.repeats if repeat["status"] == COMPLETE
    ]
    return {
        "transport": cell.transport,
        "point": dict(cell.point),
        "words": str(cell),
        "figures": _medians(figures_of_repeats),
        **_steps(chosen.repeats),
        "repeats": chosen.repeats,
        "set_aside": chosen.set_aside,
    }


def _steps(repeats: Sequence[Record]) -> Record:
    """The field `steps` of a row: medians over the repeats of each step of a load over time. Empty for one rate."""
    steps_of_repeats = [repeat["steps"] for repeat in repeats if repeat["status"] == COMPLETE and "steps" in repeat]
    steps = []
    for same_step in zip(*steps_of_repeats, strict=True):
        figures = _medians([step["figures"] for step in same_step])
        steps.append({"step": same_step[0]["step"], "figures": figures})
    return {"steps": steps} if steps else {}


def _medians(figures_of_repeats: Sequence[Figures]) -> Record:
    """The median of each figure over the repeats that have it, with its interval."""
    values_by_figure: dict[str, list[float]] = {}
    for figures in figures_of_repeats:
        for name, value in figures.items():
            values_by_figure.setdefault(name, []).append(value)
    return {name: _estimate(tuple(values)) for name, values in values_by_figure.items()}


@dataclass(frozen=True)
class _ChosenTries:
    """The tries of a cell, in the order of their repeats."""

    repeats: list[Record]
    """The tries that count."""
    set_aside: list[Record]
    """The tries that were set aside for noise."""


def _choose(tries: Sequence[Record], rule: RedoRule | None) -> _ChosenTries:
    """Choose the tries that count: one of each repeat, and every wrong answer, which is never set aside."""
    tries_by_repeat: dict[int, list[Record]] = {}
    for record in tries:
        tries_by_repeat.setdefault(record["repeat"], []).append(record)
    chosen = _ChosenTries([], [])
    for repeat in sorted(tries_by_repeat):
        tries_of_repeat = tries_by_repeat[repeat]
        complete = [record for record in tries_of_repeat if record["status"] == COMPLETE]
        counting = rule.choose(complete) if rule else None
        for record in tries_of_repeat:
            if counting is None or record is counting or record["status"] != COMPLETE:
                chosen.repeats.append(record)
            else:
                chosen.set_aside.append(record)
    return chosen


@lru_cache(maxsize=1 << 16)
def _estimate(values: tuple[float, ...]) -> dict[str, Any]:
    """The median over repeats with its interval; without the interval if scipy is not installed.

    Cached, since the record is written many times while most of its rows stay the same.
    """
    try:
        estimate = median(values, SEED)
    except ModuleNotFoundError:
        estimate = IntervalEstimate(statistics.median(values))
    return {"median": estimate.value, "low": estimate.low, "high": estimate.high, "n": len(values)}


def lacks_intervals(record: Record) -> bool:
    """True if a figure of a benchmark, or of a suite's parts, has several repeats and no interval, as without scipy."""
    rows = [row for part in record.get("parts", [record]) for row in part["rows"]]
    figures = [figure for row in rows for figure in row["figures"].values()]
    return any(figure["n"] > 1 and figure["low"] is None for figure in figures)


def figures_with_usage(repeat: Record, has_broker: bool) -> Figures:
    """A repeat's figures, and cores in use and context switches a message of the broker and of each kind of role.

    The figures also have all TCP packets a message: acknowledgements and the opening of links count, too.
    """
    noise = repeat["noise"]
    figures = dict(repeat["figures"])
    if not figures or not noise or noise["window_s"] <= 0:
        return figures
    sent = max(sum(role["sent"] for role in repeat["roles"].values()), 1)
    usages_by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for name, role in repeat["roles"].items():
        kind, _, _ = name.partition(" ")
        usages_by_kind.setdefault(kind, []).append(role["usage"])
    if repeat["broker"]:
        usages_by_kind["broker"] = [repeat["broker"]]
    packets = _packets(repeat, has_broker)
    if packets:
        figures["packets_per_message"] = packets / sent
    for kind, usages in usages_by_kind.items():
        switches = sum(usage["voluntary_context_switches"] + usage["involuntary_context_switches"] for usage in usages)
        figures[f"{kind}_cores"] = sum(usage["cpu_s"] for usage in usages) / noise["window_s"]
        figures[f"{kind}_switches_per_message"] = switches / sent
    return figures


def _packets(repeat: Record, has_broker: bool) -> int:
    """Packets of all connections. Without a broker both ends are roles, so only the packets that an end sends count."""
    counters = ("segments_out", "segments_in") if has_broker else ("segments_out",)
    sockets = [socket for role in repeat["roles"].values() for socket in role["sockets"]]
    return sum(socket.get(name, 0) for socket in sockets for name in counters)
