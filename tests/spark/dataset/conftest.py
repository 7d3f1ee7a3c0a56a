"""A results folder: a trial of two runs, a run alone whose spool is damaged, one that never finished."""

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
from spark.dataset.folder import DatasetFolder, dataset_folder

Typed = Callable[..., Result]
STREAM_ORDERS = 2_000


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
def events(tmp_path_factory: pytest.TempPathFactory, typed: Typed) -> Path:
    """A trial of two recorded runs, and a run without streams; the first ingest was without events."""
    results = tmp_path_factory.mktemp("recorded")
    (results / "trial").mkdir()
    (results / "trial" / "plan.json").write_text("{}")
    for seed in (1, 2):
        record_streams(MadeUpRun(seconds=1).write(results / "trial" / f"run-{seed}"), seed)
    MadeUpRun(seconds=1).write(results / "plain")
    assert typed("ingest", results).exit_code == 0
    done = typed("ingest", results, "--events")
    assert done.exit_code == 0, done.output
    assert "2 runs went in" in done.stdout
    assert "1 run without events: exchange run --record keeps them" in done.stderr
    return results
