"""The statistics of claims: ratios of figures that benchmarks and trials measured in the same repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange_simulation.launching.record.noise import noise_share
from exchange_simulation.launching.record.noise_summary import NoiseSummary
from exchange_simulation.messaging.measurements import figures_with_usage
from exchange_simulation.messaging.measuring import COMPLETE
from exchange_simulation.messaging.point import LOCAL, NETWORK, networks_of
from exchange_simulation.papers.claims import PartRecords, Statistic
from exchange_simulation.papers.readings import NOTHING, ByRepeat, FigureReading
from transports.registry import has_broker

Point = dict[str, Any]
"""Values of a cell's point; `transport` is its transport as it was typed."""
Read = Callable[[Record], FigureReading]
"""Reads a figure from the record of one part."""


def figure_at(figure: str, **point: Any) -> Read:
    """Read a benchmark's figure at the one cell with these values."""

    def read(record: Record) -> FigureReading:
        rows = list(_rows(record, point))
        return FigureReading(_values(rows[0], figure), _noise(record, rows[:1])) if rows else NOTHING

    return read


def figure_at_highest(x: str, figure: str, **point: Any) -> Read:
    """Read a benchmark's figure at the one cell with these values whose value of `x` is the highest measured."""

    def read(record: Record) -> FigureReading:
        row = max(_rows(record, point), key=lambda row: row["point"][x], default=None)
        return FigureReading(_values(row, figure), _noise(record, [row])) if row else NOTHING

    return read


def largest(figure: str, **point: Any) -> Read:
    """Read the largest value of a benchmark's figure over all cells with these values, as a peak is read."""
    return _over_cells(figure, point, max)


def smallest_ratio(figure: str, name: str, above: str | int, below: str | int, **point: Any) -> Read:
    """Read the smallest ratio of a figure between cells that differ in one value of their points alone.

    `name` is that value's name: it is `above` in the cells above the fraction, and `below` in the others. All cells
    have the values of `point`.
    """

    def read(record: Record) -> FigureReading:
        rows_above = list(_rows(record, {**point, name: above}))
        rows_below = list(_rows(record, {**point, name: below}))
        rows = [*rows_above, *rows_below]
        cells = grouped(rows, lambda row: repr({key: row["point"][key] for key in row["point"] if key != name}))
        ratios: list[ByRepeat] = []
        for pair in cells.values():
            if len(pair) == 2:
                numerators, denominators = (_values(row, figure) for row in pair)
                shared = numerators.keys() & denominators.keys()
                ratios.append({repeat: numerators[repeat] / denominators[repeat] for repeat in shared})
        if not ratios:
            return NOTHING
        measured_everywhere = set.intersection(*(set(ratios_of_cell) for ratios_of_cell in ratios))
        least = {repeat: min(ratios_of_cell[repeat] for ratios_of_cell in ratios) for repeat in measured_everywhere}
        return FigureReading(least, [*_noise(record, rows_below), *_noise(record, rows_above)])

    return read


def undisturbed(read: Read) -> Read:
    """Read a figure that other work of the machine cannot change, as a count of messages that a plan gives."""

    def read_without_noise(record: Record) -> FigureReading:
        reading = read(record)
        return FigureReading(reading.values, missing=reading.missing)

    return read_without_noise


def _over_cells(figure: str, point: Point, choose: Callable[[list[float]], float]) -> Read:
    def read(record: Record) -> FigureReading:
        rows = list(_rows(record, point))
        values_by_cell = [_values(row, figure) for row in rows]
        if not values_by_cell:
            return NOTHING
        measured_everywhere = set.intersection(*(set(values) for values in values_by_cell))
        values = {repeat: choose([values[repeat] for values in values_by_cell]) for repeat in measured_everywhere}
        return FigureReading(values, _noise(record, rows))

    return read


def _rows(record: Record, point: Point) -> Iterator[Record]:
    """Yield the rows of the cells with these values.

    A transport that is not named is that of the first row: the paper's own, beside further ones. A network that is not
    named is loopback, or the first if loopback was not measured.
    """
    rows = record["rows"]
    if not rows:
        return
    networks = networks_of(record["settings"])
    usual_network = LOCAL if LOCAL in networks else networks[0]
    wanted = {"transport": rows[0]["transport"], NETWORK: usual_network, **point}
    for row in rows:
        values = {NETWORK: networks[0], **row["point"], "transport": row["transport"]}
        if all(values.get(name) == value for name, value in wanted.items()):
            yield row


