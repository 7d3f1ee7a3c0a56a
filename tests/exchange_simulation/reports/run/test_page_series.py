"""What the figures draw, compared with the spool they are drawn from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from synthetic_run import SyntheticRun

from exchange.measurements import BUCKETS, LogBuckets, Meter, bucket_of
from exchange.records import NEEDED_BY_FIGURES
from exchange.seconds import merged
from exchange_simulation.reports.drawing.canvas import page_style
from exchange_simulation.reports.drawing.colours import TRANSPORT_COLOURS
from exchange_simulation.reports.run.completion import (
    by_percentile,
    completion_lines,
    nines_ticks,
    over_time,
    percentile_curves,
)
from exchange_simulation.reports.run.heat import heat
from exchange_simulation.reports.run.load import cpu, line_of, meter_dots, rates
from exchange_simulation.reports.run.run_folder import Record, RunFolder, read_run_folder
from exchange_simulation.reports.run.seconds import RunSeconds


def completion(second: int, *values_us: int, last_order: bool = False) -> Record:
    ns = np.array(values_us) * 1_000
    counts = np.bincount(bucket_of(ns), minlength=BUCKETS)
    buckets = LogBuckets(counts, sum_ns=int(ns.sum()), min_ns=int(ns.min()), max_ns=int(ns.max()))
    about = {"second": second, "clock": "handed_over", "last_order": last_order}
    return {"payload": {**about, **buckets.sparse()}}


def counted(second: int, orders: int, at_s: float) -> Record:
    counts = dict.fromkeys(("orders_sent", "orders_answered", "messages_received"), orders)
    about = {"kind": "traffic", "source": "gateway", "wall_ns": int(at_s * 1e9), "monotonic_ns": int(at_s * 1e9)}
    return {**about, "payload": {"second": second, **counts}}


def process(second: int, cpu_s: float, at_s: float, source: str = "engine") -> Record:
    about = {"kind": "process", "source": source, "wall_ns": 0, "monotonic_ns": int(at_s * 1e9)}
    return {**about, "payload": {"second": second, "cpu_s": cpu_s}}


def seconds_of(*records: Record) -> RunSeconds:
    spool = {kind: [r for r in records if r.get("kind") == kind] for kind in NEEDED_BY_FIGURES}
    return RunSeconds(RunFolder({}, spool))


def test_merged_seconds_give_the_figures_of_run_json(complete_run: Path) -> None:
    folder = read_run_folder(complete_run)
    due = [r for r in folder.spool["completion"] if r["payload"]["clock"] == "due"]
    assert merged(record["payload"] for record in due).figures_us() == pytest.approx(folder.run["completion_us"]["due"])


def test_the_curve_passes_through_run_jsons_percentiles(complete_run: Path) -> None:
    folder = read_run_folder(complete_run)
    curve = percentile_curves(folder.spool["completion"], warm_up_s=0)["handed_over"]
    figures = folder.run["completion_us"]["handed_over"]
    read_off = np.interp([1.0, 2.0, 3.0], curve.x, curve.y)
    assert read_off == pytest.approx([figures["p90"], figures["p99"], figures["p999"]], rel=0.01)


def test_the_curve_leaves_out_the_warm_up_and_the_last_order() -> None:
    completions = [
        completion(0, 9_000),
        completion(1, 9_000),
        completion(2, 100, 100),
        completion(3, 9_000, last_order=True),
    ]
    curve = percentile_curves(completions, warm_up_s=1.5)["handed_over"]
    assert curve.y == pytest.approx([100] * len(curve.y), rel=0.003)


def test_a_second_without_an_answer_is_a_gap() -> None:
    lines = completion_lines([completion(0, 100), completion(2, 300)], point_s=1, clock="handed_over")
    assert np.isnan(lines["p50"].y).tolist() == [False, True, False]
    assert lines["max"].x.tolist() == [0.5, 1.5, 2.5]


@pytest.mark.parametrize(("last", "points"), [([900], 2), ([900] * 3, 3)])
def test_a_last_second_of_few_orders_is_no_point(last: list[int], points: int) -> None:
    completions = [completion(0, *[100] * 20), completion(1, *[100] * 20), completion(2, *last)]
    assert len(completion_lines(completions, point_s=1, clock="handed_over")["p50"].y) == points


@pytest.mark.parametrize("slowest_us", [7_770, 7_785, 7_800])  # wherever in its bucket
def test_the_slowest_order_is_exact(slowest_us: int) -> None:
    lines = completion_lines([completion(0, 100, 101, slowest_us)], point_s=1, clock="handed_over")
    assert lines["max"].y.tolist() == [slowest_us]


def test_several_seconds_in_a_point_are_merged_and_not_averaged() -> None:
    lines = completion_lines([completion(0, *[100] * 9), completion(1, 1_000)], point_s=2, clock="handed_over")
    assert lines["p50"].y == pytest.approx([100], rel=0.003)
    assert lines["max"].y.tolist() == [1_000.0]


def test_the_last_second_has_the_rate_of_the_part_that_was_run() -> None:
    line = line_of(seconds_of(counted(0, 8_000, 1.0), counted(1, 4_800, 1.6)), "orders_per_s", point_s=1)
    assert line is not None
    assert line.y.tolist() == pytest.approx([8_000.0, 8_000.0])


def test_a_moment_at_the_end_has_no_rate() -> None:
    line = line_of(seconds_of(counted(0, 8_000, 1.0), counted(1, 12, 1.1)), "orders_per_s", point_s=1)
    assert line is not None
    assert line.y.tolist() == [8_000.0]


def test_an_unrecorded_second_of_traffic_is_a_gap() -> None:
    line = line_of(seconds_of(counted(0, 8_000, 1.0), counted(2, 16_000, 3.0)), "orders_per_s", point_s=1)
    assert line is not None
    assert np.isnan(line.y).tolist() == [False, True, False]
    assert line.y[2] == 8_000


def test_several_seconds_in_a_point_have_the_mean_of_their_rates() -> None:
    records = [counted(0, 4_000, 1.0), counted(1, 8_000, 2.0), counted(2, 1_000, 3.0)]
    line = line_of(seconds_of(*records), "orders_per_s", point_s=2)
    assert line is not None
    assert (line.x.tolist(), line.y.tolist()) == ([1.0, 3.0], [6_000, 1_000])


def test_cores_are_cpu_time_over_the_components_own_clock() -> None:
    line = line_of(seconds_of(process(0, 0.5, 10.0), process(1, 1.5, 12.0)), "engine_cpu_cores", point_s=1)
    assert line is not None
    assert line.y.tolist() == [0.5, 0.5]


def test_cores_of_several_engines_are_added_up() -> None:
    other = [process(0, 0.5, 7.0, "engine.2"), process(1, 0.75, 8.0, "engine.2")]
    records = [process(0, 0.5, 10.0), *other, process(1, 1.5, 12.0), process(2, 2.0, 13.0)]
    line = line_of(seconds_of(*records), "engine_cpu_cores", point_s=1)
    assert line is not None
    assert (line.x.tolist(), line.y.tolist()) == ([0.5, 1.5, 2.5], [1.0, 0.75, 0.5])


@pytest.mark.parametrize(("last", "shown"), [(4, False), (900, True)])
def test_the_times_of_a_last_moment_of_few_orders_are_not_shown(last: int, shown: bool) -> None:
    records = [
        {"kind": "completion", **completion(second, *[100] * n)} for second, n in enumerate([8_000, 8_000, last])
    ]
    seconds = seconds_of(*records)
    row = seconds.table_row(2)
    assert ("handed_over_p50_us" in row) is shown
    assert "handed_over_p50_us" in seconds.table_row(1)


def test_readings_of_several_gateways_are_added_up() -> None:
    def gateway_reading(source: str, at_s: float, rate_per_s: int) -> Record:
        return {"source": source, "wall_ns": at_s * 1e9, "payload": {"meter": 1, "rate_per_s": rate_per_s}}

    readings = [
        gateway_reading("gateway", 1.0, 10),
        gateway_reading("gateway.2", 1.5, 20),
        gateway_reading("gateway.2", 2.5, 30),
        gateway_reading("gateway", 2, 40),
    ]
    dots = meter_dots(readings, sampling_interval=10)[Meter.GATEWAY_ORDERS_SENT]
    assert (dots.x.tolist(), dots.y.tolist()) == ([1.25, 2.25], [30, 70])


def test_an_interval_too_short_for_the_cpu_clock_is_left_out() -> None:
    records = [process(0, 0.5, 1.0), process(1, 1.0, 2.0), process(2, 1.01, 2.02)]
    line = line_of(seconds_of(*records), "engine_cpu_cores", point_s=1)
    assert line is not None
    assert line.y.tolist() == [0.5, 0.5]


def test_meters_start_with_the_first_order(tmp_path: Path) -> None:
    folder = read_run_folder(SyntheticRun(seconds=5).write(tmp_path / "run"))
    dots = meter_dots(folder.spool["throughput"], sampling_interval=10_000)
    assert dots[Meter.GATEWAY_ORDERS_SENT].x == pytest.approx([1.25, 2.5, 3.75, 5.0])
    assert dots[Meter.ENGINE_MESSAGES_SENT].y == pytest.approx([8_000 * 2.43] * 4)


@pytest.mark.parametrize(
    ("orders", "expected"),
    [
        (80_000, ["50", "90", "99", "99.9", "99.99", "max"]),
        (1_000, ["50", "90", "99", "max"]),
        (1, ["max"]),
    ],
)
def test_percentiles_are_marked_up_to_what_the_count_carries(orders: int, expected: list[str]) -> None:
    assert list(nines_ticks(float(np.log10(orders))).values()) == expected


def test_the_marks_of_a_hundred_million_orders_leave_each_other_room() -> None:
    places = list(nines_ticks(8.0))
    assert np.diff(places)[2:].min() >= 0.1 * 8
    assert places[-1] == 8


def test_the_charts_over_the_run_share_their_axes(complete_run: Path) -> None:
    folder = read_run_folder(complete_run)
    with page_style():
        drawn = [chart for chart_of in (over_time, heat, rates, cpu) if (chart := chart_of(folder))]
    assert len({chart.axes.get_xlim() for chart in drawn}) == 1
    lines, cells = drawn[:2]
    assert np.log10(lines.axes.get_ylim()) == pytest.approx(cells.axes.get_ylim())


@pytest.mark.parametrize("transport", ["zeromq", "amqp", "tcp"])
def test_a_run_is_drawn_in_its_transport_s_colour(transport: str, complete_run: Path) -> None:
    whole = read_run_folder(complete_run)
    folder = RunFolder({**whole.run, "settings": {**whole.run["settings"], "transport": transport}}, whole.spool)
    colour = TRANSPORT_COLOURS[transport]
    with page_style():
        charts = [by_percentile(folder), over_time(folder), heat(folder)]
    curve, lines, cells = charts
    assert curve is not None
    assert lines is not None
    assert cells is not None
    assert colour in {line.get_color() for line in curve.axes.lines}
    assert colour in {line.get_color() for line in lines.axes.lines}
    assert cells.tint == colour
