"""Whether transports differ in a benchmark's main figure, point by point; judged as the arms of a trial are.

`comparison_of` turns the record of a benchmark, or of a suite, into a record that the components of comparison pages
take. All points of all benchmarks of a record are one family.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.launching.record.noise import is_noisy_share, noise_share
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.measuring import COMPLETE
from exchange_simulation.messaging.point import BROKERS, MAX, RATE, value_in_words
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
"""The figure that is compared if each point has a rate."""
SEED = 1
"""The seed of the sign flips, if there are too many to try all of them."""
WORDING_OF_RATES = "{larger} carries {times} times as much as {smaller}"
WORDING_OF_TIMES = "{larger} takes {times} times as long as {smaller}"
RATES = "rates"
TIMES = "times"
Row = Mapping[str, Any]


class ComparedRows(NamedTuple):
    """Two transports at one point of a benchmark, by its main figure."""

    benchmark: str
    column: Column
    first: Row
    second: Row
    redo_noisy: bool
    """True if noisy measurements were made again; False with --keep-noisy."""


def main_column(record: Mapping[str, Any]) -> Column:
    """The column that is compared: the first with an interval.

    If each row has a rate, that column is the time from due, since both sides were offered the same rate.
    """
    columns = [column for column in benchmark_of(record["benchmark"]).columns if column.with_interval]
    rows = record["rows"]
    has_time_from_due = any(FROM_DUE in row["figures"] for row in rows)
    if has_time_from_due and all(_is_paced(row) for row in rows):
        return next(column for column in columns if column.name == FROM_DUE)
    return columns[0]


def _point_of_both(row: Row) -> dict[str, Any]:
    """The values of the row's point that it shares with a row that it is compared with."""
    return {name: value for name, value in row["point"].items() if name != BROKERS}


def _subject(row: Row) -> str:
    """What is compared: the transport, with the number of its brokers if that differs. For example: amqp, 2 brokers"""
    brokers = row["point"].get(BROKERS)
    return f"{row['transport']}, {counted(brokers, 'brokers')}" if brokers else str(row["transport"])


def _is_paced(row: Row) -> bool:
    """True if the row's publishers sent at a fixed rate."""
    return row["point"].get(RATE, MAX) != MAX


def compared_rows(record: Mapping[str, Any]) -> list[ComparedRows]:
    """Every two transports, or numbers of brokers, at the same point, in the record of a benchmark or of a suite.

    If rates are compared, rows with a fixed rate are left out, since both sides were offered that rate.
    """
    compared: list[ComparedRows] = []
    for part in record.get("parts", [record]):
        if not part["rows"]:
            continue
        column = main_column(part)
        rows = [row for row in part["rows"] if column.name == FROM_DUE or not _is_paced(row)]
        for rows_of_point in grouped(rows, lambda row: str(_point_of_both(row))).values():
            for first, second in combinations(rows_of_point, 2):
                compared.append(ComparedRows(part["benchmark"], column, first, second, bool(part.get("redo_noisy"))))
    return compared


def with_verdicts(record: Record) -> Record:
    """The record with its verdicts, its statistics, and a caveat if it has too few repeats for any verdict."""
    judgement = _judgement_of(record)
    caveats = list(record["caveats"])
    too_few = cannot_reach_a_verdict(_repeats(record), ALPHA)
    if judgement["verdicts"] and too_few:
        caveats.insert(0, too_few)
    return {**record, "caveats": caveats, **judgement}


def judged(record: Record) -> Record:
    """The record with its verdicts. They are made now if the record lacks them, as of a killed benchmark."""
    if "verdicts" in record:
        return record
    return {**record, **_judgement_of(record)}


def _judgement_of(record: Mapping[str, Any]) -> Record:
    """The fields of bench.json on differences: verdicts and statistics."""
    compared = compared_rows(record)
    verdicts = judge_together([_pair(rows) for rows in compared], ALPHA, SEED)
    return {
        "statistics": statistics_of(len(compared), ALPHA),
        "verdicts": [
            {
                "benchmark": rows.benchmark,
                "figure": rows.column.name,
                "point": _point_of_both(rows.first),
                "first": _subject(rows.first),
                "second": _subject(rows.second),
                **verdict_as_dict(verdict),
            }
            for rows, verdict in zip(compared, verdicts, strict=True)
        ],
    }


def _pair(rows: ComparedRows) -> ComparedPair:
    return ComparedPair(
        figure=f"{rows.benchmark} {rows.column.name}",
        wording=_wording(rows.column),
        first=_side(rows.first, rows.column, rows.redo_noisy),
        second=_side(rows.second, rows.column, rows.redo_noisy),
        why_not=_why_not(rows),
    )


