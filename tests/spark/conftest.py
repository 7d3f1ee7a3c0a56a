"""One Spark session for all tests, since a JVM takes seconds to start; and a run with its tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from spark_runs import MadeUpRun
from spark_tables import summary_of

from spark.run_facts import read_run
from spark.run_tables import write_run_tables
from spark.sessions.session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with open_session() as session:
        yield session


@dataclass(frozen=True)
class Analysed:
    """A made-up run, and the summary that was made of it.

    The spool holds each record twice, and a line that is no record.
    """

    made_up: MadeUpRun
    folder: Path
    run: dict[str, Any]
    seconds: list[dict[str, Any]]


@pytest.fixture(scope="session")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Analysed:
    made_up = MadeUpRun()
    # A name that Spark's readers would take for a pattern.
    folder = tmp_path_factory.mktemp("results") / "run [1] {a} *ä"
    made_up.write(folder, "no JSON at all", *map(json.dumps, made_up.records))
    write_run_tables(folder, read_run(folder))
    return Analysed(made_up, folder, *summary_of(folder))
