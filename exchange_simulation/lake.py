"""The tables of many runs, and the market's events, in a Spark session.

with spark_tables("results", events=True) as spark:
    spark.sql("select arm, due_p99_us from arms where transport = 'zeromq'").toPandas()
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from exchange_simulation.measuring import CannotMeasure, asking

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def spark_tables(
    results: str | Path = "results", *, tables: str | None = None, events: bool = False,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[SparkSession]:  # fmt: skip
    """Make tables of the runs below `results`, as `exchange spark ingest` and `summary` do; each is a view by its name.

    `events` are orders, trades, confirmations and quotes of the runs that were made with `record=True`. `settings` are
    Spark's. CannotMeasure where there is no Spark, BadOption where there are no runs.
    """
    from experiments.pipeline.jobs import INGEST_MASTER, ingest_and_summarize
    from spark.dataset.views import create_views
    from spark.errors import SparkError
    from spark.sessions.session import open_session

    with contextlib.ExitStack() as stack, asking(None):
        try:
            spark = stack.enter_context(open_session(INGEST_MASTER, settings=settings))
            create_views(spark, ingest_and_summarize(spark, Path(results), tables, events))
        except SparkError as error:
            raise CannotMeasure(str(error)) from error
        session = stack.pop_all()
    with session:
        yield spark
