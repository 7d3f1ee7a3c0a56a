from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun
from spark_tables import run_record, summary_of

from exchange_simulation.experiments.pipeline.run_sources import find_runs
from spark.dataset.folder import DatasetFolder, HadoopFolder, LocalFolder
from spark.dataset.ingesting import ingest_runs
from spark.dataset.replacing import changing, staged
from spark.dataset.runs import RUNS_A_FILE, IngestedRun, parts_of, read_runs
from spark.dataset.summarizing import summarize_runs
from spark.errors import DatasetUnreadableError, TablesBusyError
from spark.jobs import write_summary
from spark.run_facts import read_run
from spark.tables.files import tables_folder
from spark.tables.schemas import KINDS, table_schema
from spark.tables.spool import COPY, NO_RECORD, ingest
from tests.spark.dataset.conftest import Dataset, RecordedRuns, trial_of

pytestmark = pytest.mark.jvm
ALONE = ("alone", "run [2]")


def test_runs_are_found_by_trial_and_named_without_a_record(recorded: RecordedRuns) -> None:
    names = {(source.record.experiment, source.record.run) for source in recorded.found.sources}
    assert names == {("a-trial", "first"), ("a-trial", "second"), ALONE}
    assert [Path(folder).name for folder in recorded.found.left_out] == ["killed"]


def rows_of(folder: DatasetFolder, table: str) -> list[dict[str, Any]]:
    """Read a table as a reader other than Spark does, which knows its folder only."""
    rows: list[dict[str, Any]] = pq.read_table(Path(folder.url.removeprefix("file://")) / table).to_pylist()
    return rows


def test_every_record_is_in_its_table_under_its_run(dataset: Dataset, recorded: RecordedRuns) -> None:
    for kind in KINDS:
        rows = [row for row in rows_of(dataset.folder, kind) if (row["experiment"], row["run"]) == ALONE]
        assert len(rows) == sum(record["kind"] == kind for record in recorded.alone.records)
        assert set(rows[0]) == {*table_schema(kind).names, "experiment", "run"}


def test_damaged_and_copied_lines_are_in_quarantine(dataset: Dataset) -> None:
    rows = rows_of(dataset.folder, "quarantine")
    assert sorted(row["problem"] for row in rows) == sorted([NO_RECORD, COPY])
    assert {row["file"] for row in rows} <= {"000001.jsonl", "000002.jsonl"}
    assert "no JSON at all" in {row["example"] for row in rows}


def test_a_table_has_one_file_for_the_runs_of_an_experiment(dataset: Dataset) -> None:
    files = dataset.folder.files("completion")
    assert files == ["completion/experiment=a-trial/part-0.parquet", "completion/experiment=alone/part-0.parquet"]
    assert dataset.folder.files("arms") == ["arms/part-0.parquet"]


def test_a_run_among_others_has_the_figures_that_it_has_by_itself(
    spark: SparkSession, dataset: Dataset, recorded: RecordedRuns
) -> None:
    folder = recorded.results / "a-trial" / "first"
    ingest(spark, folder / "spool", own := tables_folder(folder))
    write_summary(spark, own, read_run(folder))
    run, seconds = summary_of(folder)
    assert [row for row in rows_of(dataset.folder, "summary") if row["run"] == "first"] == [run]
    assert [row for row in rows_of(dataset.folder, "seconds") if row["run"] == "first"] == seconds


def test_arms_are_medians_of_repeats_and_transports_are_compared(dataset: Dataset) -> None:
    arms = {(row["experiment"], row["transport"]): row for row in rows_of(dataset.folder, "arms")}
    assert arms.keys() == {("a-trial", "zeromq"), ("a-trial", "amqp"), ("alone", "zeromq")}
    assert {row["repeats"] for row in arms.values()} == {1}
    assert rows_of(dataset.folder, "comparison") == []  # they were offered different rates


@pytest.fixture
def tables(tmp_path: Path) -> DatasetFolder:
    return LocalFolder(str(tmp_path / "tables"))


def counted_rows(tables: DatasetFolder) -> dict[tuple[str, str], int]:
    """The rows of each table and run, as any reader counts them."""
    names = [name for name in tables.names() if not name.startswith(".")]
    return dict(Counter((name, row["run"]) for name in names for row in rows_of(tables, name)))


@pytest.mark.parametrize("moved", [3, *(pytest.param(moved, marks=pytest.mark.long) for moved in (None, 0))])
def test_a_killed_ingest_changes_nothing_or_is_completed_by_the_next_job(
    spark: SparkSession, tables: DatasetFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int | None
) -> None:
    """Killed before it decides (None), or after so many of its files were moved."""
    trial_of(tmp_path / "results", "first", "second")
    first, second = find_runs(tmp_path / "results").sources
    ingest_runs(spark, tables, [first], again=False)
    before, renames = counted_rows(tables), iter(range(100))
    rename = LocalFolder.rename

    def killed(folder: LocalFolder, old: str, new: str) -> None:
        if next(renames) == (0 if moved is None else moved + 1):
            raise KeyboardInterrupt
        rename(folder, old, new)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFolder, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            ingest_runs(spark, tables, [first, second], again=True)
    seen = counted_rows(tables)
    assert {key: seen[key] for key in before} == before  # whole, and once
    assert (len(seen) > len(before)) == bool(moved)
    with changing(tables):
        completed = counted_rows(tables)
    assert (len(completed) == len(before)) == (moved is None)
    ingest_runs(spark, tables, [first, second], again=True)
    after = counted_rows(tables)
    assert {run for _, run in after} == {"first", "second"}
    assert {key: after[key] for key in before} == before
    assert all(after[table, "second"] == rows for (table, _), rows in before.items())


