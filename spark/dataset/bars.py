"""Bars over time from the tables of events: partial bars of the rows, and one SQL statement that puts them together.

    tables on this machine ──a kernel and numpy, a file a task──▶ partial bars: a row a stretch ─┐
    tables elsewhere ──PARTIAL, in SQL──▶ partial bars: a row an event ──────────────────────────┴─BARS──▶ a row a bar

A stretch is rows of a file that follow each other: of one run, instrument and bar, with rising sequences. So any order
of a file's rows is right, and where they are in order there are few stretches. Spark groups row by row, which takes it
three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from exchange.compiled import kernel
from spark.dataset.folder import TablesFolder, experiment_of_file
from spark.errors import DatasetUnreadableError
from spark.sessions.partitions import each_number

PARTIAL = {
    "trades": """
        select experiment, run, instrument, time_ns - time_ns % {every_ns} as bar, sequence as first,
          price as open, price as high, price as low, price as close, volume, 1 as trades
        from trades where time_ns is not null""",
    "quotes": """
        select experiment, run, instrument, time_ns - time_ns % {every_ns} as bar, sequence as first,
          coalesce(ask - bid, 0) as spreads, if(ask - bid is null, 0, 1) as two_sided, bid, ask
        from quotes where time_ns is not null""",
    "orders": """
        select experiment, run, instrument, time_ns - time_ns % {every_ns} as bar, sequence as first, 1 as orders,
          if(side = 'bid', volume, 0) as bids, if(side = 'ask', volume, 0) as asks
        from orders where time_ns is not null""",
}
"""The partial bar that an event by itself is, by table. Spark and DuckDB take these statements, and BARS."""
BARS = """
with parts as (
  select experiment, run, instrument, bar, first as traded, open, high, low, close, volume, trades, null as quoted,
    null as spreads, null as two_sided, null as bid, null as ask, null as orders, null as bids, null as asks
  from partial_trades
  union all
  select experiment, run, instrument, bar, null, null, null, null, null, null, null, first,
    spreads, two_sided, bid, ask, null, null, null
  from partial_quotes
  union all
  select experiment, run, instrument, bar, null, null, null, null, null, null, null, null,
    null, null, null, null, orders, bids, asks
  from partial_orders
), bars as (
  select experiment, run, instrument, bar, min_by(open, traded) as open, max(high) as high, min(low) as low,
    max_by(close, traded) as close, coalesce(sum(volume), 0) as volume, coalesce(sum(trades), 0) as trades,
    sum(spreads) / nullif(sum(two_sided), 0) as spread, max_by(bid, quoted) as bid, max_by(ask, quoted) as ask,
    sum(orders) as orders, sum(bids) as bids, sum(asks) as asks
  from parts group by 1, 2, 3, 4
)
select /*+ repartition(1) */ experiment, run, instrument, bar / 1e9 as start_s, open, high, low, close, volume, trades,
  spread, bid, ask, orders, orders / nullif(trades, 0) as order_to_trade,
  sum(bids - volume) over so_far as bid_depth, sum(asks - volume) over so_far as ask_depth
from bars
window so_far as (partition by experiment, run, instrument order by bar)
order by experiment, run, instrument, start_s
"""
"""Depth is the lots that rest at the bar's end: a trade takes its volume from both sides.

One group of all three tables takes Spark four stages; three groups and two joins would take it seven. The hint is for
Spark alone: it would compute the bars twice, first to find out how to sort them in parts.
"""

Columns = dict[str, Any]
Places = NDArray[np.int64]
LONG = pa.int64()
INT = pa.int32()
TEXT = pa.string()
OF_BAR = {"experiment": TEXT, "run": TEXT, "instrument": INT, "bar": LONG, "first": LONG}
RUN = "run"
STREAM = ("experiment", RUN, "instrument")
"""Partial bars that lie together by these are grouped, and their depth is summed up, without being moved again."""
READ = (RUN, "instrument", "sequence", "time_ns")
ROWS_AT_ONCE = 1 << 18


def create_partial_bars(spark: SparkSession, folder: TablesFolder, there: Collection[str], every_ns: int) -> None:
    """Make the views that BARS reads. A simulation may lack some of the three tables, which are then empty."""
    for table in STRETCHES:
        if table not in there:
            rows = spark.createDataFrame(_schema(table).empty_table())
        elif folder.local is None:
            rows = spark.sql(PARTIAL[table].format(every_ns=every_ns))
        else:
            files = [
                (folder.path(file).removeprefix("file:"), experiment_of_file(file)) for file in folder.files(table)
            ]
            work = partial(partial_bars, files, table, every_ns)
            rows = each_number(spark, len(files), work, _schema(table), len(files)).repartition(*STREAM)
        rows.createOrReplaceTempView(f"partial_{table}")


def _schema(table: str) -> pa.Schema:
    return pa.schema({**OF_BAR, **STRETCHES[table][1]})


def partial_bars(
    files: Sequence[tuple[str, str]], table: str, every_ns: int, _part: int, numbers: Iterable[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the partial bars of the numbered files: pairs of a path on this machine and its experiment."""
    schema = _schema(table)
    for path, experiment in (files[number - 1] for number in numbers):
        for rows in _rows(path, [*READ, *STRETCHES[table][0]]):
            bars = _stretches(rows, table, every_ns)
            bars["experiment"] = pa.repeat(experiment, len(bars["first"]))
            yield pa.RecordBatch.from_arrays([pa.array(bars[name]) for name in schema.names], schema=schema)