def _wording(column: Column) -> str:
    """The template of a figure's sentence, for a rate or for a time."""
    return WORDING_OF_RATES if _is_rate(column) else WORDING_OF_TIMES


def _is_rate(column: Column) -> bool:
    return column.name.endswith("_per_s")


def _side(row: Row, column: Column, redo_noisy: bool) -> ComparedSide:
    """One side of a pair. With --keep-noisy, noisy repeats count like all others."""
    noisy_repeats = []
    if redo_noisy:
        noisy_repeats = [repeat["repeat"] for repeat in row["repeats"] if is_noisy_share(noise_share(repeat))]
    return ComparedSide(_subject(row), _by_repeat(row, column.name), _kept_rate(row), noisy_repeats)


def _by_repeat(row: Row, figure: str) -> dict[int, float]:
    """The figure's value in each repeat that has it and whose answer was right."""
    values: dict[int, float] = {}
    for repeat in row["repeats"]:
        if repeat["status"] == COMPLETE and figure in repeat["figures"]:
            values[repeat["repeat"]] = repeat["figures"][figure]
    return values


def saturated_repeats(row: Row) -> list[Mapping[str, Any]]:
    """The repeats that did not keep the offered rate."""
    return [repeat for repeat in row["repeats"] if repeat.get("saturated")]


def _kept_rate(row: Row) -> bool:
    """False if more than half of the row's repeats did not keep their rate."""
    return len(saturated_repeats(row)) <= MOST_SATURATED * len(row["repeats"])


def _why_not(rows: ComparedRows) -> str:
    """The sentence for two rows that are not compared.

    For example: amqp did not keep its rate (6 of 6 repeats saturated)
    """
    lacking = [row for row in (rows.first, rows.second) if not _kept_rate(row)]
    if not lacking:
        return "not measured on both sides"
    saturated = " and ".join(f"{len(saturated_repeats(row))} of {len(row['repeats'])}" for row in lacking)
    if len(lacking) == 1:
        return f"{_subject(lacking[0])} did not keep its rate ({saturated} repeats saturated)"
    return f"neither kept its rate ({saturated} repeats saturated)"


def comparison_of(record: Mapping[str, Any], *, by_kind: bool = False) -> Record:
    """The record of a comparison, which the components of comparison pages take.

    `by_kind` names the figures of all benchmarks "rates" or "times", for a sentence about a whole suite.
    """
    judgement = judged(dict(record))
    compared = compared_rows(record)
    metrics: dict[str, Record] = {}
    verdicts: list[Record] = []
    arms: dict[str, Record] = {}
    for rows, verdict in zip(compared, judgement["verdicts"], strict=True):
        metric = _metric_name(rows, by_kind)
        metrics[metric] = {"title": _title(record, rows, by_kind), "says": _wording(rows.column)}
        labels: list[str] = []
        for row in (rows.first, rows.second):
            label = _label(rows.benchmark, row)
            labels.append(label)
            arm = arms.setdefault(label, {"label": label, "contender": _subject(row), "metrics": {}})
            by_repeat = _by_repeat(row, rows.column.name)
            arm["metrics"][metric] = {"by_repeat": {str(repeat): value for repeat, value in by_repeat.items()}}
        block = point_in_words(verdict["point"])
        first_label, second_label = labels
        verdicts.append({**verdict, "metric": metric, "block": block, "first": first_label, "second": second_label})
    return {
        "study": "bench",
        "metrics": metrics,
        "arms": list(arms.values()),
        "verdicts": verdicts,
        "statistics": judgement["statistics"],
    }


def _repeats(record: Mapping[str, Any]) -> int:
    """The largest number of repeats of any cell."""
    rows = [row for part in record.get("parts", [record]) for row in part["rows"]]
    return max((repeat["repeat"] for row in rows for repeat in row["repeats"]), default=0)


def _metric_name(rows: ComparedRows, by_kind: bool) -> str:
    """The name of the compared figure in the comparison."""
    if by_kind:
        return RATES if _is_rate(rows.column) else TIMES
    return f"{rows.benchmark} {rows.column.name}"


def _title(record: Mapping[str, Any], rows: ComparedRows, by_kind: bool) -> str:
    """The title above the ratios of a figure."""
    if by_kind:
        return _metric_name(rows, by_kind)
    return rows.benchmark if "parts" in record else rows.column.title


def _label(benchmark: str, row: Row) -> str:
    """The label of an arm: a transport at a point of a benchmark."""
    return f"{benchmark}, {_subject(row)}, {point_in_words(_point_of_both(row))}"


def point_in_words(point: Mapping[str, Any]) -> str:
    """A point's values with their units.

    For example: 64 B, 4 pairs
    """
    return ", ".join(value_in_words(name, value) for name, value in point.items())
