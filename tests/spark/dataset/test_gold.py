"""The views over the market's events, against DuckDB and against small markets made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark.dataset.folder import LocalFolder
from spark.dataset.views import create_views
from spark.gold.views import (
    VIEWS,
    bars_by_count,
    bars_by_time,
    bars_by_volume,
    completion_by_activity,
    create_gold_views,
    market_stats,
    resample,
    sample_seconds,
    samples,
    tables_used,
    trade_quotes,
)
from spark.tables.schemas import KEYS

pytestmark = pytest.mark.jvm
STREAM = "experiment, run, instrument"
ONE_MARKET = {"experiment": "e", "run": "r", "pair": 1, "instrument": 1}
TYPES = {
    "trades": "experiment string, run string, pair int, instrument int, sequence bigint, time_ns bigint, price int, "
    "volume int, aggressor string",
    "quotes": "experiment string, run string, pair int, instrument int, sequence bigint, time_ns bigint, bid int, "
    "ask int",
    "orders": "experiment string, run string, pair int, instrument int, sequence bigint, time_ns bigint, gateway int, "
    "id bigint, kind string, side string, volume int, reject_reason string, cancelled_volume int",
    "sample": "experiment string, run string, source string, pair int, id bigint, due_ns bigint, "
    "handed_over_ns bigint, answered_ns bigint",
}

FIGURES_OF_SUMMARY = ("count", "p50_us", "mean_us")
Rows = list[dict[str, Any]]


@pytest.fixture
def views(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of the tests, without views from others."""
    for view in spark.sql("show views").collect():
        spark.catalog.dropTempView(view.viewName)
    yield spark
    for view in spark.sql("show views").collect():
        spark.catalog.dropTempView(view.viewName)


def make(spark: SparkSession, table: str, rows: Rows) -> None:
    """Make a view of a market's table."""
    spark.createDataFrame([ONE_MARKET | row for row in rows], TYPES[table]).createOrReplaceTempView(table)


def make_summary(spark: SparkSession, warm_up_s: float) -> None:
    """Make views of the table of runs and of the summary, which hold one run; all its times are 1 us."""
    clocks = ", ".join(f"1.0 as {clock}_{figure}" for clock in ("due", "handed_over") for figure in FIGURES_OF_SUMMARY)
    spark.sql(f"select 'e' as experiment, 'r' as run, {clocks}").createOrReplaceTempView("summary")
    run = f"select 'e' as experiment, 'r' as run, {warm_up_s}D as warm_up_s"
    spark.sql(run).createOrReplaceTempView("runs")


def rows_of(frame: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.select(*names).collect()]


def trade(sequence: int, time_ns: int, price: int, volume: int = 1, aggressor: str = "bid") -> dict[str, Any]:
    return {"sequence": sequence, "time_ns": time_ns, "price": price, "volume": volume, "aggressor": aggressor}


def quote(sequence: int, time_ns: int, bid: int | None, ask: int | None) -> dict[str, Any]:
    return {"sequence": sequence, "time_ns": time_ns, "bid": bid, "ask": ask}


def test_a_trade_has_the_quote_before_it_and_its_spreads(views: SparkSession) -> None:
    """The quote that the trade itself causes has the same time and a later place; an empty side is no old price."""
    make(views, "trades", [trade(2, 10, 104), trade(5, 20, 99, aggressor="ask"), trade(8, 900, 100)])
    quotes = [quote(1, 5, 100, 104), quote(3, 10, 102, 108), quote(4, 15, 98, None), quote(6, 20, 90, 94)]
    make(views, "quotes", quotes)
    rows = trade_quotes(views, within_ns=100, horizon_ns=10).orderBy("sequence")
    names = ("sequence", "bid", "ask", "quote_age_ns", "effective_spread", "realised_spread")
    assert rows_of(rows, *names) == [
        (2, 100, 104, 5, 4.0, 2 * (104 - 92)),
        (5, 98, None, 5, None, -2 * (99 - 92)),
        (8, None, None, 880, None, None),  # the run ends before the horizon
    ]


