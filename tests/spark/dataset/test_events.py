"""Recorded streams become tables of orders, trades, confirmations and quotes, which every reader reads alike."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from spark_runs import START_WALL_NS, MadeUpRun

from exchange.words import counted
from exchange_simulation.cli.main import main
from exchange_simulation.experiments.events.tables import TABLES
from exchange_simulation.experiments.pipeline import events as pipeline_events
from exchange_simulation.experiments.pipeline.events import RecordedRun, write_events
from exchange_simulation.launching.errors import UserError
from exchange_simulation.market import OrderBook, orders
from spark.gold.views import statement_of
from spark.tables.schemas import KEYS
from tests.exchange_simulation.experiments.simulate.sample_simulations import simulated
from tests.spark.dataset.conftest import STREAM_ORDERS, SparkCommand, record_streams

EVERY_NS = 400_000_000


def rows_of(folder: Path, table: str, starts_ns: Mapping[int, int] = MappingProxyType({})) -> pd.DataFrame:
    run = RecordedRun(
        folder=folder, experiment="alone", run="x", policy="price-time", max_price=999, starts_ns=starts_ns
    )
    return pa.concat_tables(rows for name, rows in run.rows() if name == table).to_pandas()


def test_every_answer_is_at_the_order_that_caused_it(tmp_path: Path) -> None:
    """The reference matches one order at a time, so that no answer can be another order's."""
    book, stream = OrderBook(), orders(1, STREAM_ORDERS)
    trades, quotes, confirmations = [], [], []
    for order in range(300):
        id_, answers = order + 1, book.match(stream[order : order + 1])
        trades += [(id_, *trade) for trade in answers.trades[["id", "price", "volume"]].tolist() if trade[0] != id_]
        quotes += [(id_, *quote) for quote in answers.quotes[["bid", "ask"]].tolist()]
        confirmations += answers.confirmations["id"].tolist()
    record_streams(tmp_path)
    traded, quoted = rows_of(tmp_path, "trades"), rows_of(tmp_path, "quotes")
    found = traded[traded.incoming_id <= 300]
    assert list(found[["incoming_id", "resting_id", "price", "volume"]].itertuples(index=False, name=None)) == trades
    assert found.time_ns.tolist() == [(trade[0] - 1) * 1_000_000 for trade in trades]
    assert found.aggressor.tolist() == [("", "ask", "bid")[stream["side"][trade[0] - 1]] for trade in trades]
    prices = quoted[quoted.incoming_id <= 300][["incoming_id", "bid", "ask"]].fillna({"bid": 0, "ask": 1000})
    assert list(prices.astype(int).itertuples(index=False, name=None)) == quotes
    confirmed = rows_of(tmp_path, "confirmations")
    assert confirmed[confirmed.id <= 300].id.tolist() == confirmations
    assert set(confirmed.clock) == {"due"}


def test_a_run_s_own_files_have_the_rows_of_the_tables_without_spark(tmp_path: Path) -> None:
    folder = record_streams(MadeUpRun(seconds=1).write(tmp_path / "x"))
    events = write_events(folder)
    assert sorted(path.name for path in events.iterdir()) == [f"{name}.parquet" for name in sorted(TABLES)]
    for name in TABLES:
        expected = rows_of(folder, name, {1: START_WALL_NS + 1_000_000})
        pd.testing.assert_frame_equal(pd.read_parquet(events / f"{name}.parquet"), expected)


def test_blocks_of_orders_give_the_rows_of_the_stream_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_streams(tmp_path)
    whole = {name: rows_of(tmp_path, name) for name in TABLES}
    monkeypatch.setattr(pipeline_events, "BLOCK_ORDERS", 300)
    for name in TABLES:
        pd.testing.assert_frame_equal(rows_of(tmp_path, name), whole[name])


