from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun
from spark_tables import summary_of

from experiments.pipeline.run_sources import find_runs
from spark.dataset import ingesting
from spark.dataset.folder import DatasetFolder
from spark.dataset.ingesting import ingest_runs
from spark.dataset.manifest import IngestedRun, Manifest, read_manifest
from spark.dataset.summarizing import summarize_runs
from spark.errors import DatasetUnreadableError
from spark.jobs import write_summary
from spark.run_facts import read_run
from spark.tables.files import tables_folder
from spark.tables.schemas import KINDS, table_schema
from spark.tables.spool import COPY, NO_RECORD, ingest
from tests.spark.dataset.conftest import Dataset, RecordedRuns, trial_of

pytestmark = pytest.mark.jvm
ALONE = ("alone", "run [2]")


def test_the_runs_of_a_folder_are_found_by_trial_and_those_without_a_record_are_named(recorded: RecordedRuns) -> None:
    names = {(source.record.experiment, source.record.run) for source in recorded.found.sources}
    assert names == {("a-trial", "first"), ("a-trial", "second"), ALONE}
    assert [Path(folder).name for folder in recorded.found.left_out] == ["killed"]


def records_of(tables: DatasetFolder, run: IngestedRun, kind: str) -> pa.Table:
    """Read tables as a reader other than Spark does: by the manifest."""
    files = [pq.ParquetFile(Path(tables.path(file).removeprefix("file:"))) for file in run.files[kind]]
    return pa.concat_tables([file.read() for file in files])


def test_every_record_is_in_its_table_under_its_run(dataset: Dataset, recorded: RecordedRuns) -> None:
    (run,) = (run for run in dataset.manifest.runs if run.name == ALONE)
    for kind in KINDS:
        table = records_of(dataset.folder, run, kind)
        assert len(table) == run.rows[kind] == sum(record["kind"] == kind for record in recorded.alone.records)
        assert table.column_names == table_schema(kind).names


def test_damaged_and_copied_lines_are_counted_and_in_quarantine(dataset: Dataset) -> None:
    (run,) = (run for run in dataset.manifest.runs if run.name == ALONE)
    assert {problem: unread.lines for problem, unread in run.unread.items()} == {NO_RECORD: 1, COPY: 1}
    (file,) = run.files["quarantine"]
    rows = pq.read_table(Path(dataset.folder.url.removeprefix("file://")) / file).to_pylist()
    assert {row["problem"] for row in rows} == {NO_RECORD, COPY}
    assert {row["file"] for row in rows} <= {"000001.jsonl", "000002.jsonl"}
    assert "no JSON at all" in {row["example"] for row in rows}


def rows_of(dataset: Dataset, table: str) -> list[dict[str, object]]:
    """Read tables as a reader other than Spark does: by the manifest."""
    root = Path(dataset.folder.url.removeprefix("file://"))
    return pa.concat_tables([pq.read_table(root / name) for name in dataset.manifest.summary[table]]).to_pylist()


def test_a_run_among_others_has_the_figures_that_it_has_by_itself(
    spark: SparkSession, dataset: Dataset, recorded: RecordedRuns
) -> None:
    folder = recorded.results / "a-trial" / "first"
    ingest(spark, folder / "spool", own := tables_folder(folder))
    write_summary(spark, own, read_run(folder))
    run, seconds = summary_of(folder)
    assert [row for row in rows_of(dataset, "summary") if row["run"] == "first"] == [run]
    assert [row for row in rows_of(dataset, "seconds") if row["run"] == "first"] == seconds


def test_arms_are_medians_of_repeats_and_a_comparison_holds_transports_against_each_other(dataset: Dataset) -> None:
    arms = {(row["experiment"], row["transport"]): row for row in rows_of(dataset, "arms")}
    assert arms.keys() == {("a-trial", "zeromq"), ("a-trial", "amqp"), ("alone", "zeromq")}
    assert {row["repeats"] for row in arms.values()} == {1}
    assert rows_of(dataset, "comparison") == []  # they were offered different rates


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> DatasetFolder:
    return DatasetFolder(spark, str(tmp_path / "tables"))


def test_a_killed_ingest_is_in_no_table_and_the_next_one_replaces_runs_and_removes_what_it_left(
    spark: SparkSession, tables: DatasetFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial_of(tmp_path / "results", "first", "second")
    first, second = find_runs(tmp_path / "results").sources
    before = ingest_runs(spark, tables, [first])

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ingesting, "write_manifest", killed)
        with pytest.raises(KeyboardInterrupt):
            ingest_runs(spark, tables, [first, second])
    assert read_manifest(tables) == before
    assert len(records_of(tables, before.runs[0], "traffic")) == before.runs[0].rows["traffic"]
    of_kind = Path(tables.url.removeprefix("file://")) / "completion"
    (abandoned := of_kind / "ingest=0").mkdir()
    (of_kind / "ingest=mine").mkdir()

    after = ingest_runs(spark, tables, [first, second])
    assert (len(after.runs), after.runs[0].rows) == (2, before.runs[0].rows)
    assert {len(records_of(tables, run, "completion")) for run in after.runs} == {before.runs[0].rows["completion"]}
    assert not abandoned.exists()
    # A reader may still hold the manifest before; and what is not ours is left alone.
    assert tables.folders("completion") == ["ingest=1", "ingest=2", "ingest=mine"]
    assert tables.names("manifest-") == ["manifest-000001.json", "manifest-000002.json"]


def test_missing_tables_and_a_damaged_manifest_are_each_told(spark: SparkSession, tables: DatasetFolder) -> None:
    assert read_manifest(tables) == Manifest()
    with pytest.raises(DatasetUnreadableError, match=r"no runs have tables.*exchange spark ingest"):
        summarize_runs(spark, tables)
    tables.write("manifest-000001.json", '{"schema": 9}')
    with pytest.raises(
        DatasetUnreadableError, match=r"manifest-000001\.json is damaged, or of another version.*schema 9"
    ):
        read_manifest(tables)


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
