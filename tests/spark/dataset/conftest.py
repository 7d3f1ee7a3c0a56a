"""A results folder: a trial of two runs, a run alone whose spool is damaged, one that never finished."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun

from experiments.pipeline.finding import Found, find_runs
from spark.dataset.ingesting import ingest_runs
from spark.dataset.manifest import Manifest
from spark.dataset.place import Place
from spark.dataset.summarizing import summarize_runs


@dataclass(frozen=True)
class Kept:
    results: Path
    alone: MadeUpRun
    found: Found


def trial_of(results: Path, *names: str) -> Path:
    trial = results / "a-trial"
    trial.mkdir(parents=True)
    (trial / "plan.json").write_text("{}")
    for number, name in enumerate(names):
        MadeUpRun(seconds=2, orders_per_s=100 * (number + 1)).write(trial / name, transport=("zeromq", "amqp")[number])
    return trial


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    results = tmp_path_factory.mktemp("many") / "results [1] {a} *ä"
    trial_of(results, "first", "second")
    alone = MadeUpRun(seconds=2, orders_per_s=500)
    copy = json.dumps(alone.records[-1])
    alone.write(results / "run [2]", "no JSON at all", copy)
    (MadeUpRun(seconds=1).write(results / "killed") / "run.json").unlink()
    return Kept(results, alone, find_runs(results))


@dataclass(frozen=True)
class Dataset:
    place: Place
    manifest: Manifest


@pytest.fixture(scope="session")
def dataset(spark: SparkSession, kept: Kept) -> Dataset:
    place = Place(spark, str(kept.results / "tables"))
    ingest_runs(spark, place, kept.found.sources)
    return Dataset(place, summarize_runs(spark, place))