def _values(row: Record, figure: str) -> ByRepeat:
    values: dict[int, float] = {}
    for repeat in row["repeats"]:
        if repeat["status"] != COMPLETE:
            continue
        figures = figures_with_usage(repeat, has_broker(row["transport"]))
        if figures.get(figure):  # a ratio needs a value above 0
            values[repeat["repeat"]] = float(figures[figure])
    return values


def _noise(record: Record, rows: Sequence[Record]) -> list[NoiseSummary]:
    """The noise of all measurements of these cells that count, as one side of a ratio; nothing with --keep-noisy."""
    if not record.get("redo_noisy"):
        return []
    repeats = [repeat for row in rows for repeat in row["repeats"] if repeat["status"] == COMPLETE]
    return [NoiseSummary.of_shares(noise_share(repeat) for repeat in repeats)]


def larger_of(first: Read, second: Read) -> Read:
    """Read the larger of two figures, in each repeat that measured both."""

    def read(record: Record) -> FigureReading:
        readings = [first(record), second(record)]
        firsts, seconds = (reading.values for reading in readings)
        values = {repeat: max(firsts[repeat], seconds[repeat]) for repeat in firsts.keys() & seconds.keys()}
        return FigureReading(values, [side for reading in readings for side in reading.noise])

    return read


def if_as_long_as(seconds: float, read: Read, why: str) -> Read:
    """Read a benchmark's figure only if `--duration` was `seconds` or more; `why`: why less says nothing."""

    def read_of_long_runs(record: Record) -> FigureReading:
        if record["settings"]["duration_s"] < seconds:
            return FigureReading({}, missing=why)
        return read(record)

    return read_of_long_runs


def sum_of(*reads: Read) -> Read:
    """Read the sum of several figures, in each repeat that measured all of them."""

    def read(record: Record) -> FigureReading:
        readings = [read_part(record) for read_part in reads]
        measured_everywhere = set.intersection(*(set(reading.values) for reading in readings))
        values = {repeat: sum(reading.values[repeat] for reading in readings) for repeat in measured_everywhere}
        return FigureReading(values, [side for reading in readings for side in reading.noise])

    return read


def quotient(above: Read, below: Read) -> Read:
    """Read `above` over `below`, which are above zero, in each repeat that measured both."""

    def read(record: Record) -> FigureReading:
        numerator = above(record)
        denominator = below(record)
        shared = numerator.values.keys() & denominator.values.keys()
        values = {repeat: numerator.values[repeat] / denominator.values[repeat] for repeat in shared}
        return FigureReading(values, [*numerator.noise, *denominator.noise])

    return read


def scaled(read: Read, factor: float) -> Read:
    """Read the same figure, times `factor`."""

    def read_scaled(record: Record) -> FigureReading:
        reading = read(record)
        return FigureReading({repeat: factor * value for repeat, value in reading.values.items()}, reading.noise)

    return read_scaled


def metric_of(metric: str, orders_per_s: float, *, nagle: bool, network: str = "", transport: str = "") -> Read:
    """Read a metric of the exchange's trial at a rate, with Nagle's algorithm off or on at the broker.

    The arm is the first with these settings: without `transport`, that over the paper's own. Without `network` it is
    that on loopback, or on the first network if loopback was not measured.
    """

    def read(record: Record) -> FigureReading:
        for arm in _arms_on(record, network):
            settings = arm["settings"]
            is_wanted = settings["orders_per_s"] == orders_per_s and bool(settings["nagle"]) == nagle
            is_over_transport = not transport or settings["transport"] == transport
            if is_wanted and is_over_transport and metric in arm["metrics"]:
                return FigureReading(_values_of_arm(arm, metric), _noise_of_arm(record, arm))
        return NOTHING

    return read


