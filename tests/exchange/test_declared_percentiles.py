"""Percentiles are declared once, and every view takes them from the declaration."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from exchange.measurements import LogBuckets
from exchange.percentiles import FIGURES, PERCENTILES, Percentile
from exchange_simulation.outcomes import Times

ROOT = Path(__file__).parents[2]
PACKAGES = ("exchange", "exchange_simulation", "gateway", "matching_engine", "spark", "stats_reporter", "transports")
NAMED = re.compile(r"(?<![A-Za-z0-9])p(90|999|99\.9)(?![0-9])")
"""Names of percentiles that only a list of percentiles has. (Headlines name p50 and p99.)"""
FILES_THAT_NAME_THEM = {
    "exchange/percentiles.py": "the declaration",
    "exchange_simulation/messaging/benchmarks/supply_chain.py": "the paper's objective is a p90",
    "exchange_simulation/messaging/supply_chain/paper_figures.py": "the same",
    "exchange_simulation/messaging/supply_chain/summary.py": "the same",
    "exchange_simulation/messaging/supply_chain/judging.py": "the same",
    "exchange_simulation/messaging/supply_chain/interaction_rows.py": "the same",
    "exchange_simulation/experiments/tapes/statistics.py": "a spread in ticks has p10, p50 and p90",
    "exchange_simulation/cli/tape.py": "the same",
}


def test_no_other_file_declares_percentiles() -> None:
    names = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.suffix in (".py", ".html") and NAMED.search(path.read_text("utf-8")):
                names.add(str(path.relative_to(ROOT)))
    assert names == set(FILES_THAT_NAME_THEM)


@pytest.mark.parametrize("percentile", PERCENTILES, ids=lambda percentile: percentile.name)
def test_a_percentile_needs_ten_orders_beyond_it(percentile: Percentile) -> None:
    def beyond(orders: int) -> float:
        return round(orders * (100 - percentile.percent) / 100, 6)

    assert beyond(percentile.least_orders) >= 10
    assert beyond(percentile.least_orders - 1) < 10


def test_a_label_has_a_decimal_point_where_needed() -> None:
    assert Percentile("p9995", 99.95).label == "p99.95"
    assert Percentile("p50", 50.0).label == "p50"


def test_records_and_the_python_interface_have_every_figure() -> None:
    figures = LogBuckets.of(np.arange(1, 101) * 1_000).figures_us()
    assert list(figures) == ["count", *FIGURES]
    times = Times.of(figures)
    assert [getattr(times, f"{name}_us") for name in FIGURES] == [figures[name] for name in FIGURES]
    assert pickle.loads(pickle.dumps(times)) == times
    assert set(dir(times)) >= {f"{name}_us" for name in FIGURES}


def test_an_unknown_figure_is_an_error_that_lists_the_known_figures() -> None:
    times = Times.of({"count": 1, "mean": 2.0, "max": 3.0})
    with pytest.raises(AttributeError, match=r"no 'p77_us'; they have mean_us, max_us$"):
        times.p77_us  # noqa: B018
