"""Whether transports differ in a benchmark's main figure, point by point: judged, said and drawn as a trial is.

`comparison_of` makes of a benchmark's record, or of a suite's, what the components of comparison pages take. All points
of all benchmarks of a record are one family.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.measuring import COMPLETE
from exchange_simulation.messaging.point import MAX, RATE, value_in_words
from exchange_simulation.messaging.presentation import Column
from exchange_simulation.repeats.judging import (
    ALPHA,
    MOST_SATURATED,
    ComparedPair,
    ComparedSide,
    judge_together,
    statistics_of,
    verdict_as_dict,
)
from exchange_simulation.repeats.sentences import cannot_reach_a_verdict

FROM_DUE = "due_p50_us"
SEED = 1
"""The seed of the sign flips, where there are too many for all of them."""
MORE = "{larger} carries {times} times as much as {smaller}"
LONGER = "{larger} takes {times} times as long as {smaller}"
RATES, TIMES = "rates", "times"
Row = Mapping[str, Any]


class ComparedRows(NamedTuple):
    """Two transports at one point of a benchmark, by its main figure."""

    benchmark: str
    column: Column
    first: Row
    second: Row


def main_column(record: Mapping[str, Any]) -> Column:
    """The first column with an interval; if each row has a rate, the time from due, since the rate was given."""
    columns = [column for column in benchmark_of(record["benchmark"]).columns if column.with_interval]
    rows = record["rows"]
    is_timed = any(FROM_DUE in row["figures"] for row in rows) and all(map(_is_paced, rows))
    return next(column for column in columns if not is_timed or column.name == FROM_DUE)


def _is_paced(row: Row) -> bool:
    return row["point"].get(RATE, MAX) != MAX


def compared_rows(record: Mapping[str, Any]) -> list[ComparedRows]:
    """Every two transports that were measured at the same point, of a benchmark's record or of a suite's.

    Where a figure of floods is compared, rows at a given rate are left out: both sides were offered the same.
    """
    found: list[ComparedRows] = []
    for part in record.get("parts", [record]):
        if not part["rows"]:
            continue
        column = main_column(part)
        rows = [row for row in part["rows"] if column.name == FROM_DUE or not _is_paced(row)]
        for of_point in grouped(rows, lambda row: str(row["point"])).values():
            found += [ComparedRows(part["benchmark"], column, *both) for both in combinations(of_point, 2)]
    return found


def with_verdicts(record: Record) -> Record:
    """The record with its verdicts, how they were found, and a caveat if its repeats can never lead to one."""
    judgement = _judgement_of(record)
    caveats = list(record["caveats"])
    too_few = cannot_reach_a_verdict(_repeats(record), ALPHA)
    if judgement["verdicts"] and too_few:
        caveats.insert(0, too_few)
    return {**record, "caveats": caveats, **judgement}


def judged(record: Record) -> Record:
    """The record with its verdicts; those of a record of an earlier version, or of a killed benchmark, are made now."""
    return record if "verdicts" in record else {**record, **_judgement_of(record)}


def _judgement_of(record: Mapping[str, Any]) -> Record:
    """The fields of bench.json that say what differs: verdicts and statistics."""
    compared = compared_rows(record)
    verdicts = judge_together([_pair(rows) for rows in compared], ALPHA, SEED)
    return {
        "statistics": statistics_of(len(compared), ALPHA),
        "verdicts": [
            {
                "benchmark": rows.benchmark,
                "figure": rows.column.name,
                "point": dict(rows.first["point"]),
                "first": rows.first["transport"],
                "second": rows.second["transport"],
                **verdict_as_dict(verdict),
            }
            for rows, verdict in zip(compared, verdicts, strict=True)
        ],
    }


def _pair(rows: ComparedRows) -> ComparedPair:
    return ComparedPair(
        figure=f"{rows.benchmark} {rows.column.name}",
        wording=_wording(rows.column),
        first=_side(rows.first, rows.column),
        second=_side(rows.second, rows.column),
        why_not=_why_not(rows),
    )


def _wording(column: Column) -> str:
    """The template of a figure's sentence, for a rate or for a time."""
    return MORE if _is_rate(column) else LONGER