def _rows(path: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file that have a time."""
    try:
        with pq.ParquetFile(path, read_dictionary=[RUN], pre_buffer=False) as file:
            for number in range(file.num_row_groups):
                run = _only_run(file.metadata.row_group(number))
                read = [name for name in columns if name != RUN or run is None]
                for rows in file.iter_batches(ROWS_AT_ONCE, [number], read, use_threads=False):
                    repeated = pa.DictionaryArray.from_arrays(np.zeros(len(rows), np.int32), [run], safe=False)
                    named = rows if run is None else rows.append_column(RUN, repeated)
                    timed = named.filter(named["time_ns"].is_valid()) if named["time_ns"].null_count else named
                    if len(timed):
                        yield timed
    except (pa.ArrowException, OSError) as error:
        raise DatasetUnreadableError(f"{path} is damaged ({' '.join(str(error).split())}): make it anew") from error


def _only_run(rows: pq.RowGroupMetaData) -> str | None:
    """Return the run of all rows where the file says that they have one: reading it takes a fifth of all reading."""
    columns = map(rows.column, range(rows.num_columns))
    known = next(column for column in columns if column.path_in_schema == RUN).statistics
    if known is None or not known.has_min_max or known.null_count:
        return None
    return str(known.min) if known.min == known.max else None


def _stretches(rows: pa.RecordBatch, table: str, every_ns: int) -> Columns:
    time_ns, instrument, sequence = (rows[name].to_numpy() for name in ("time_ns", "instrument", "sequence"))
    starts = stretch_starts(rows[RUN].indices.to_numpy(), instrument, sequence, time_ns, every_ns)
    ends = np.append(starts[1:], len(rows)) - 1
    return {
        "run": rows[RUN].take(pa.array(starts)).dictionary_decode(),
        "instrument": instrument[starts],
        "bar": time_ns[starts] // every_ns * every_ns,
        "first": sequence[starts],
        **STRETCHES[table][2](rows, starts, ends),
    }


@kernel
def stretch_starts(run: Places, instrument: Places, sequence: Places, time_ns: Places, every_ns: int) -> Places:
    """Find the row that begins each stretch. Numpy divides the time of every row, which takes it six times as long."""
    starts = np.empty(len(run), np.int64)
    count = 0
    begin_ns = end_ns = 0
    for row in range(len(run)):
        in_bar = begin_ns <= time_ns[row] < end_ns
        same = run[row] == run[row - 1] and instrument[row] == instrument[row - 1]
        if not (in_bar and same and sequence[row] > sequence[row - 1]):
            starts[count] = row
            count += 1
            begin_ns = time_ns[row] - time_ns[row] % every_ns
            end_ns = begin_ns + every_ns
    return starts[:count]


def _traded(rows: pa.RecordBatch, starts: Places, ends: Places) -> Columns:
    price = rows["price"].to_numpy()
    return {
        "open": price[starts],
        "high": np.maximum.reduceat(price, starts),
        "low": np.minimum.reduceat(price, starts),
        "close": price[ends],
        "volume": _sum(rows["volume"].to_numpy(), starts),
        "trades": ends - starts + 1,
    }


def _quoted(rows: pa.RecordBatch, starts: Places, ends: Places) -> Columns:
    spread = pc.subtract(rows["ask"], rows["bid"])
    return {
        "spreads": _sum(spread.fill_null(0).to_numpy(), starts),
        "two_sided": _sum(spread.is_valid().to_numpy(zero_copy_only=False), starts),
        **{name: rows[name].take(pa.array(ends)) for name in ("bid", "ask")},
    }


def _ordered(rows: pa.RecordBatch, starts: Places, ends: Places) -> Columns:
    volume = rows["volume"].to_numpy()
    is_bid = pc.equal(rows["side"], "bid").to_numpy(zero_copy_only=False)
    return {
        "orders": ends - starts + 1,
        "bids": _sum(np.where(is_bid, volume, 0), starts),
        "asks": _sum(np.where(is_bid, 0, volume), starts),
    }


def _sum(numbers: NDArray[Any], starts: Places) -> Places:
    return np.add.reduceat(numbers, starts, dtype=np.int64)


STRETCHES: dict[
    str, tuple[Sequence[str], dict[str, pa.DataType], Callable[[pa.RecordBatch, Places, Places], Columns]]
] = {
    "trades": (
        ("price", "volume"),
        {**dict.fromkeys(("open", "high", "low", "close"), INT), "volume": LONG, "trades": LONG},
        _traded,
    ),
    "quotes": (("bid", "ask"), {"spreads": LONG, "two_sided": LONG, "bid": INT, "ask": INT}, _quoted),
    "orders": (("side", "volume"), {"orders": LONG, "bids": LONG, "asks": LONG}, _ordered),
}
"""By table: the columns that are read, those of its partial bars, and how a stretch becomes one."""