def test_quotes_as_of_a_trade_are_those_of_duckdb(views: SparkSession, events: Path) -> None:
    create_views(views, LocalFolder(f"file://{events}/tables"))
    for table in ("trades", "quotes"):
        duckdb.sql(f"create or replace view {table} as select * from '{events}/tables/{table}/**/*.parquet'")
    as_of = f"""
        select t.experiment, t.run, t.instrument, t.sequence, t.price, q.bid, q.ask, t.time_ns - q.time_ns as age
        from trades t asof left join quotes q using ({STREAM}, sequence) order by all"""
    ours = trade_quotes(views, within_ns=1 << 62).select(
        *KEYS, "instrument", "sequence", "price", "bid", "ask", "quote_age_ns"
    )
    expected = duckdb.sql(as_of).fetchall()
    assert sorted(map(tuple, ours.collect()), key=str) == sorted(expected, key=str)
    assert len(expected) > 1_000


def test_bars_have_vwap_and_volatility_by_time_by_count_and_by_volume(views: SparkSession) -> None:
    make(views, "trades", [trade(1, 0, 10, 1), trade(2, 5, 20, 3), trade(3, 12, 30, 4), trade(4, 13, 30, 1)])
    figures = ("open", "high", "low", "close", "volume", "trades", "vwap", "volatility")
    first = (10, 20, 10, 20, 4, 2, 17.5, pytest.approx(75**0.5 / 2))
    second = (30, 30, 30, 30, 5, 2, 30.0, 0.0)
    assert rows_of(bars_by_time(views, every_ns=10), *figures) == [first, second]
    assert rows_of(bars_by_count(views, trades=2), *figures) == [first, second]
    assert rows_of(bars_by_volume(views, lots=4), *figures) == [
        first,
        (30, 30, 30, 30, 4, 1, 30.0, 0.0),
        (30, 30, 30, 30, 1, 1, 30.0, 0.0),
    ]


def test_an_empty_interval_has_the_last_price_and_no_volume(views: SparkSession) -> None:
    make(views, "trades", [trade(1, 0, 10), trade(2, 5, 20), trade(3, 31, 30, 7)])
    assert rows_of(resample(views, every_ns=10), "start_ns", "price", "volume", "trades") == [
        (0, 20, 2, 2),
        (10, 20, 0, 0),
        (20, 20, 0, 0),
        (30, 30, 7, 1),
    ]


def test_market_stats_weigh_the_spread_by_time(views: SparkSession) -> None:
    make(views, "trades", [trade(4, 30, 104, 2)])
    make(views, "quotes", [quote(1, 0, 100, 104), quote(2, 30, 100, 102), quote(3, 40, None, 102)])
    order = {"time_ns": 0, "id": 1, "kind": "limit"}
    bid = order | {"sequence": 1, "side": "bid", "volume": 5}
    ask = order | {"sequence": 2, "side": "ask", "volume": 3}
    rejected = order | {"sequence": 3, "side": "ask", "volume": 9, "reject_reason": "price"}
    cancel = order | {"sequence": 4, "kind": "cancel", "side": "bid", "cancelled_volume": 2}
    make(views, "orders", [bid, ask, rejected, cancel])
    names = ("orders", "cancels", "rejections", "cancelled_volume", "trades", "order_to_trade")
    assert rows_of(market_stats(views), *names) == [(4, 1, 1, 2, 1, 4.0)]
    assert rows_of(market_stats(views), "spread", "spread_by_time", "bid_depth", "ask_depth") == [(3.0, 3.5, 1, 1)]


