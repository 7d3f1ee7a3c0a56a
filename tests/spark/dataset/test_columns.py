"""The columns that queries need: a run's settings and start, a key that joins samples to orders, and times."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun

from exchange_simulation.experiments.pipeline.events import EVENT_TABLES
from exchange_simulation.experiments.pipeline.run_sources import find_runs
from spark.dataset.folder import DatasetFolder, LocalFolder
from spark.dataset.ingesting import ingest_runs
from spark.dataset.replacing import replacing_files, staged
from spark.dataset.summarizing import summarize_runs
from spark.dataset.views import create_views
from spark.errors import DatasetUnreadableError
from tests.spark.dataset.conftest import record_streams

PAIRS = 2
RUN_JSON = {
    "started_at": "2026-11-27T01:20:16.058+01:00",
    "versions": {"exchange": "0.1.0", "commit": "1cbf0caa7b58"},
    "noise": {"share_of_all_cpus": 0.25},
    "host": {"cpu": "AMD EPYC", "cores": 2, "load_before": [13.25, 1.5]},
}
SETTINGS = {
    "seed": 7,
    "packing": 10,
    "policy": "exact-price",
    "nagle": ["gateway", "engine"],
    "cpus": {},
    "secure": None,
}


def ingested(tmp_path: Path, **settings: Any) -> LocalFolder:
    """Ingest a run with these settings and RUN_JSON; return the tables."""
    folder = MadeUpRun(seconds=1).write(tmp_path / "results" / "run", **SETTINGS, **settings)
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, **RUN_JSON}))
    tables = LocalFolder(f"file://{tmp_path}/tables")
    ingest_runs(tables, find_runs(tmp_path / "results").sources, again=False)
    return tables


def test_a_run_has_its_settings_its_start_and_its_machine_in_columns(tmp_path: Path) -> None:
    tables = ingested(tmp_path)
    (row,) = duckdb.sql(f"select * from '{tables.local}/runs/**/*.parquet'").to_arrow_table().to_pylist()
    assert row["started_at"] == datetime(2026, 11, 27, 0, 20, 16, 58_000, UTC)
    assert (row["seed"], row["packing"], row["policy"], row["version"]) == (7, 10, "exact-price", "0.1.0")
    assert row["noise"] == 0.25
    assert dict(row["host"]) == {"cpu": "AMD EPYC", "cores": "2", "load_before": "13.25,1.5"}
    settings = dict(row["settings"])
    assert settings["nagle"] == "gateway,engine"
    assert settings["transport"] == "zeromq"
    assert settings["cpus"] == "{}"
    assert "secure" not in settings


def test_a_seed_that_no_column_holds_is_in_the_settings(tmp_path: Path) -> None:
    folder = MadeUpRun(seconds=1).write(tmp_path / "run", seed=2**64 - 1)
    (source,) = find_runs(folder.parent).sources
    assert source.facts.seed is None
    assert source.facts.settings["seed"] == str(2**64 - 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"started_at": "noon"}, "started_at is 'noon', and is a time as"),
        ({"settings": {"packing": "ten"}}, "settings.packing is 'ten', and is a whole number from 0 on"),
    ],
)
def test_a_run_json_with_a_wrong_value_is_left_out_with_the_reason(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    folder = MadeUpRun(seconds=1).write(tmp_path / "run")
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, **changes}))
    assert message in find_runs(tmp_path).left_out[str(folder)]


def test_samples_are_joined_to_the_orders_of_their_pair(tmp_path: Path) -> None:
    """Both pairs have orders of the same numbers, so a join without the pair has every sample twice."""
    folder = tmp_path / "results" / "run"
    for pair in range(1, PAIRS + 1):
        made_up = MadeUpRun(seconds=1, pair=pair)
        for record in made_up.records:
            if record["kind"] == "sample":
                record["payload"]["id"] //= 10_000
        if pair == 1:
            made_up.write(folder, pairs=PAIRS)
        else:
            made_up.write_beside(folder)
    record_streams(folder, seed=2)
    for stream in ("orders", "answers"):
        (folder / f"{stream}.bin").rename(folder / f"{stream}.2.bin")
    (folder / "orders.due").rename(folder / "orders.2.due")
    record_streams(folder, seed=1)
    tables = tmp_path / "tables"
    ingest_runs(LocalFolder(f"file://{tables}"), find_runs(tmp_path / "results").sources, False, EVENT_TABLES)
    for name in ("sample", "orders"):
        duckdb.sql(f"create or replace view {name} as select * from '{tables}/{name}/**/*.parquet'")
    ((samples,),) = duckdb.sql("select count(*) from sample").fetchall()
    joined = "select count(*) from sample join orders using"
    assert duckdb.sql(f"{joined} (experiment, run, pair, id)").fetchall() == [(samples,)]
    assert duckdb.sql(f"{joined} (experiment, run, id)").fetchall() == [(PAIRS * samples,)]
    documented = f"{joined} (experiment, run, id) where orders.gateway = sample.pair"
    assert duckdb.sql(documented).fetchall() == [(samples,)]


def test_tables_of_a_version_without_these_columns_are_refused(tmp_path: Path) -> None:
    tables = ingested(tmp_path)
    (file,) = tables.files("runs")
    path = Path(str(tables.local)) / file
    pq.write_table(pq.ParquetFile(path).read().drop_columns(["settings"]), path)
    with pytest.raises(DatasetUnreadableError, match=r"older version.*make the tables again.*spark ingest"):
        ingest_runs(tables, find_runs(tmp_path / "results").sources, again=True)


def test_a_file_of_another_name_among_the_runs_is_a_sentence(tmp_path: Path) -> None:
    """It was a ValueError of int()."""
    tables = ingested(tmp_path)
    (file,) = tables.files("runs")
    path = Path(str(tables.local)) / file
    path.rename(path.with_name("part-of-mine.parquet"))
    with pytest.raises(DatasetUnreadableError, match=r"has runs/experiment=alone/part-of-mine\.parquet.*move it away"):
        ingest_runs(tables, find_runs(tmp_path / "results").sources, again=False)


def test_arms_and_runs_have_their_settings_in_sql(spark: SparkSession, tmp_path: Path) -> None:
    tables = ingested(tmp_path)
    summarize_runs(spark, tables)
    create_views(spark, tables)
    query = "select packing, policy, settings['nagle'] as nagle, settings['seed'] as seed from arms"
    assert [tuple(row) for row in spark.sql(query).collect()] == [(10, "exact-price", "gateway,engine", None)]
    of_run = "select started_at, settings['packing'] from runs join summary using (experiment, run)"
    assert [row[1] for row in spark.sql(of_run).collect()] == ["10"]


def test_the_table_of_runs_lands_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is killed, a run in the table of runs has its rows in all others."""
    moved = []
    rename = LocalFolder.rename

    def noted_rename(folder: LocalFolder, old: str, new: str) -> None:
        moved.append(new.partition("/")[0])
        rename(folder, old, new)

    monkeypatch.setattr(LocalFolder, "rename", noted_rename)
    ingested(tmp_path)
    assert moved[0] == ".decided"
    assert moved[-1] == "runs"
    assert moved.count("runs") == 1


