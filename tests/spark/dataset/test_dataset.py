"""The tables of many runs: what an ingest writes, replaces and leaves out, and what a killed one leaves."""

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
from spark_tables import facts_of_run, summary_of

from exchange_simulation.experiments.pipeline.run_sources import find_runs
from spark.dataset.folder import DatasetFolder, LocalFolder
from spark.dataset.hadoop_folder import HadoopFolder
from spark.dataset.ingesting import ingest_runs
from spark.dataset.replacing import replacing_files, staged
from spark.dataset.runs import RUNS_A_FILE, SPOOL_BYTES_A_FILE, IngestedRun, parts_of, read_runs
from spark.dataset.summarizing import summarize_runs
from spark.errors import DatasetUnreadableError, TablesBusyError
from spark.run_facts import read_run
from spark.run_tables import write_run_tables
from spark.tables.problems import COPY, NO_RECORD
from spark.tables.schemas import KINDS, table_schema
from tests.spark.dataset.conftest import Dataset, RecordedRuns, SparkCommand, write_trial

pytestmark = pytest.mark.jvm
ALONE = ("alone", "run [2]")


def test_runs_are_found_by_trial_and_named_without_a_record(recorded: RecordedRuns) -> None:
    names = {(source.facts.experiment, source.facts.run) for source in recorded.sources.sources}
    assert names == {("a-trial", "first"), ("a-trial", "second"), ALONE}
    assert [Path(folder).name for folder in recorded.sources.left_out] == ["killed"]


def rows_of(folder: DatasetFolder, table: str) -> list[dict[str, Any]]:
    """Read a table as a reader other than Spark does, which knows its folder only."""
    rows: list[dict[str, Any]] = pq.read_table(Path(folder.url.removeprefix("file://")) / table).to_pylist()
    return rows


def test_every_record_is_in_its_table_under_its_run(dataset: Dataset, recorded: RecordedRuns) -> None:
    for kind in KINDS:
        expected = sum(record["kind"] == kind for record in recorded.alone.records)
        if not expected:
            assert not dataset.folder.files(kind), "a kind without a record has no table"
            continue
        rows = [row for row in rows_of(dataset.folder, kind) if (row["experiment"], row["run"]) == ALONE]
        assert len(rows) == expected
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


def test_a_run_among_others_has_the_figures_that_it_has_by_itself(dataset: Dataset, recorded: RecordedRuns) -> None:
    folder = recorded.results / "a-trial" / "first"
    write_run_tables(folder, read_run(folder))
    run, seconds = summary_of(folder)
    assert [row for row in rows_of(dataset.folder, "summary") if row["run"] == "first"] == [run]
    assert [row for row in rows_of(dataset.folder, "seconds") if row["run"] == "first"] == seconds


def test_each_transport_of_an_experiment_is_an_arm(dataset: Dataset) -> None:
    rows = rows_of(dataset.folder, "arms")
    arms = {(row["experiment"], row["transport"]) for row in rows}
    assert arms == {("a-trial", "zeromq"), ("a-trial", "amqp"), ("alone", "zeromq")}
    assert [row["repeats"] for row in rows] == [1, 1, 1]


def test_arms_with_different_rates_are_not_compared(dataset: Dataset) -> None:
    assert rows_of(dataset.folder, "comparison") == []


@pytest.fixture
def tables(tmp_path: Path) -> DatasetFolder:
    return LocalFolder(str(tmp_path / "tables"))


def count_rows(tables: DatasetFolder) -> dict[tuple[str, str], int]:
    """Return the number of rows by table and run, as any reader counts them."""
    counts: Counter[tuple[str, str]] = Counter()
    for name in tables.names():
        if not name.startswith("."):
            counts.update((name, row["run"]) for row in rows_of(tables, name))
    return dict(counts)