def test_samples_of_a_burst_are_in_the_last_quarter(views: SparkSession) -> None:
    """Order n is due in millisecond n, in which n trades happen, and waits for n microseconds."""
    trades = [trade(10 * n + k, n * 1_000_000, 100) for n in range(1, 9) for k in range(n)]
    make(views, "trades", trades)
    orders = [{"sequence": n, "id": n, "gateway": 1, "time_ns": n * 1_000_000} for n in range(1, 9)]
    make(views, "orders", orders)
    sampled = [{"id": n, "due_ns": 0, "handed_over_ns": 0, "answered_ns": n * 1_000} for n in range(1, 9)]
    make(views, "sample", sampled)
    rows = rows_of(completion_by_activity(views, every_ns=1_000_000), "quarter", "trades_from", "trades_to", "mean_us")
    assert rows == [(1, 1, 2, 1.5), (2, 3, 4, 3.5), (3, 5, 6, 5.5), (4, 7, 8, 7.5)]


@pytest.mark.parametrize("number", [1, 5, 6, 7, 30, 101])
def test_the_interval_of_a_run_s_samples_is_that_of_its_seconds(views: SparkSession, number: int) -> None:
    """SQL and Python have the formula each: samples.sql and spark/samples.py."""
    rows = []
    for place in range(number):
        times = {"due_ns": 0, "handed_over_ns": 0, "answered_ns": 1_000 * (place + 1)}
        rows.append({"source": "gateway", "id": place, **times})
    make(views, "sample", rows)
    make_summary(views, warm_up_s=0.0)
    interval = rows_of(samples(views), "samples", "sampled_p50_low_us", "sampled_p50_high_us")
    assert interval == rows_of(sample_seconds(views), "samples", "p50_low_us", "p50_high_us")


@pytest.mark.parametrize(("warm_up_s", "error_percent"), [(0.0, 100.0), (2.0, None)])
def test_samples_have_an_error_only_if_the_summary_is_of_the_same_orders(
    views: SparkSession, warm_up_s: float, error_percent: float | None
) -> None:
    make(views, "sample", [{"source": "gateway", "id": 1, "due_ns": 0, "handed_over_ns": 0, "answered_ns": 2_000}])
    make_summary(views, warm_up_s)
    errors = rows_of(samples(views), "p50_error_percent", "mean_error_percent")
    assert errors == [(error_percent, error_percent)]


def test_seconds_of_samples_begin_with_the_first_of_each_run(views: SparkSession) -> None:
    rows = []
    for run, start_s in (("a", 7), ("b", 90)):
        for number in range(4):
            due_ns = int((start_s + number / 2) * 1e9)
            times = {"due_ns": due_ns, "handed_over_ns": due_ns, "answered_ns": due_ns + 1_000 * (number + 1)}
            rows.append({"run": run, "source": "gateway", "id": number, **times})
    make(views, "sample", rows)
    seconds = [(0, 2, 1.5), (1, 2, 3.5)]
    assert rows_of(sample_seconds(views), "run", "second", "samples", "mean_us") == [
        (run, *second) for run in ("a", "b") for second in seconds
    ]


@pytest.mark.parametrize("name", VIEWS)
def test_every_function_is_a_view_once_its_tables_are_there(name: str, views: SparkSession, events: Path) -> None:
    tables = create_views(views, LocalFolder(f"file://{events}/tables"))
    create_gold_views(views, tables, f"select * from {name}")
    if VIEWS[name].can_be_made(tables):
        assert views.sql(f"select * from {name} limit 1").count() <= 1
    else:
        assert not views.catalog.tableExists(name)


@pytest.mark.parametrize("name", ["bars_by_time", "market_stats"])
def test_a_run_without_trades_has_the_views_over_any_events(name: str, views: SparkSession) -> None:
    make(views, "quotes", [quote(1, 0, 100, 104)])
    create_gold_views(views, ["quotes"], f"select * from {name}")
    assert rows_of(views.sql(f"select * from {name}"), "instrument", "spread") == [(1, 4.0)]
    assert tables_used(f"select * from {name}", ["quotes", "sample"]) == ["quotes"]
