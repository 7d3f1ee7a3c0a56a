"""How long a query takes with a warm server of Spark, beside a session of its own.

exchange spark server RESULTS ─▶ ready ─▶ exchange spark sql, from the command to its end
no server                               ─▶ the same, with a JVM of its own
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.command_cost import cost_of
from benchmarks.comparison import EXCHANGE, BenchmarkRow, Limit

RUN = ("--rate", "8000", "--orders", "40000", "--no-spark", "--no-page", "--name", "run")
QUERY = "select run, count(*) as records from completion group by run"


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure the query with a session of its own, then with the server."""
    with tempfile.TemporaryDirectory(prefix="exchange-runs-") as name:
        results = Path(name)
        cost_of(*EXCHANGE, "run", *RUN, "--results", results)
        cost_of(*EXCHANGE, "spark", "ingest", results)
        of_its_own_s = [query_s(results) for _ in range(repeats)]
        with warm_server(results):
            warm_s = [query_s(results) for _ in range(repeats)]
    yield Limit(title="spark sql with a warm server", unit="s", ours=warm_s, required=2.0, hoped_for=1.0)
    yield Limit(title="spark sql with a JVM of its own", unit="s", ours=of_its_own_s)


def query_s(results: Path) -> float:
    """Measure the query. AssertionError if its answer lacks the run."""
    cost = cost_of(*EXCHANGE, "spark", "sql", QUERY, "--csv", "--tables", results / "tables")
    if "run" not in cost.output.splitlines()[1]:
        raise AssertionError(f"no row of the run in {cost.output}")
    return cost.elapsed_s


@contextmanager
def warm_server(results: Path) -> Iterator[None]:
    """Run a server for these results while the block runs. AssertionError if it does not get ready."""
    command = [*EXCHANGE, "spark", "server", str(results)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            first_line = server.stdout.readline()
            if not first_line.startswith("ready"):
                raise AssertionError(f"the server said {first_line!r}")
            yield
        finally:
            server.terminate()