@pytest.mark.parametrize(
    "finished_renames",
    [
        pytest.param(0, id="before it decides", marks=pytest.mark.long),
        pytest.param(1, id="after it decided", marks=pytest.mark.long),
        pytest.param(4, id="after three files were moved"),
    ],
)
def test_a_killed_ingest_changes_nothing_or_is_completed_by_the_next_job(
    tables: DatasetFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    finished_renames: int,
) -> None:
    """An ingest's first rename decides that it counts; each further rename moves a file."""
    write_trial(tmp_path / "results", "first", "second")
    first, second = find_runs(tmp_path / "results").sources
    ingest_runs(tables, [first], again=False)
    before = count_rows(tables)
    rename = LocalFolder.rename
    renames = 0

    def rename_or_die(folder: LocalFolder, old: str, new: str) -> None:
        nonlocal renames
        if renames == finished_renames:
            raise KeyboardInterrupt
        renames += 1
        rename(folder, old, new)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFolder, "rename", rename_or_die)
        with pytest.raises(KeyboardInterrupt):
            ingest_runs(tables, [first, second], again=True)
    after_kill = count_rows(tables)
    assert {key: after_kill[key] for key in before} == before, "the first run's rows are there, each once"
    has_new_rows = len(after_kill) > len(before)
    assert has_new_rows == (finished_renames > 1)

    with replacing_files(tables):  # the next job
        completed = count_rows(tables)
    is_completed = len(completed) > len(before)
    assert is_completed == (finished_renames > 0)

    ingest_runs(tables, [first, second], again=True)
    after = count_rows(tables)
    assert {run for _, run in after} == {"first", "second"}
    for (table, run), rows in before.items():
        assert after[table, run] == rows
        assert after[table, "second"] == rows


def test_a_table_loses_the_rows_that_a_run_no_longer_has(tables: DatasetFolder, tmp_path: Path) -> None:
    MadeUpRun(seconds=1).write(tmp_path / "results" / "run", "no JSON at all")
    sources = find_runs(tmp_path / "results").sources
    ingest_runs(tables, sources, again=False)
    assert len(rows_of(tables, "quarantine")) == 1
    (spool,) = (tmp_path / "results" / "run" / "spool").glob("*2.jsonl")
    spool.write_text("".join(line for line in spool.read_text().splitlines(True) if line.startswith("{")))
    ingest_runs(tables, sources, again=True)
    assert tables.files("quarantine") == []


def test_a_job_that_fails_after_writing_rows_changes_nothing(tables: DatasetFolder) -> None:
    def stage_orders(rows: int) -> None:
        path = Path(str(tables.local)) / staged("orders/experiment=e/part-0.parquet")
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": range(rows)}), path)

    def stage_orders_and_fail() -> None:
        stage_orders(rows=1)
        raise OSError("the disk is full")

    with replacing_files(tables):
        stage_orders(rows=2)
    with pytest.raises(OSError, match="the disk is full"), replacing_files(tables):
        stage_orders_and_fail()
    assert len(rows_of(tables, "orders")) == 2
    with replacing_files(tables):
        assert len(rows_of(tables, "orders")) == 2, "the next job does not take the rows of the failed one"


def test_two_jobs_do_not_change_the_tables_at_once(tables: DatasetFolder) -> None:
    with (
        replacing_files(tables),
        pytest.raises(TablesBusyError, match="another job is changing the tables"),
        replacing_files(tables),
    ):
        raise AssertionError("both are in")


def test_a_local_folder_and_one_of_hadoop_do_the_same(spark: SparkSession, tmp_path: Path) -> None:
    local_answers = answers_during_changes(LocalFolder(f"file://{tmp_path}/a"))
    assert local_answers == answers_during_changes(HadoopFolder(spark, f"file://{tmp_path}/b"))
    assert local_answers[-1] == ["kind/experiment=a [1] *ä/part-0.parquet"]


def answers_during_changes(folder: DatasetFolder) -> list[object]:
    """Change files of the folder in all ways; return what its methods returned before, between and after."""
    old = "kind/experiment=a [1] *ä/part-0.parquet"
    new = "kind/new/part-0.parquet"
    answers: list[object] = [folder.names(), folder.files("kind"), folder.size("kind")]
    for name, value in ((old, 1), (new, 2)):
        folder.touch(name)
        pq.write_table(pa.table({"value": [value]}), folder.path(name).removeprefix("file:"))
    folder.touch("kind/no part")
    answers += [folder.rows(old), folder.files("kind"), folder.size("kind"), folder.size(old)]
    folder.rename(new, old)
    answers += [folder.rows(old), folder.names()]
    with folder.writable(new) as path:
        pq.write_table(pa.table({"value": [3]}), path)
    with folder.readable(new) as path:
        answers += [folder.rows(new), path.read_bytes()]
    folder.remove(new)
    folder.rename("kind", "deeper/below/kind")
    answers += [folder.names(), folder.files("kind"), folder.files("deeper")]
    folder.rename("deeper/below/kind", "kind")
    for name in ("deeper", "kind/no part", "a missing name"):
        folder.remove(name)
    answers += [folder.names(), folder.files("kind")]
    return answers