def largest_metric(metrics: Sequence[str], *, nagle: bool) -> Read:
    """Read the largest of these metrics at any rate of the exchange's trial, on loopback."""

    def read(record: Record) -> FigureReading:
        arms = [arm for arm in _arms_on(record, "") if bool(arm["settings"]["nagle"]) == nagle]
        values = [_values_of_arm(arm, metric) for arm in arms for metric in metrics if metric in arm["metrics"]]
        if not values:
            return NOTHING
        measured_everywhere = set.intersection(*(set(of_arm) for of_arm in values))
        most = {repeat: max(of_arm[repeat] for of_arm in values) for repeat in measured_everywhere}
        noise = NoiseSummary.together(side for arm in arms for side in _noise_of_arm(record, arm))
        return FigureReading(most, [noise])

    return read


def _arms_on(record: Record, network: str) -> list[Record]:
    """Return the arms on the network; without one, those on loopback, or on the first network without loopback."""
    networks = [arm["settings"].get(NETWORK) or LOCAL for arm in record["arms"]]
    wanted = network or (LOCAL if LOCAL in networks else networks[0])
    return [arm for arm, of_arm in zip(record["arms"], networks, strict=True) if of_arm == wanted]


def _values_of_arm(arm: Record, metric: str) -> ByRepeat:
    by_repeat = arm["metrics"][metric]["by_repeat"]
    return {int(repeat): float(value) for repeat, value in by_repeat.items() if value}


def _noise_of_arm(record: Record, arm: Record) -> list[NoiseSummary]:
    """The noise of an arm's runs, as one side of a ratio; nothing with --keep-noisy."""
    if not record.get("redo_noisy"):
        return []
    return [NoiseSummary.of_shares(run.get("share_of_all_cpus") for run in arm["runs"])]


def constant(value: float) -> Read:
    """Read a number that the paper prints, in every repeat."""

    def read(record: Record) -> FigureReading:
        repeats = range(1, int(_repeats_of(record)) + 1)
        return FigureReading(dict.fromkeys(repeats, value))

    return read


def _repeats_of(record: Record) -> int:
    if "arms" in record:
        return int(record["repeats"])
    return int(record["settings"]["repeats"])


def ratio(words: str, part: str, above: Read, below: Read, *, part_below: str = "") -> Statistic:
    """A statistic: `above` over `below`, from the record of `part`; `below` from that of `part_below`, if given."""

    def read(records: PartRecords) -> FigureReading:
        lower_part = part_below or part
        if part not in records or lower_part not in records:
            return NOTHING
        numerator = above(records[part])
        denominator = below(records[lower_part])
        numerators = numerator.values
        denominators = denominator.values
        shared = sorted(numerators.keys() & denominators.keys())
        ratios = {repeat: numerators[repeat] / denominators[repeat] for repeat in shared if denominators[repeat] > 0}
        missing = numerator.missing or denominator.missing
        return FigureReading(ratios, [*numerator.noise, *denominator.noise], missing)

    return Statistic(words, read)


def straightness(words: str, part: str, figure: str, x: str, at: tuple[float, float, float], **point: Any) -> Statistic:
    """A statistic: a figure at the middle of `at`, over the height of the line between its values at both ends there.

    1 for a straight line, also for a flat one, so a claim on a rise needs a second one; less if the curve bends
    upwards. `x` is the point's value along which the figure goes. A ratio of two heights has an interval like theirs;
    a ratio of two rises would have none if the curve hardly rises.
    """
    low, middle, high = at
    share = (middle - low) / (high - low)

    def line_at_middle(record: Record) -> FigureReading:
        low_end = figure_at(figure, **{x: low}, **point)(record)
        high_end = figure_at(figure, **{x: high}, **point)(record)
        lows = low_end.values
        highs = high_end.values
        line = {repeat: lows[repeat] + share * (highs[repeat] - lows[repeat]) for repeat in lows.keys() & highs.keys()}
        return FigureReading(line, [*low_end.noise, *high_end.noise])

    return ratio(words, part, figure_at(figure, **{x: middle}, **point), line_at_middle)


def with_rise_of(start: Read, low: Read, high: Read) -> Read:
    """Read `start` plus the difference from `low` to `high`: where a figure would be that rises as these do."""

    def read(record: Record) -> FigureReading:
        readings = [start(record), low(record), high(record)]
        starts, lows, highs = (reading.values for reading in readings)
        measured_everywhere = starts.keys() & lows.keys() & highs.keys()
        values = {repeat: starts[repeat] + highs[repeat] - lows[repeat] for repeat in measured_everywhere}
        return FigureReading(values, [side for reading in readings for side in reading.noise])

    return read
