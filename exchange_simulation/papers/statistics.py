"""The statistics of claims: ratios of figures that benchmarks and trials measured in the same repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import truediv
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
NO_REPEAT_LEFT = "no repeat has figures of all cells that it compares"
"""Why nothing can be told although the cells were measured: for example, no reply came in one of them."""


def figure_at(figure: str, **point: Any) -> Read:
    """Read a benchmark's figure at the one cell with these values."""

    def read(record: Record) -> FigureReading:
        rows = list(_rows(record, point))
        return _largest_of_rows(record, rows[:1], figure)

    return read


def figure_at_highest(x: str, figure: str, *, above: float, **point: Any) -> Read:
    """Read a benchmark's figure at the one cell with these values whose value of `x` is the highest that was measured.

    Nothing is read if no value of `x` above `above` was measured.
    """

    def read(record: Record) -> FigureReading:
        rows = [row for row in _rows(record, point) if row["point"][x] > above]
        highest = max(rows, key=lambda row: row["point"][x], default=None)
        return _largest_of_rows(record, [highest] if highest else [], figure)

    return read


def largest(figure: str, **point: Any) -> Read:
    """Read the largest value of a benchmark's figure over all cells with these values, as a peak is read."""

    def read(record: Record) -> FigureReading:
        return _largest_of_rows(record, list(_rows(record, point)), figure)

    return read


def smallest_ratio(figure: str, name: str, above: str | int, below: str | int, **point: Any) -> Read:
    """Read the smallest ratio of a figure between cells that differ in one value of their points alone.

    `name` is that value's name: it is `above` in the cells above the fraction, and `below` in the others. All cells
    have the values of `point`.
    """

    def read(record: Record) -> FigureReading:
        rows_above = list(_rows(record, {**point, name: above}))
        rows_below = list(_rows(record, {**point, name: below}))
        cells = grouped(
            [*rows_above, *rows_below],
            lambda row: repr({key: row["point"][key] for key in row["point"] if key != name}),
        )
        if not cells or any(len(pair) != 2 for pair in cells.values()):
            return NOTHING
        ratios: list[ByRepeat] = []
        for row_above, row_below in cells.values():
            numerators = _values(row_above, figure)
            denominators = _values(row_below, figure)
            ratios.append(_in_shared_repeats(_over, [numerators, denominators]))
        least = _in_shared_repeats(min, ratios)
        noise = [*_noise(record, rows_below), *_noise(record, rows_above)]
        return FigureReading(least, noise, missing="" if least else NO_REPEAT_LEFT)

    return read


def undisturbed(read: Read) -> Read:
    """Read a figure that other work of the machine cannot change, as a count of messages that a plan gives."""

    def read_without_noise(record: Record) -> FigureReading:
        reading = read(record)
        return FigureReading(reading.values, missing=reading.missing)

    return read_without_noise


def _largest_of_rows(record: Record, rows: Sequence[Record], figure: str) -> FigureReading:
    """The largest of the rows' figures, in each repeat that measured all of them."""
    if not rows:
        return NOTHING
    values = _in_shared_repeats(max, [_values(row, figure) for row in rows])
    return FigureReading(values, _noise(record, rows), missing="" if values else NO_REPEAT_LEFT)


def _in_shared_repeats(compute: Callable[[Sequence[float]], float], values: Sequence[ByRepeat]) -> ByRepeat:
    """What `compute` makes of several figures, in each repeat that measured all of them."""
    measured_everywhere = set.intersection(*(set(by_repeat) for by_repeat in values))
    return {repeat: compute([by_repeat[repeat] for by_repeat in values]) for repeat in sorted(measured_everywhere)}


def _over(values: Sequence[float]) -> float:
    """The first of two values over the second."""
    above, below = values
    return above / below


def _rows(record: Record, point: Mapping[str, Any]) -> Iterator[Record]:
    """Yield the rows of the cells with these values.

    A transport that is not named is the paper's own, the first of the command; further ones stand beside. A network
    that is not named, or is empty, is loopback, or the first if loopback was not measured.
    """
    networks = networks_of(record["settings"])
    usual_network = LOCAL if LOCAL in networks else networks[0]
    network = point.get(NETWORK) or usual_network
    wanted = {"transport": record["settings"]["transport"][0], **point, NETWORK: network}
    for row in record["rows"]:
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


def combined(compute: Callable[..., float], *reads: Read) -> Read:
    """Read what `compute` makes of several figures, in each repeat that measured all of them."""

    def read(record: Record) -> FigureReading:
        readings = [read_figure(record) for read_figure in reads]
        values = _in_shared_repeats(lambda figures: compute(*figures), [reading.values for reading in readings])
        noise = [side for reading in readings for side in reading.noise]
        return FigureReading(values, noise, _why_missing(readings, values))

    return read


def _why_missing(readings: Sequence[FigureReading], values: ByRepeat) -> str:
    """Why no repeat has all of these figures; empty if one has, or if a figure was not measured at all."""
    if values or any(not reading.values and not reading.missing for reading in readings):
        return ""
    return next((reading.missing for reading in readings if reading.missing), NO_REPEAT_LEFT)


