"""The columns of a second are declared once, and every view takes them from the declaration."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from exchange.measurements import CLOCKS
from exchange.second_columns import COLUMNS, COUNTS, RATES, Unit
from exchange_simulation.reports.live.picture import groups
from exchange_simulation.reports.live.spark_table import FOLLOWED
from spark.summary import MEASURED, OFFERED, RATE, TIMES

ROOT = Path(__file__).parents[2]
PACKAGES = ("exchange", "exchange_simulation", "gateway", "matching_engine", "spark", "stats_reporter", "transports")
NAMED = re.compile(r"""["']\{?(answered_orders_per_s|gateway_cpu_cores|handed_over_p99_us|\{clock\}_p50_us)["']""")
"""Names of figures that only a list of a second's columns has."""
FILES_THAT_NAME_THEM = {
    "exchange/second_columns.py": "the declaration",
    "exchange_simulation/reports/run/load.py": "the lines of a chart, with a colour for each",
    "exchange_simulation/reports/run/samples_table.py": "the p50 of all orders, beside that of the sampled ones",
}


def test_no_other_file_declares_columns_of_a_second() -> None:
    names = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.suffix in (".py", ".html") and NAMED.search(path.read_text("utf-8")):
                names.add(str(path.relative_to(ROOT)))
    assert names == set(FILES_THAT_NAME_THEM)


@pytest.mark.parametrize("clock", CLOCKS[:2])
def test_spark_s_tables_have_every_time_that_is_shown(clock: str) -> None:
    shown = {column.figure.format(clock=clock) for column in COLUMNS if column.unit is Unit.TIME}
    assert shown <= set(TIMES)


def test_spark_s_tables_have_no_column_twice() -> None:
    assert len({OFFERED, RATE, *MEASURED}) == 2 + len(MEASURED)


def test_a_followed_column_is_in_spark_s_tables() -> None:
    assert all(column.in_spark for column in FOLLOWED)


def test_gateways_report_the_count_of_every_rate() -> None:
    assert set(RATES) <= set(COUNTS)


@pytest.mark.parametrize("is_scheduled", [True, False])
def test_live_views_show_every_column_with_a_live_title(is_scheduled: bool) -> None:
    labels = []
    for rows in groups(is_scheduled).values():
        labels += rows.values()
    columns = [column for column in COLUMNS if is_scheduled or not column.needs_schedule]
    assert sorted(labels) == sorted(column.live_title for column in columns if column.live_title)
    assert max(len(label) for label in labels) <= 9