def test_an_event_has_the_wall_clock_of_its_gateway_s_first_order(tmp_path: Path) -> None:
    folder = record_streams(MadeUpRun(seconds=2).write(tmp_path / "x"))
    order = pq.read_table(write_events(folder) / "orders.parquet").to_pylist()[700]
    began = datetime.fromtimestamp(START_WALL_NS // 10**9, UTC) + timedelta(microseconds=START_WALL_NS // 1_000 % 10**6)
    assert (order["at"] - began).total_seconds() == pytest.approx(0.700, abs=0.002)
    assert (order["pair"], order["instrument"], order["time_ns"]) == (1, 1, 700_000_000)


def test_damaged_streams_give_no_files_and_a_sentence(tmp_path: Path) -> None:
    folder = record_streams(MadeUpRun(seconds=1).write(tmp_path / "x"))
    (folder / "answers.bin").write_bytes(b"")
    with pytest.raises(UserError, match="not those of the matching engine"):
        write_events(folder)
    assert list((folder / "events").iterdir()) == []


def test_orders_without_due_times_have_no_time(tmp_path: Path) -> None:
    record_streams(tmp_path)
    (tmp_path / "orders.due").unlink()
    rows = rows_of(tmp_path, "trades")
    assert rows.time_ns.isna().all()
    assert rows.clock.isna().all()
    assert len(rows) > 0


@pytest.mark.parametrize(
    ("file", "kept", "added", "message"),
    [
        ("answers.bin", 0, b"", "not those of the matching engine"),
        ("answers.bin", None, b"x", "1 bytes of answers more"),
        ("orders.bin", None, b"\1", "truncated"),
        ("orders.due", 8, b"", "8 bytes each"),
        ("orders.due", 3, b"", "8 bytes each"),
    ],
)
def test_streams_that_are_damaged_are_named(
    tmp_path: Path, file: str, kept: int | None, added: bytes, message: str
) -> None:
    record_streams(tmp_path)
    damaged = tmp_path / file
    damaged.write_bytes(damaged.read_bytes()[:kept] + added)
    with pytest.raises(ValueError, match=message) as refused:
        rows_of(tmp_path, "trades")
    assert str(tmp_path) in str(refused.value)


@pytest.mark.jvm
def test_a_run_that_was_made_anew_has_its_new_events_only(
    events: Path, spark_command: SparkCommand, tmp_path: Path
) -> None:
    """An ingest without --events removes the former events; the next one, with it, reads the new ones, once."""
    copy = Path(shutil.copytree(events, tmp_path / "copy"))
    os.utime(copy / "trial" / "run-1" / "run.json")
    assert "1 run added" in spark_command("ingest", copy).stdout
    for table in ("orders", "trades", "quotes"):
        assert set(pd.read_parquet(copy / "tables" / table)["run"]) == {"run-2"}
    for went_in in (1, 0):
        assert f"{counted(went_in, 'runs')} added" in spark_command("ingest", copy, "--events").stdout


def four_readers(tables: Path, table: str, column: str) -> dict[str, Counter[tuple[str, int]]]:
    """Read (run, value of the column) by the plain call of each library."""
    folder = tables / table
    frames = {
        "pyarrow": ds.dataset(folder, partitioning="hive").to_table(columns=["run", column]).to_pandas(),
        "pandas": pd.read_parquet(folder),
        "duckdb": duckdb.sql(f"select run, {column} from '{folder}/**/*.parquet'").df(),
        "polars": pl.read_parquet(folder).to_pandas(),
    }
    return {name: Counter(frame[["run", column]].itertuples(index=False, name=None)) for name, frame in frames.items()}


@pytest.mark.jvm
def test_four_readers_agree_also_after_another_ingest(events: Path, spark_command: SparkCommand) -> None:
    for again in (False, True):
        assert not again or spark_command("ingest", events, "--events", "--again").exit_code == 0
        for table, column in (("orders", "id"), ("trades", "sequence"), ("quotes", "sequence")):
            expected = Counter(
                (f"run-{seed}", value)
                for seed in (1, 2)
                for value in rows_of(events / "trial" / f"run-{seed}", table)[column].tolist()
            )
            for name, rows in four_readers(events / "tables", table, column).items():
                assert rows == expected, (table, name, again)
    sent = duckdb.sql(f"select run, sum(orders_sent) from '{events}/tables/traffic/**/*.parquet' group by run")
    assert {run: int(orders) for run, orders in sent.fetchall()} == {"run-1": 2001, "run-2": 2001, "plain": 2001}


def json_rows(done: Result) -> list[dict[str, Any]]:
    assert done.exit_code == 0, done.output
    return list(map(json.loads, done.stdout.splitlines()))


@pytest.mark.jvm
def test_bars_are_those_of_duckdb_and_hold_every_order(events: Path, spark_command: SparkCommand) -> None:
    rows = json_rows(spark_command("bars", "--every", "400ms", "--json", "--tables", events / "tables"))
    assert [(row["run"], row["start_s"]) for row in rows] == [
        (f"run-{seed}", pytest.approx(0.4 * bar)) for seed in (1, 2) for bar in range(5)
    ]
    assert sum(row["orders"] for row in rows) == 2 * STREAM_ORDERS
    base = duckdb.connect()
    for table in ("orders", "trades", "quotes"):
        base.sql(f"create view {table} as select * from '{events}/tables/{table}/**/*.parquet'")
    statement = statement_of("bars_by_time", ("orders", "trades", "quotes")).replace(":every_ns", str(EVERY_NS))
    there = base.sql(statement).df().to_dict("records")
    for ours, theirs in zip(rows, there, strict=True):
        assert ours == {name: each if name in KEYS else pytest.approx(each) for name, each in theirs.items()}
    first = rows_of(events / "trial" / "run-1", "trades").query("time_ns < 400_000_000")
    assert rows[0]["open"] == first.price.iloc[0]
    assert rows[0]["close"] == first.price.iloc[-1]
    assert rows[0]["volume"] == first.volume.sum()


@pytest.mark.jvm
def test_samples_stand_beside_the_times_of_all_orders(events: Path, spark_command: SparkCommand) -> None:
    missing = spark_command("samples", "--tables", events / "tables")
    assert missing.exit_code == 2
    assert "exchange spark summary makes summary" in missing.stderr
    assert spark_command("summary", events).exit_code == 0
    rows = json_rows(spark_command("samples", "--json", "--tables", events / "tables"))
    base = duckdb.connect()
    tables = ("sample", "summary", "runs")
    for table in tables:
        base.sql(f"create view {table} as select * from '{events}/tables/{table}/**/*.parquet'")
    by_duckdb = base.sql(statement_of("samples", tables)).df()
    pd.testing.assert_frame_equal(pd.DataFrame(rows).astype(by_duckdb.dtypes.to_dict()), by_duckdb)
    first = next(row for row in rows if (row["run"], row["clock"]) == ("run-1", "due"))
    assert first["samples"] == 4
    assert first["sampled_p50_us"] == first["sampled_mean_us"] == 0.25  # samples with a due time have 250 ns each
    assert first["p50_error_percent"] == pytest.approx(100 * (0.25 / first["p50_us"] - 1))


@pytest.mark.jvm
def test_a_damaged_stream_leaves_the_tables_as_they_were(
    events: Path, spark_command: SparkCommand, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(events, copy)
    before = four_readers(copy / "tables", "trades", "sequence")
    (copy / "trial" / "run-1" / "answers.bin").write_bytes(b"")
    done = spark_command("ingest", copy, "--events", "--again")
    assert done.exit_code != 0
    assert "its answers are not those of the matching engine to its orders" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert four_readers(copy / "tables", "trades", "sequence") == before


@pytest.mark.jvm
def test_bars_of_a_simulation_are_those_of_duckdb_also_without_its_orders(
    spark_command: SparkCommand, tmp_path: Path
) -> None:
    words = ("--instruments", 2, "--orders", 4_000, "--trades", "--quotes", "--rate", 1_000, "--name", "x")
    assert simulated(tmp_path, *words).code == 0
    tables = tmp_path / "x" / "market"
    rows = json_rows(spark_command("bars", "--every", "1s", "--json", "--tables", tables))
    assert [(row["instrument"], row["start_s"]) for row in rows] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    base = duckdb.connect()
    base.sql(f"create view trades as select * from '{tables}/trades/**/*.parquet'")
    there = base.sql("""
        select instrument, time_ns // 1_000_000_000 as second, first(price order by sequence) as open,
          last(price order by sequence) as close, sum(volume)::int as volume, count(*) as trades
        from trades group by 1, 2 order by 1, 2
    """).fetchall()
    names = ("instrument", "start_s", "open", "close", "volume", "trades")
    assert [tuple(row[name] for name in names) for row in rows] == there
    assert {(row["orders"], row["bid_depth"]) for row in rows} == {(None, None)}
    assert all(row["spread"] > 0 for row in rows)


@pytest.mark.parametrize("every", ["1", "0s", "-1s", "1 h", ""])
def test_a_length_that_is_none_is_refused(every: str) -> None:
    done = CliRunner().invoke(main, ["spark", "bars", f"--every={every}"])
    assert done.exit_code == 2
    assert "give a number of up to eight digits and a unit" in done.stderr