def larger_of(first: Read, second: Read) -> Read:
    """Read the larger of two figures."""
    return combined(max, first, second)


def sum_of(*reads: Read) -> Read:
    """Read the sum of several figures."""
    return combined(lambda *values: sum(values), *reads)


def quotient(above: Read, below: Read) -> Read:
    """Read `above` over `below`, which are above zero."""
    return combined(truediv, above, below)


def scaled(read: Read, factor: float) -> Read:
    """Read the same figure, times `factor`."""
    return combined(lambda value: factor * value, read)


def with_rise_of(start: Read, low: Read, high: Read) -> Read:
    """Read `start` plus the difference from `low` to `high`.

    For example: TCP's latency at 64 KiB plus the overhead that ZeroMQ has over TCP at 64 B.
    """
    return combined(lambda at_start, at_low, at_high: at_start + at_high - at_low, start, low, high)


def if_as_long_as(seconds: float, read: Read, why: str) -> Read:
    """Read a benchmark's figure only if `--duration` was `seconds` or more; `why`: why less says nothing."""

    def read_of_long_runs(record: Record) -> FigureReading:
        if record["settings"]["duration_s"] < seconds:
            return FigureReading({}, missing=why)
        return read(record)

    return read_of_long_runs


def metric_of(metric: str, orders_per_s: float, *, nagle: bool, network: str = "", transport: str = "") -> Read:
    """Read a metric of the exchange's trial at a rate, with Nagle's algorithm off or on at the broker.

    Without `transport` it is the paper's own, without `network` it is loopback, as `_arms_on` has both.
    """

    def read(record: Record) -> FigureReading:
        for arm in _arms_on(record, network, transport):
            settings = arm["settings"]
            if settings["orders_per_s"] == orders_per_s and bool(settings["nagle"]) == nagle:
                values = _values_of_arm(arm, metric)
                return FigureReading(values, _noise_of_arm(record, arm), "" if values else NO_REPEAT_LEFT)
        return NOTHING

    return read


def largest_metric(metrics: Sequence[str], *, nagle: bool, network: str = "") -> Read:
    """Read the largest of these metrics at any rate of the exchange's trial, over the paper's own transport."""

    def read(record: Record) -> FigureReading:
        arms = [arm for arm in _arms_on(record, network, "") if bool(arm["settings"]["nagle"]) == nagle]
        if not arms:
            return NOTHING
        most = _in_shared_repeats(max, [_values_of_arm(arm, metric) for arm in arms for metric in metrics])
        noise = NoiseSummary.together(side for arm in arms for side in _noise_of_arm(record, arm))
        return FigureReading(most, [noise], "" if most else NO_REPEAT_LEFT)

    return read


def _arms_on(record: Record, network: str, transport: str) -> list[Record]:
    """Return the arms on this network, over this transport, of which some run was made.

    Without a network those on loopback, or on the first network if loopback was not measured. Without a transport those
    over the paper's own, the first of the plan; further ones stand beside.
    """
    arms = record["arms"]
    networks = [arm["settings"].get(NETWORK) or LOCAL for arm in arms]
    wanted_network = network or (LOCAL if LOCAL in networks else networks[0])
    wanted_transport = transport or arms[0]["settings"]["transport"]
    return [
        arm
        for arm, of_arm in zip(arms, networks, strict=True)
        if of_arm == wanted_network
        and arm["settings"]["transport"] == wanted_transport
        and (arm["runs"] or arm["excluded"])
    ]


def _values_of_arm(arm: Record, metric: str) -> ByRepeat:
    """The metric in each repeat of the arm; empty if no run of the arm has it."""
    if metric not in arm["metrics"]:
        return {}
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
        ratios = _in_shared_repeats(_over, [_above_zero(numerator.values), _above_zero(denominator.values)])
        missing = _why_missing([numerator, denominator], ratios)
        return FigureReading(ratios, [*numerator.noise, *denominator.noise], missing)

    return Statistic(words, read)


def _above_zero(by_repeat: ByRepeat) -> ByRepeat:
    """The repeats whose value is above zero, as a ratio needs: a curve that was put together may fall below."""
    return {repeat: value for repeat, value in by_repeat.items() if value > 0}


def figure_of(words: str, part: str, read: Read) -> Statistic:
    """A statistic that a figure of `part` is already, such as a smallest ratio."""

    def read_part(records: PartRecords) -> FigureReading:
        return read(records[part]) if part in records else NOTHING

    return Statistic(words, read_part)


def straightness(words: str, part: str, figure: str, x: str, at: tuple[float, float, float], **point: Any) -> Statistic:
    """A statistic: a figure at the middle of `at`, over the height of the line between its values at both ends there.

    1 for a straight line, also for a flat one, so a claim on a rise needs a second one; less if the curve bends
    upwards. `x` is the point's value along which the figure goes. A ratio of two heights has an interval like theirs;
    a ratio of two rises would have none if the curve hardly rises.
    """
    low, middle, high = (figure_at(figure, **{x: value}, **point) for value in at)
    share = (at[1] - at[0]) / (at[2] - at[0])
    line_at_middle = combined(lambda at_low, at_high: at_low + share * (at_high - at_low), low, high)
    return ratio(words, part, middle, line_at_middle)
