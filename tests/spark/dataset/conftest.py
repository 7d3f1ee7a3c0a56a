"""A results folder: a trial of two runs, a run alone whose spool is damaged, one that never finished."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun

from cli.main import main
from experiments.pipeline import jobs
from experiments.pipeline.run_sources import RunSources, find_runs
from spark.dataset.folder import DatasetFolder, dataset_folder

Typed = Callable[..., Result]


@dataclass(frozen=True)
class RecordedRuns:
    results: Path
    alone: MadeUpRun
    found: RunSources


def trial_of(results: Path, *names: str) -> Path:
    trial = results / "a-trial"
    trial.mkdir(parents=True)
    (trial / "plan.json").write_text("{}")
    for number, name in enumerate(names):
        MadeUpRun(seconds=2, orders_per_s=100 * (number + 1)).write(trial / name, transport=("zeromq", "amqp")[number])
    return trial


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> RecordedRuns:
    results = tmp_path_factory.mktemp("many") / "results [1] {a} *ä"
    trial_of(results, "first", "second")
    alone = MadeUpRun(seconds=2, orders_per_s=500)
    copy = json.dumps(alone.records[-1])
    alone.write(results / "run [2]", "no JSON at all", copy)
    (MadeUpRun(seconds=1).write(results / "killed") / "run.json").unlink()
    return RecordedRuns(results, alone, find_runs(results))


@dataclass(frozen=True)
class Dataset:
    """The tables that the two commands made, and their output."""

    folder: DatasetFolder
    ingest: Result
    summary: Result


@pytest.fixture(scope="session")
def typed(spark: SparkSession) -> Iterator[Typed]:
    """`exchange spark ...` as typed, in this process and its session: a JVM of its own takes seconds."""

    @contextmanager
    def open_ours(*_: object, **__: object) -> Iterator[SparkSession]:
        for view in spark.sql("SHOW VIEWS").collect():  # of another command, with tables of its own
            spark.catalog.dropTempView(view.viewName)
        yield spark

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "open_session", open_ours)
        yield lambda *arguments: CliRunner().invoke(main, ["spark", *map(str, arguments)])


@pytest.fixture(scope="session")
def dataset(spark: SparkSession, recorded: RecordedRuns, typed: Typed) -> Dataset:
    folder = dataset_folder(spark, str(recorded.results / "tables"))
    ingest, summary = typed("ingest", recorded.results), typed("summary", recorded.results)
    return Dataset(folder, ingest, summary)
