"""A results folder: a trial of two runs, a run with damaged lines in its spool, and a run that never finished."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun

from exchange_simulation.cli.main import main
from exchange_simulation.experiments.pipeline import jobs
from exchange_simulation.experiments.pipeline.run_sources import RunSources, find_runs
from exchange_simulation.market import orders
from matching_engine import order_book
from matching_engine.engine import MatchingEngine
from matching_engine.tape import match_tape
from spark.dataset.folder import DatasetFolder
from spark.dataset.folder_of_url import dataset_folder

SparkCommand = Callable[..., Result]
"""Runs `exchange spark` with these arguments."""
STREAM_ORDERS = 2_000


@dataclass(frozen=True)
class RecordedRuns:
    results: Path
    alone: MadeUpRun
    """The run that belongs to no trial."""
    sources: RunSources


def write_trial(results: Path, zeromq_run: str, amqp_run: str) -> Path:
    """Write a trial of two runs with these names: 100 orders/s over zeromq, 200 orders/s over amqp."""
    trial = results / "a-trial"
    trial.mkdir(parents=True)
    (trial / "plan.json").write_text("{}")
    MadeUpRun(seconds=2, orders_per_s=100).write(trial / zeromq_run, transport="zeromq")
    MadeUpRun(seconds=2, orders_per_s=200).write(trial / amqp_run, transport="amqp")
    return trial


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> RecordedRuns:
    results = tmp_path_factory.mktemp("many") / "results [1] {a} *ä"
    write_trial(results, "first", "second")
    alone = MadeUpRun(seconds=2, orders_per_s=500)
    duplicate = json.dumps(alone.records[-1])
    alone.write(results / "run [2]", "no JSON at all", duplicate)
    killed = MadeUpRun(seconds=1).write(results / "killed")
    (killed / "run.json").unlink()
    return RecordedRuns(results, alone, find_runs(results))


@dataclass(frozen=True)
class Dataset:
    """The tables that the two commands made, and their output."""

    folder: DatasetFolder
    ingest: Result
    summary: Result


@pytest.fixture(scope="session")
def spark_command(spark: SparkSession) -> Iterator[SparkCommand]:
    """Run `exchange spark ...` in this process, with the tests' session: a new JVM would take seconds."""

    @contextmanager
    def open_session_of_tests(*_: object, **__: object) -> Iterator[SparkSession]:
        for view in spark.sql("SHOW VIEWS").collect():  # those of the previous command read other tables
            spark.catalog.dropTempView(view.viewName)
        yield spark

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "open_session", open_session_of_tests)
        yield lambda *arguments: CliRunner().invoke(main, ["spark", *map(str, arguments)])


@pytest.fixture(scope="session")
def dataset(spark: SparkSession, recorded: RecordedRuns, spark_command: SparkCommand) -> Dataset:
    folder = dataset_folder(spark, str(recorded.results / "tables"))
    ingest = spark_command("ingest", recorded.results)
    summary = spark_command("summary", recorded.results)
    return Dataset(folder, ingest, summary)


def record_streams(folder: Path, seed: int = 1) -> Path:
    """Write the streams of a run whose orders were due a millisecond apart."""
    tape = orders(seed, STREAM_ORDERS).tobytes()
    (folder / "orders.bin").write_bytes(tape)
    (np.arange(STREAM_ORDERS, dtype="<u8") * 1_000_000).tofile(folder / "orders.due")
    with (folder / "answers.bin").open("wb") as file:
        engine = MatchingEngine(order_book.OrderBook())
        match_tape(engine, np.frombuffer(tape, np.uint8), lambda span: file.write(span.tobytes()))  # type: ignore[arg-type,return-value]
    return folder


@pytest.fixture(scope="session")
def events(tmp_path_factory: pytest.TempPathFactory, spark_command: SparkCommand) -> Path:
    """A trial of two recorded runs, and a run without streams; ingested without events, then with events."""
    results = tmp_path_factory.mktemp("recorded")
    (results / "trial").mkdir()
    (results / "trial" / "plan.json").write_text("{}")
    for seed in (1, 2):
        record_streams(MadeUpRun(seconds=1).write(results / "trial" / f"run-{seed}"), seed)
    MadeUpRun(seconds=1).write(results / "plain")
    assert spark_command("ingest", results).exit_code == 0
    ingest = spark_command("ingest", results, "--events")
    assert ingest.exit_code == 0, ingest.output
    assert "2 runs added" in ingest.stdout
    assert "1 run without events: exchange run --record keeps them" in ingest.stderr
    return results