def test_an_object_store_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    class ObjectStore(LocalFolder):
        renames_at_once = False

    tables: DatasetFolder = ObjectStore(f"file://{tmp_path}/tables")
    with pytest.raises(DatasetUnreadableError, match=r"without a rename that happens at once.*or in hdfs:"):
        ingest_runs(tables, [], again=False)
    assert not (tmp_path / "tables").exists()


def test_a_rebuilt_part_has_the_rows_of_other_runs_in_bounded_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark.tables.table_writer.ROWS_A_GROUP", 1)
    tables = LocalFolder(f"file://{tmp_path}/tables")
    for number in range(3):
        MadeUpRun(seconds=1).write(tmp_path / "results" / f"run-{number}")
        ingest_runs(tables, find_runs(tmp_path / "results").sources, again=False)
    (file,) = tables.files("sample")
    with pq.ParquetFile(Path(str(tables.local)) / file) as parquet:
        runs = [parquet.read_row_group(group)["run"].unique().to_pylist() for group in range(parquet.num_row_groups)]
    assert sorted(runs) == [["run-0"], ["run-1"], ["run-2"]]


def test_a_staged_file_without_rows_removes_the_one_that_it_replaces(tmp_path: Path) -> None:
    tables = LocalFolder(f"file://{tmp_path}/tables")
    name = "quarantine/experiment=e/part-0.parquet"
    with replacing_files(tables), tables.writable(name) as path:
        pq.write_table(pa.table({"run": ["a"]}), path)
    with replacing_files(tables):
        tables.touch(staged(f"{name}.emptied"))
    assert tables.files("quarantine") == []
