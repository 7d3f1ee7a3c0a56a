"""The heat map, compared with the seconds from which it is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic_run import SyntheticRun

from exchange.measurements import BUCKETS, LogBuckets, bucket_of
from exchange_simulation.reports.drawing.canvas import page_style
from exchange_simulation.reports.run.heat import heat, heat_map, opacity
from exchange_simulation.reports.run.run_folder import read_run_folder


def completion(second: int, *values_us: int, clock: str = "due", last_order: bool = False) -> dict[str, Any]:
    """Return the record of a second in which orders took these times."""
    ns = np.array(values_us) * 1_000
    counts = np.bincount(bucket_of(ns), minlength=BUCKETS)
    buckets = LogBuckets(counts, sum_ns=int(ns.sum()), min_ns=int(ns.min()), max_ns=int(ns.max()))
    return {"payload": {"second": second, "clock": clock, "last_order": last_order, **buckets.sparse()}}


def test_every_order_lies_in_the_cell_of_its_second_and_time() -> None:
    grid = heat_map([completion(0, 100, 100, 9_000), completion(2, 100)], point_s=1)
    assert grid is not None
    for time_us, orders_by_second in ((100, [2, 0, 1]), (9_000, [1, 0, 0])):
        row = np.searchsorted(grid.edges_us, time_us) - 1
        assert grid.counts[row].tolist() == orders_by_second
    assert grid.counts.sum() == 4


def test_a_row_spans_an_eighth_of_an_octave() -> None:
    grid = heat_map([completion(0, 100, 9_000)], point_s=1)
    assert grid is not None
    assert grid.edges_us[1:] / grid.edges_us[:-1] == pytest.approx(2 ** (1 / 8))
    assert grid.edges_us[0] <= 100
    assert grid.edges_us[-1] >= 9_000


def test_times_are_from_due_if_there_are_any() -> None:
    handed_over = completion(0, 100, clock="handed_over")
    due = completion(0, 9_000, clock="due")
    grid = heat_map([handed_over, due], point_s=1)
    assert grid is not None
    assert grid.edges_us[0] > 8_000

    grid_without_schedule = heat_map([handed_over], point_s=1)
    assert grid_without_schedule is not None
    assert grid_without_schedule.edges_us[0] <= 100


def test_the_last_order_is_left_out() -> None:
    assert heat_map([completion(3, 9_000, last_order=True)], point_s=1) is None


def test_a_single_order_is_seen_and_more_orders_are_darker() -> None:
    shades = opacity(np.array([0, 1, 10, 1_000]), most=1_000)
    assert shades[0] == 0
    assert shades[1] >= 0.2
    assert np.diff(shades).min() > 0
    assert shades[-1] == 1


def test_the_figure_s_numbers_are_all_orders_of_the_run(tmp_path: Path) -> None:
    folder = read_run_folder(SyntheticRun(seconds=4).write(tmp_path / "run"))
    with page_style():
        chart = heat(folder)
    assert chart is not None
    assert sum(int(row[-1] or 0) for row in chart.numbers.rows) == 32_000
