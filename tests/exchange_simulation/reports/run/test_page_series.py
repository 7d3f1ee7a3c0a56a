"""The lines of a run's figures, compared with the spool from which they are drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from synthetic_run import SyntheticRun

from exchange.measurements import BUCKETS, LogBuckets, bucket_of
from exchange.meters import Meter
from exchange.records import NEEDED_BY_FIGURES
from exchange.seconds import merged
from exchange_simulation.reports.drawing.canvas import page_style
from exchange_simulation.reports.drawing.chart import Line
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
from exchange_simulation.reports.run.run_folder import Record, RunFolder, read_run_folder, seconds_per_point
from exchange_simulation.reports.run.seconds import RunSeconds


def completion(second: int, *values_us: int, last_order: bool = False) -> Record:
    ns = np.array(values_us) * 1_000
    counts = np.bincount(bucket_of(ns), minlength=BUCKETS)
    buckets = LogBuckets(counts, sum_ns=int(ns.sum()), min_ns=int(ns.min()), max_ns=int(ns.max()))
    head = {"second": second, "clock": "handed_over", "last_order": last_order}
    return {"kind": "completion", "payload": {**head, **buckets.sparse()}}


def traffic(second: int, orders: int, at_s: float) -> Record:
    counts = {"orders_sent": orders, "orders_answered": orders, "messages_received": orders}
    head = {"kind": "traffic", "source": "gateway", "wall_ns": int(at_s * 1e9), "monotonic_ns": int(at_s * 1e9)}
    return {**head, "payload": {"second": second, **counts}}


def process(second: int, cpu_s: float, at_s: float, source: str = "engine") -> Record:
    head = {"kind": "process", "source": source, "wall_ns": 0, "monotonic_ns": int(at_s * 1e9)}
    return {**head, "payload": {"second": second, "cpu_s": cpu_s}}


def seconds_of(*records: Record) -> RunSeconds:
    spool: dict[str, list[Record]] = {kind: [] for kind in NEEDED_BY_FIGURES}
    for record in records:
        spool[record["kind"]].append(record)
    return RunSeconds(RunFolder({}, spool))


def drawn_line(figure: str, *records: Record, point_s: int = 1) -> Line:
    """Return the line of a figure over the seconds of these records."""
    line = line_of(seconds_of(*records), figure, point_s)
    assert line is not None
    return line


def test_merged_seconds_give_the_figures_of_run_json(complete_run: Path) -> None:
    folder = read_run_folder(complete_run)
    payloads = [record["payload"] for record in folder.spool["completion"]]
    from_due = [payload for payload in payloads if payload["clock"] == "due"]
    assert merged(from_due).figures_us() == pytest.approx(folder.run["completion_us"]["due"])


def test_the_curve_passes_through_run_jsons_percentiles(complete_run: Path) -> None:
    folder = read_run_folder(complete_run)
    curve = percentile_curves(folder.spool["completion"], warm_up_s=0)["handed_over"]
    figures = folder.run["completion_us"]["handed_over"]
    for nines, percentile in ((1.0, "p90"), (2.0, "p99"), (3.0, "p999")):
        assert np.interp(nines, curve.x, curve.y) == pytest.approx(figures[percentile], rel=0.01)


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


@pytest.mark.parametrize(("orders_of_last_second", "points"), [(1, 2), (3, 3)])
def test_a_last_second_of_few_orders_is_no_point(orders_of_last_second: int, points: int) -> None:
    completions = [
        completion(0, *[100] * 20),
        completion(1, *[100] * 20),
        completion(2, *[900] * orders_of_last_second),
    ]
    assert len(completion_lines(completions, point_s=1, clock="handed_over")["p50"].y) == points


@pytest.mark.parametrize("slowest_us", [7_770, 7_785, 7_800])  # three places in one bucket
def test_the_slowest_order_is_exact(slowest_us: int) -> None:
    lines = completion_lines([completion(0, 100, 101, slowest_us)], point_s=1, clock="handed_over")
    assert lines["max"].y.tolist() == [slowest_us]


def test_several_seconds_in_a_point_are_merged_and_not_averaged() -> None:
    lines = completion_lines([completion(0, *[100] * 9), completion(1, 1_000)], point_s=2, clock="handed_over")
    assert lines["p50"].y == pytest.approx([100], rel=0.003)
    assert lines["max"].y.tolist() == [1_000.0]


def test_the_last_second_has_the_rate_of_its_part() -> None:
    line = drawn_line("orders_per_s", traffic(0, 8_000, 1.0), traffic(1, 4_800, 1.6))
    assert line.y.tolist() == pytest.approx([8_000.0, 8_000.0])


def test_a_last_second_too_short_for_a_rate_is_no_point() -> None:
    line = drawn_line("orders_per_s", traffic(0, 8_000, 1.0), traffic(1, 12, 1.1))
    assert line.y.tolist() == [8_000.0]


def test_a_second_without_traffic_record_is_a_gap() -> None:
    line = drawn_line("orders_per_s", traffic(0, 8_000, 1.0), traffic(2, 16_000, 3.0))
    assert np.isnan(line.y).tolist() == [False, True, False]
    assert line.y[2] == 8_000


def test_several_seconds_in_a_point_have_the_mean_of_their_rates() -> None:
    records = [traffic(0, 4_000, 1.0), traffic(1, 8_000, 2.0), traffic(2, 1_000, 3.0)]
    line = drawn_line("orders_per_s", *records, point_s=2)
    assert line.x.tolist() == [1.0, 3.0]
    assert line.y.tolist() == [6_000, 1_000]


def test_cores_are_cpu_time_over_the_component_s_own_clock() -> None:
    line = drawn_line("engine_cpu_cores", process(0, 0.5, 10.0), process(1, 1.5, 12.0))
    assert line.y.tolist() == [0.5, 0.5]


def test_cores_of_several_engines_are_added() -> None:
    first = [process(0, 0.5, 10.0), process(1, 1.5, 12.0), process(2, 2.0, 13.0)]
    second = [process(0, 0.5, 7.0, "engine.2"), process(1, 0.75, 8.0, "engine.2")]
    line = drawn_line("engine_cpu_cores", *first, *second)
    assert line.x.tolist() == [0.5, 1.5, 2.5]
    assert line.y.tolist() == [1.0, 0.75, 0.5]


@pytest.mark.parametrize(("orders_of_last_second", "has_times"), [(4, False), (900, True)])
def test_a_last_second_of_few_orders_has_no_times(orders_of_last_second: int, has_times: bool) -> None:
    seconds = seconds_of(
        completion(0, *[100] * 8_000),
        completion(1, *[100] * 8_000),
        completion(2, *[100] * orders_of_last_second),
    )
    assert "handed_over_p50_us" in seconds.table_row(1)
    assert ("handed_over_p50_us" in seconds.table_row(2)) is has_times


def test_readings_of_several_gateways_are_added() -> None:
    def gateway_reading(source: str, at_s: float, rate_per_s: int) -> Record:
        return {"source": source, "wall_ns": at_s * 1e9, "payload": {"meter": 1, "rate_per_s": rate_per_s}}

    readings = [
        gateway_reading("gateway", 1.0, 10),
        gateway_reading("gateway.2", 1.5, 20),
        gateway_reading("gateway.2", 2.5, 30),
        gateway_reading("gateway", 2, 40),
    ]
    dots = meter_dots(readings, sampling_interval=10)[Meter.GATEWAY_ORDERS_SENT]
    assert dots.x.tolist() == [1.25, 2.25]
    assert dots.y.tolist() == [30, 70]


def test_an_interval_too_short_for_the_cpu_clock_is_left_out() -> None:
    line = drawn_line("engine_cpu_cores", process(0, 0.5, 1.0), process(1, 1.0, 2.0), process(2, 1.01, 2.02))
    assert line.y.tolist() == [0.5, 0.5]


def test_meters_start_with_the_first_order(tmp_path: Path) -> None:
    folder = read_run_folder(SyntheticRun(seconds=5).write(tmp_path / "run"))
    dots = meter_dots(folder.spool["throughput"], sampling_interval=10_000)
    assert dots[Meter.GATEWAY_ORDERS_SENT].x == pytest.approx([1.25, 2.5, 3.75, 5.0])
    assert dots[Meter.ENGINE_MESSAGES_SENT].y == pytest.approx([8_000 * 2.43] * 4)


@pytest.mark.parametrize(
    ("orders", "ticks"),
    [
        (80_000, ["50", "90", "99", "99.9", "99.99", "max"]),
        (1_000, ["50", "90", "99", "max"]),
        (1, ["max"]),
    ],
)
def test_the_ticks_of_percentiles_end_at_the_number_of_orders(orders: int, ticks: list[str]) -> None:
    assert list(nines_ticks(float(np.log10(orders))).values()) == ticks


def test_the_ticks_of_a_hundred_million_orders_do_not_overlap() -> None:
    places = list(nines_ticks(8.0))
    distances = np.diff(places)
    assert distances[2:].min() >= 0.1 * 8, "50, 90 and 99 may be closer"
    assert places[-1] == 8


def test_the_charts_over_the_run_share_their_time_axis(complete_run: Path) -> None:
    folder = read_run_folder(complete_run)
    limits = set()
    with page_style():
        for chart_of in (over_time, heat, rates, cpu):
            chart = chart_of(folder)
            assert chart is not None
            limits.add(chart.axes.get_xlim())
    assert len(limits) == 1


def test_the_heat_map_and_the_lines_of_times_share_their_y_axis(complete_run: Path) -> None:
    folder = read_run_folder(complete_run)
    with page_style():
        lines = over_time(folder)
        cells = heat(folder)
    assert lines is not None
    assert cells is not None
    # The heat map is an image on a linear axis of logarithms.
    assert np.log10(lines.axes.get_ylim()) == pytest.approx(cells.axes.get_ylim())


@pytest.mark.parametrize("transport", ["zeromq", "amqp", "tcp"])
def test_a_run_is_drawn_in_its_transport_s_colour(transport: str, complete_run: Path) -> None:
    content = read_run_folder(complete_run)
    settings = {**content.run["settings"], "transport": transport}
    folder = RunFolder({**content.run, "settings": settings}, content.spool)
    colour = TRANSPORT_COLOURS[transport]
    with page_style():
        curve = by_percentile(folder)
        lines = over_time(folder)
        cells = heat(folder)
    assert curve is not None
    assert lines is not None
    assert cells is not None
    assert colour in {line.get_color() for line in curve.axes.lines}
    assert colour in {line.get_color() for line in lines.axes.lines}
    assert cells.tint == colour


@pytest.mark.parametrize(("seconds", "seconds_a_point"), [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3)])
def test_a_line_has_at_most_its_points(seconds: int, seconds_a_point: int) -> None:
    spool = {"completion": [], "traffic": [], "process": []}
    if seconds:
        spool["traffic"] = [traffic(seconds - 1, 1, at_s=0.0)]
    assert seconds_per_point(spool, most_points=10) == seconds_a_point  # type: ignore[arg-type]
