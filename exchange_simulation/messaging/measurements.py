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
from exchange_simulation.messaging.cell import Cell, Figures
from exchange_simulation.messaging.measuring import COMPLETE, INVALID, PARTIAL
from exchange_simulation.repeats.noise_rule import RedoRule, noise_caveats, set_aside_words

UNFINISHED = "it goes on, or was killed"
SEED = 1
"""The seed of the bootstrap."""
MEASUREMENTS = "measurements"
"""The noun for repeats of cells in sentences on noise."""


@dataclass
class Measurements:
    """Tries, cell by cell in the order of the plan; `stopped` says why some are missing."""

    cells: list[Cell]
    rule: RedoRule | None
    """Which tries are set aside because others used the machine; None lets all count."""
    tries: list[list[Record]] = field(init=False)
    """For each cell, all that was measured of it; `repeat` says of which repeat a try is."""
    stopped: str | None = UNFINISHED

    def __post_init__(self) -> None:
        self.tries = [[] for _ in self.cells]

    def record(self) -> Record:
        """Status, reasons, caveats, the use of the rule on noise, and a row for each cell that was measured."""
        rows = [_row(cell, tries, self.rule) for cell, tries in zip(self.cells, self.tries, strict=True) if tries]
        reasons = [self.stopped] if self.stopped else []
        reasons += _what_is_wrong(rows)
        status = INVALID if reasons else COMPLETE
        if self.stopped:
            status = PARTIAL
        return {
            "status": status,
            "reasons": reasons,
            "caveats": list(_caveats(rows, self.rule)),
            "redo_noisy": _use_of(self.rule, rows),
            "rows": rows,
        }


def _what_is_wrong(rows: Sequence[Record]) -> Iterator[str]:
    """A sentence for each reason why an answer was wrong."""
    for row in rows:
        for repeat in row["repeats"]:
            if repeat["status"] == INVALID:
                for reason in repeat["reasons"]:
                    yield f"{row['words']}, repeat {repeat['repeat']}: {reason}"


def _caveats(rows: Sequence[Record], rule: RedoRule | None) -> Iterator[str]:
    """Sentences on noise: what was set aside, and what counts although others used the machine."""
    set_aside = [{**repeat, "name": _name_of(row, repeat)} for row in rows for repeat in row["set_aside"]]
    if rule and set_aside:
        yield set_aside_words(set_aside, rule, MEASUREMENTS)
    shares = [noise_share(repeat) for row in rows for repeat in row["repeats"]]
    yield from noise_caveats(shares, len(set_aside), rule, MEASUREMENTS)


def _name_of(row: Record, repeat: Record) -> str:
    """The name of a measurement in a sentence.

    For example: repeat 1 of tcp 64 B
    """
    return f"repeat {repeat['repeat']} of {row['words'].replace(',', '')}"


def _use_of(rule: RedoRule | None, rows: Sequence[Record]) -> Record | None:
    """The rule, and how often it was used, as a trial's record has it; None if noisy measurements are kept."""
    if rule is None:
        return None
    set_aside = sum(len(row["set_aside"]) for row in rows)
    return rule.use_as_dict(set_aside, [repeat for row in rows for repeat in row["repeats"]])


def _row(cell: Cell, tries: Sequence[Record], rule: RedoRule | None) -> Record:
    """A cell's row; its figures are of the repeats whose answers were right."""
    repeats, set_aside = _that_count(tries, rule)
    right = [_with_usage(repeat, cell.has_broker) for repeat in repeats if repeat["status"] == COMPLETE]
    names = dict.fromkeys(name for figures in right for name in figures)
    return {
        "transport": cell.transport,
        "point": dict(cell.point),
        "words": str(cell),
        "figures": {name: _estimate(tuple(own[name] for own in right if name in own)) for name in names},
        "repeats": repeats,
        "set_aside": set_aside,
    }


def _that_count(tries: Sequence[Record], rule: RedoRule | None) -> tuple[list[Record], list[Record]]:
    """(the tries that count, those that were set aside for noise), by repeat. A wrong answer is never set aside."""
    by_repeat: dict[int, list[Record]] = {}
    for each in tries:
        by_repeat.setdefault(each["repeat"], []).append(each)
    repeats: list[Record] = []
    set_aside: list[Record] = []
    for _, of_repeat in sorted(by_repeat.items()):
        complete = [each for each in of_repeat if each["status"] == COMPLETE]
        counts = rule.choose(complete) if rule else None
        for each in of_repeat:
            if counts is None or each is counts or each["status"] != COMPLETE:
                repeats.append(each)
            else:
                set_aside.append(each)
    return repeats, set_aside


@lru_cache(maxsize=1 << 16)
def _estimate(values: tuple[float, ...]) -> dict[str, Any]:
    """The median over repeats with its interval; without the interval if scipy is not installed.

    Cached, since the record is written again and again while most of its rows stay as they are.
    """
    try:
        estimate = median(values, SEED)
    except ModuleNotFoundError:
        estimate = IntervalEstimate(statistics.median(values))
    return {"median": estimate.value, "low": estimate.low, "high": estimate.high, "n": len(values)}


def lacks_intervals(record: Record) -> bool:
    """True if a figure of a benchmark, or of a suite's parts, has repeats and no interval, as without scipy."""
    rows = [row for part in record.get("parts", [record]) for row in part["rows"]]
    figures = [figure for row in rows for figure in row["figures"].values()]
    return any(figure["n"] > 1 and figure["low"] is None for figure in figures)


def _with_usage(repeat: Record, has_broker: bool) -> Figures:
    """A repeat's figures, with cores in use and context switches a message of the broker and of each kind of role.

    And TCP packets a message, in all: acknowledgements without data, and what opened the links, are among them.
    """
    noise = repeat["noise"]
    figures = dict(repeat["figures"])
    if not figures or not noise or noise["window_s"] <= 0:
        return figures
    sent = max(sum(role["sent"] for role in repeat["roles"].values()), 1)
    used: dict[str, list[Mapping[str, Any]]] = {}
    for name, role in repeat["roles"].items():
        used.setdefault(name.partition(" ")[0], []).append(role["usage"])
    if repeat["broker"]:
        used["broker"] = [repeat["broker"]]
    if packets := _packets(repeat, has_broker):
        figures["packets_per_message"] = packets / sent
    for kind, usages in used.items():
        switches = sum(usage["voluntary_context_switches"] + usage["involuntary_context_switches"] for usage in usages)
        figures[f"{kind}_cores"] = sum(usage["cpu_s"] for usage in usages) / noise["window_s"]
        figures[f"{kind}_switches_per_message"] = switches / sent
    return figures


def _packets(repeat: Record, has_broker: bool) -> int:
    """Packets of all connections. Without a broker both ends are ours, so only what each end sends counts."""
    counters = ("segments_out", "segments_in") if has_broker else ("segments_out",)
    sockets = [socket for role in repeat["roles"].values() for socket in role["sockets"]]
    return sum(socket.get(name, 0) for socket in sockets for name in counters)