def _is_rate(column: Column) -> bool:
    return column.name.endswith("_per_s")


def _side(row: Row, column: Column) -> ComparedSide:
    return ComparedSide(row["transport"], _by_repeat(row, column.name), _kept_rate(row))


def _by_repeat(row: Row, figure: str) -> dict[int, float]:
    """The figure's value in each repeat that has it and whose answer was right."""
    right = [repeat for repeat in row["repeats"] if repeat["status"] == COMPLETE]
    return {repeat["repeat"]: repeat["figures"][figure] for repeat in right if figure in repeat["figures"]}


def saturated_repeats(row: Row) -> list[Mapping[str, Any]]:
    """The repeats that did not keep the rate that was offered."""
    return [repeat for repeat in row["repeats"] if repeat.get("saturated")]


def _kept_rate(row: Row) -> bool:
    return len(saturated_repeats(row)) <= MOST_SATURATED * len(row["repeats"])


def _why_not(rows: ComparedRows) -> str:
    """The sentence if the two are not compared.

    For example: amqp did not keep its rate (6 of 6 repeats saturated)
    """
    lacking = [row for row in (rows.first, rows.second) if not _kept_rate(row)]
    if not lacking:
        return "not measured on both sides"
    saturated = " and ".join(f"{len(saturated_repeats(row))} of {len(row['repeats'])}" for row in lacking)
    if len(lacking) == 1:
        return f"{lacking[0]['transport']} did not keep its rate ({saturated} repeats saturated)"
    return f"neither kept its rate ({saturated} repeats saturated)"


def comparison_of(record: Mapping[str, Any], *, by_kind: bool = False) -> Record:
    """The record as components of comparison pages take it.

    `by_kind` puts the figures of all benchmarks together, as rates and as times, for one sentence about a suite.
    """
    judgement = judged(dict(record))
    compared = compared_rows(record)
    metrics: dict[str, Record] = {}
    verdicts: list[Record] = []
    arms: dict[str, Record] = {}
    for rows, verdict in zip(compared, judgement["verdicts"], strict=True):
        metric = _metric_name(rows, by_kind)
        metrics[metric] = {"title": _title(record, rows, by_kind), "says": _wording(rows.column)}
        labels = [_label(rows.benchmark, row) for row in (rows.first, rows.second)]
        for label, row in zip(labels, (rows.first, rows.second), strict=True):
            arm = arms.setdefault(label, {"label": label, "contender": row["transport"], "metrics": {}})
            by_repeat = _by_repeat(row, rows.column.name)
            arm["metrics"][metric] = {"by_repeat": {str(repeat): value for repeat, value in by_repeat.items()}}
        block = point_in_words(verdict["point"])
        verdicts.append({**verdict, "metric": metric, "block": block, "first": labels[0], "second": labels[1]})
    return {
        "study": "bench",
        "metrics": metrics,
        "arms": list(arms.values()),
        "verdicts": verdicts,
        "statistics": judgement["statistics"],
    }


def _repeats(record: Mapping[str, Any]) -> int:
    """The most repeats of any cell."""
    rows = [row for part in record.get("parts", [record]) for row in part["rows"]]
    return max((repeat["repeat"] for row in rows for repeat in row["repeats"]), default=0)


def _metric_name(rows: ComparedRows, by_kind: bool) -> str:
    if by_kind:
        return RATES if _is_rate(rows.column) else TIMES
    return f"{rows.benchmark} {rows.column.name}"


def _title(record: Mapping[str, Any], rows: ComparedRows, by_kind: bool) -> str:
    """The title above the ratios of a figure."""
    if by_kind:
        return _metric_name(rows, by_kind)
    return rows.benchmark if "parts" in record else rows.column.title


def _label(benchmark: str, row: Row) -> str:
    return f"{benchmark}, {row['transport']}, {point_in_words(row['point'])}"


def point_in_words(point: Mapping[str, Any]) -> str:
    """A point's values with their units.

    For example: 64 B, 4 pairs
    """
    return ", ".join(value_in_words(name, value) for name, value in point.items())