def test_a_table_loses_the_rows_that_a_run_no_longer_has(
    spark: SparkSession, tables: DatasetFolder, tmp_path: Path
) -> None:
    MadeUpRun(seconds=1).write(tmp_path / "results" / "run", "no JSON at all")
    sources = find_runs(tmp_path / "results").sources
    ingest_runs(spark, tables, sources, again=False)
    assert len(rows_of(tables, "quarantine")) == 1
    (spool,) = (tmp_path / "results" / "run" / "spool").glob("*2.jsonl")
    spool.write_text("".join(line for line in spool.read_text().splitlines(True) if line.startswith("{")))
    ingest_runs(spark, tables, sources, again=True)
    assert tables.files("quarantine") == []


def test_a_job_that_fails_amid_its_rows_changes_nothing(tables: DatasetFolder) -> None:
    def write(rows: int, then: Exception | None = None) -> None:
        (path := Path(str(tables.local)) / staged("orders/part=0/part-a.parquet")).parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": range(rows)}), path)
        if then:
            raise then

    with changing(tables):
        write(rows=2)
    with pytest.raises(OSError, match="the disk is full"), changing(tables):
        write(rows=1, then=OSError("the disk is full"))
    assert len(rows_of(tables, "orders")) == 2
    with changing(tables):
        assert len(rows_of(tables, "orders")) == 2, "the next job does not take what the failed one left"


def test_two_jobs_do_not_change_the_tables_at_once(tables: DatasetFolder) -> None:
    with changing(tables), pytest.raises(TablesBusyError, match="another job is changing the tables"), changing(tables):
        raise AssertionError("both are in")


def test_a_folder_on_this_machine_and_one_of_hadoop_s_do_the_same(spark: SparkSession, tmp_path: Path) -> None:
    local = _changed(LocalFolder(f"file://{tmp_path}/a"))
    assert local == _changed(HadoopFolder(spark, f"file://{tmp_path}/b"))
    assert local[-1] == ["kind/experiment=a [1] *ä/part-0.parquet"]


def _changed(folder: DatasetFolder) -> list[object]:
    """What a folder says of itself while its files change."""
    old, new = ("kind/experiment=a [1] *ä/part-0.parquet", "kind/new/part-0.parquet")
    told: list[object] = [folder.names(), folder.files("kind"), folder.size("kind")]
    for name, value in ((old, 1), (new, 2)):
        folder.touch(name)
        pq.write_table(pa.table({"value": [value]}), folder.path(name).removeprefix("file:"))
    folder.touch("kind/no part")
    told += [folder.rows(old), folder.files("kind"), folder.size("kind"), folder.size(old)]
    folder.rename(new, old)
    told += [folder.rows(old), folder.names()]
    folder.rename("kind", "deeper/below/kind")
    told += [folder.names(), folder.files("kind"), folder.files("deeper")]
    folder.rename("deeper/below/kind", "kind")
    for name in ("deeper", "kind/no part", "not there"):
        folder.remove(name)
    return [*told, folder.names(), folder.files("kind")]


def test_missing_tables_and_those_of_an_older_version_are_each_told(
    spark: SparkSession, tables: DatasetFolder, tmp_path: Path
) -> None:
    assert read_runs(tables) == []
    with pytest.raises(DatasetUnreadableError, match=r"no runs have tables.*exchange spark ingest"):
        summarize_runs(spark, tables)
    (tmp_path / "tables" / "manifest-000001.json").write_text("{}")
    with pytest.raises(DatasetUnreadableError, match=r"older version \(manifest-000001\.json\).*spark ingest"):
        summarize_runs(spark, tables)


def test_a_run_keeps_its_file_and_a_new_run_goes_where_there_is_room() -> None:
    there = [
        IngestedRun(record=run_record(run=f"{number}"), fingerprint="", part=number // RUNS_A_FILE)
        for number in range(RUNS_A_FILE + 1)
    ]
    new = [("a-trial", "0"), ("a-trial", "new"), ("alone", "new"), ("a-trial", str(RUNS_A_FILE))]
    assert parts_of(new, there) == [0, 1, 0, 1]


def test_a_trial_s_warm_ups_are_not_among_its_repeats(tmp_path: Path) -> None:
    trial_of(tmp_path, "00-zeromq-8000-abcdef", "01-amqp-8000-fedcba")
    MadeUpRun(seconds=1).write(tmp_path / "00-a run of that name")
    found = find_runs(tmp_path)
    assert [source.record.run for source in found.sources] == ["00-a run of that name", "01-amqp-8000-fedcba"]
    assert found.left_out == {}


def test_a_run_that_is_damaged_is_left_out_with_its_reason(tmp_path: Path) -> None:
    (MadeUpRun(seconds=1).write(tmp_path / "run") / "run.json").write_text("[]")
    found = find_runs(tmp_path)
    assert found.sources == ()
    assert "is damaged" in found.left_out[str(tmp_path / "run")]


def test_the_names_of_files_at_the_root_of_a_bucket_are_whole() -> None:
    """Their first letter was cut off, so no job could be finished."""
    spark = MagicMock()
    files = spark._jvm.org.apache.hadoop.fs.Path.return_value.getFileSystem.return_value
    files.makeQualified.return_value.toString.return_value = "s3a://bucket/"
    path = MagicMock()
    path.getName.return_value, path.toString.return_value = "part-0.parquet", "s3a://bucket/runs/part-0.parquet"
    found = files.listFiles.return_value
    found.hasNext.side_effect, found.next.return_value.getPath.return_value = [True, False], path
    folder = HadoopFolder(spark, "s3a://bucket/")
    assert (folder.files("runs"), folder.path("runs")) == (["runs/part-0.parquet"], "s3a://bucket/runs")