def test_missing_tables_and_tables_of_an_older_version_are_refused(
    spark: SparkSession, tables: DatasetFolder, tmp_path: Path
) -> None:
    assert read_runs(tables) == []
    with pytest.raises(DatasetUnreadableError, match=r"no runs have tables.*exchange spark ingest"):
        summarize_runs(spark, tables)
    (tmp_path / "tables" / "manifest-000001.json").write_text("{}")
    with pytest.raises(DatasetUnreadableError, match=r"older version \(it has manifest-000001\.json\).*spark ingest"):
        summarize_runs(spark, tables)


def test_a_run_keeps_its_part_and_a_new_run_gets_one_with_room() -> None:
    """Part 0 of a-trial is full, and part 1 holds one run."""
    earlier = []
    for number in range(RUNS_A_FILE + 1):
        facts = facts_of_run(experiment="a-trial", run=f"{number}")
        earlier.append(IngestedRun(facts=facts, fingerprint="", part=number // RUNS_A_FILE))
    assert parts_of([(("a-trial", "0"), 9), (("a-trial", f"{RUNS_A_FILE}"), 9)], earlier) == [0, 1]
    assert parts_of([(("a-trial", "new"), 9), (("alone", "new"), 9)], earlier) == [1, 0]


def test_runs_of_an_hour_share_no_file() -> None:
    names = [("a-trial", f"{number}") for number in range(3)]
    assert parts_of([(name, SPOOL_BYTES_A_FILE) for name in names], []) == [0, 1, 2]


def test_a_trial_s_warm_ups_are_not_among_its_repeats(tmp_path: Path) -> None:
    """The name of a warm-up begins with 00 and lies in a trial."""
    write_trial(tmp_path, "00-zeromq-8000-abcdef", "01-amqp-8000-fedcba")
    MadeUpRun(seconds=1).write(tmp_path / "00-a run of that name")
    runs = find_runs(tmp_path)
    assert [source.facts.run for source in runs.sources] == ["00-a run of that name", "01-amqp-8000-fedcba"]
    assert runs.left_out == {}


def test_a_damaged_run_is_left_out_with_its_reason(tmp_path: Path) -> None:
    run = MadeUpRun(seconds=1).write(tmp_path / "run")
    (run / "run.json").write_text("[]")
    runs = find_runs(tmp_path)
    assert runs.sources == ()
    assert "is damaged" in runs.left_out[str(run)]


def test_the_names_of_files_at_the_root_of_a_bucket_are_whole() -> None:
    """Regression: their first letter was cut off, so no job could be finished."""
    path = MagicMock()
    path.getName.return_value = "part-0.parquet"
    path.toString.return_value = "s3a://bucket/runs/part-0.parquet"
    spark = MagicMock()
    file_system = spark._jvm.org.apache.hadoop.fs.Path.return_value.getFileSystem.return_value
    file_system.makeQualified.return_value.toString.return_value = "s3a://bucket/"
    statuses = file_system.listFiles.return_value
    statuses.hasNext.side_effect = [True, False]
    statuses.next.return_value.getPath.return_value = path
    folder = HadoopFolder(spark, "s3a://bucket/")
    assert folder.files("runs") == ["runs/part-0.parquet"]
    assert folder.path("runs") == "s3a://bucket/runs"


def test_a_damaged_table_is_made_anew_and_never_read(tmp_path: Path, spark_command: SparkCommand) -> None:
    results = tmp_path / "results"
    write_trial(results, "first", "second")
    assert spark_command("ingest", results).exit_code == 0
    (file,) = (results / "tables" / "traffic").rglob("part-*.parquet")
    whole = pq.read_table(file).to_pylist()
    file.write_bytes(file.read_bytes()[:100])
    again = spark_command("ingest", results, "--again")
    assert again.exit_code == 0, again.output
    assert pq.read_table(file).to_pylist() == whole


def test_bytes_that_are_no_text_reach_no_table(tmp_path: Path, spark_command: SparkCommand) -> None:
    results = tmp_path / "results"
    trial = write_trial(results, "first", "second")
    with (trial / "first" / "spool" / "000001.jsonl").open("ab") as spool:
        spool.write(b"no record \xff\xfe\n")
    assert spark_command("ingest", results).exit_code == 0
    (file,) = (results / "tables" / "quarantine").rglob("part-*.parquet")
    (example,) = pq.read_table(file, columns=["example"])["example"].to_pylist()
    assert example.startswith("no record ")
