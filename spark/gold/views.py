"""A function for each view: (session, parameters) to rows. It reads views of the tables; its SQL is in NAME.sql."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from importlib.resources import files

from pyspark.sql import DataFrame, SparkSession

from spark.samples import SOURCE, numbered_seconds
from spark.tables.schemas import KEYS

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
EVENT_COLUMNS = {
    "orders": "experiment string, run string, instrument int, sequence bigint, time_ns bigint, kind string, "
    "side string, volume int, reject_reason string, cancelled_volume int",
    "trades": "experiment string, run string, instrument int, sequence bigint, time_ns bigint, price int, volume int",
    "quotes": "experiment string, run string, instrument int, sequence bigint, time_ns bigint, bid int, ask int",
}
"""Tables of events that a simulation may lack, with the columns that statements use of them."""


def arms(spark: SparkSession) -> DataFrame:
    """Return a row for the repeats of each arm, with medians of their figures."""
    return _rows(spark, "arms")


def comparison(spark: SparkSession) -> DataFrame:
    """Return a row for each two arms that differ in one thing, with ratios of their figures. It reads `arms`."""
    return _rows(spark, "comparison")


def sample_seconds(spark: SparkSession) -> DataFrame:
    """Return the sampled completion times of each second of each gateway, by the function that streams have."""
    keys = (*KEYS, SOURCE)
    return numbered_seconds(spark.table("sample"), keys).orderBy(*KEYS, "second", SOURCE)


def bars_by_time(spark: SparkSession, every_ns: int = NS_PER_S) -> DataFrame:
    """Return a bar for each `every_ns` of an instrument in which anything happened."""
    return _rows(spark, "bars_by_time", every_ns=every_ns)


def bars_by_count(spark: SparkSession, trades: int = 1_000) -> DataFrame:
    """Return a bar for so many trades of an instrument."""
    return _rows(spark, "bars_by_count", trades=trades)


def bars_by_volume(spark: SparkSession, lots: int = 10_000) -> DataFrame:
    """Return a bar for so many lots that an instrument traded."""
    return _rows(spark, "bars_by_volume", lots=lots)


def trade_quotes(spark: SparkSession, within_ns: int = NS_PER_S, horizon_ns: int = NS_PER_S) -> DataFrame:
    """Return each trade with the best prices before it, unless they are older than `within_ns`, and its spreads.

    The realised spread is taken `horizon_ns` after the trade.
    """
    return _rows(spark, "trade_quotes", within_ns=within_ns, horizon_ns=horizon_ns)


def market_stats(spark: SparkSession) -> DataFrame:
    """Return a row for each instrument of a run: messages by kind, orders a trade, spread, depth."""
    return _rows(spark, "market_stats")


def resample(spark: SparkSession, every_ns: int = NS_PER_S) -> DataFrame:
    """Return the price at the end of every interval from an instrument's first trade to its last, even if empty."""
    return _rows(spark, "resample", every_ns=every_ns)


def completion_by_activity(spark: SparkSession, every_ns: int = 10 * NS_PER_MS) -> DataFrame:
    """Return the sampled completion times of a run by quarter of the market's activity, in intervals of `every_ns`."""
    return _rows(spark, "completion_by_activity", every_ns=every_ns)


def samples(spark: SparkSession) -> DataFrame:
    """Return for each run the estimates from sampled orders beside the figures of all orders."""
    return _rows(spark, "samples")


VIEWS: dict[str, tuple[Callable[[SparkSession], DataFrame], tuple[str, ...]]] = {
    "arms": (arms, ("runs", "summary")),
    "comparison": (comparison, ("arms",)),
    "sample_seconds": (sample_seconds, ("sample",)),
    "bars_by_time": (bars_by_time, ("trades",)),
    "bars_by_count": (bars_by_count, ("trades",)),
    "bars_by_volume": (bars_by_volume, ("trades",)),
    "trade_quotes": (trade_quotes, ("trades", "quotes")),
    "market_stats": (market_stats, ("trades",)),
    "resample": (resample, ("trades",)),
    "completion_by_activity": (completion_by_activity, ("trades", "orders", "sample")),
    "samples": (samples, ("sample", "summary")),
}
"""By name of a view: the function that makes its rows, and the tables that it needs."""


SHOWS_TABLES = re.compile(r"\bshow\b", re.IGNORECASE)


def gold_views_over(tables: Collection[str]) -> list[str]:
    """Return the names of the views that need none but these tables, and are no tables themselves."""
    return [name for name, (_, needed) in VIEWS.items() if set(needed).issubset(tables) and name not in tables]


def tables_used(statement: str, tables: Collection[str]) -> list[str]:
    """Return those of the tables that a statement may read: it names them, or a view over them, or lists tables."""
    if SHOWS_TABLES.search(statement):
        return list(tables)
    words = statement.lower()
    used = {name for name in tables if name in words}
    for name, (_, needed) in VIEWS.items():
        if name in words and name not in tables:
            used.update(needed, EVENT_COLUMNS)
    return [name for name in tables if name in used]


def create_gold_views(spark: SparkSession, tables: Collection[str], statement: str | None = None) -> None:
    """Make each view whose tables are there; with a statement, only those that it names, since each takes a while."""
    for name in gold_views_over(tables):
        if statement is None or name in statement.lower():
            rows_of, _ = VIEWS[name]
            rows_of(spark).createOrReplaceTempView(name)


def statement_of(name: str, tables: Collection[str]) -> str:
    """Return the SQL of a view. In place of a table of events that is not among `tables` it reads no rows.

    If none of its tables is there, the statement names them all, so that Spark says what is missing.
    """
    text = files("spark.gold").joinpath(f"{name}.sql").read_text()
    has_events = any(table in tables for table in EVENT_COLUMNS)
    for table, columns in EVENT_COLUMNS.items():
        is_there = table in tables or not has_events
        text = text.replace(f"{{{table}}}", table if is_there else _no_rows(columns))
    return text


def _no_rows(columns: str) -> str:
    nulls = []
    for column in columns.split(", "):
        name, kind = column.split()
        nulls.append(f"cast(null as {kind}) as {name}")
    return f"(select {', '.join(nulls)} where false)"


def _rows(spark: SparkSession, name: str, **parameters: int) -> DataFrame:
    tables = {str(row.viewName) for row in spark.sql("show views").collect()}
    return spark.sql(statement_of(name, tables), args=parameters)
