"""A run is known in the tables by its experiment and its name: runs of one name in two folders stay two runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow.parquet as pq
import pytest
from spark_runs import MadeUpRun

from exchange_simulation.experiments.pipeline.run_sources import find_runs
from spark.dataset.folder import LocalFolder
from spark.dataset.ingesting import ingest_runs
from spark.errors import DatasetUnreadableError
from spark.run_facts import ALONE


def rows_of(tables: LocalFolder, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(Path(tables.url.removeprefix("file://")) / table).to_pylist()
    return rows


@pytest.fixture
def tables(tmp_path: Path) -> LocalFolder:
    return LocalFolder(f"file://{tmp_path}/tables")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two folders without a plan, as `exchange faults` makes them, each with a run of the same name."""
    results = tmp_path / "results"
    MadeUpRun(seconds=1, orders_per_s=100).write(results / "monday" / "first")
    MadeUpRun(seconds=1, orders_per_s=200).write(results / "tuesday" / "first")
    return results


def test_runs_of_one_name_in_two_folders_are_two_runs(results: Path, tables: LocalFolder) -> None:
    ingested = ingest_runs(tables, find_runs(results).sources, again=False)
    assert (ingested.runs, ingested.new_runs) == (2, 2)
    assert [(row["experiment"], row["run"]) for row in rows_of(tables, "runs")] == [
        ("monday", "first"),
        ("tuesday", "first"),
    ]
    traffic = rows_of(tables, "traffic")
    assert sum(row["orders_sent"] for row in traffic if row["experiment"] == "monday") == 101
    assert sum(row["orders_sent"] for row in traffic if row["experiment"] == "tuesday") == 201


def test_a_run_in_the_folder_itself_belongs_to_no_experiment(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (results / "monday", results / "monday" / "first"):
        (source,) = find_runs(folder).sources
        assert source.name == (ALONE, "first")
    monkeypatch.chdir(results / "monday" / "first")
    (source,) = find_runs(Path()).sources
    assert source.name == (ALONE, "first")


def test_two_runs_of_one_name_and_experiment_are_refused(results: Path, tables: LocalFolder) -> None:
    in_results = MadeUpRun(seconds=1).write(results / "first")
    in_folder = MadeUpRun(seconds=1).write(results / ALONE / "first")
    with pytest.raises(DatasetUnreadableError, match=f"{in_folder} and {in_results} .* rename one of the two"):
        ingest_runs(tables, find_runs(results).sources, again=False)
    assert tables.files("runs") == []


def test_a_run_that_older_tables_have_without_its_folder_is_not_added_twice(results: Path, tables: LocalFolder) -> None:
    first, second = find_runs(results).sources
    of_older_version = replace(first, facts=replace(first.facts, experiment=ALONE))
    ingest_runs(tables, [of_older_version], again=False)
    with pytest.raises(DatasetUnreadableError, match=r"has first of monday as a run of alone.*make the tables again"):
        ingest_runs(tables, [first, second], again=False)
    assert [row["experiment"] for row in rows_of(tables, "runs")] == [ALONE]


def test_a_copy_of_a_run_in_a_folder_is_a_run_of_its_own(tmp_path: Path, tables: LocalFolder) -> None:
    run = MadeUpRun(seconds=1).write(tmp_path / "results" / "first")
    ingest_runs(tables, find_runs(tmp_path / "results").sources, again=False)
    copytree(run, tmp_path / "results" / "copies" / "first")
    ingested = ingest_runs(tables, find_runs(tmp_path / "results").sources, again=False)
    assert (ingested.runs, ingested.new_runs) == (2, 1)
