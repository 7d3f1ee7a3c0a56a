"""The exchange from Python: the same measurements as the command's, as functions that return figures.

from exchange_simulation import run

found = run(transport="zeromq", rate=8000, orders=80_000)
print(found.p50_us, found.p99_us, found.from_due)
found.to_pandas()          # a row for each second
"""

from exchange_simulation.market import Answers, OrderBook, orders
from exchange_simulation.measuring import (
    BadOption,
    CannotMeasure,
    MeasurementError,
    NotWhole,
    RunOptions,
    bench,
    capacity,
    compare,
    run,
    spark_tables,
    sweep,
)
from exchange_simulation.outcomes import Arm, Benchmark, Capacity, Comparison, Estimate, Run, Times, Verdict

__all__ = [
    "Answers", "Arm", "BadOption", "Benchmark", "CannotMeasure", "Capacity", "Comparison", "Estimate",
    "MeasurementError", "NotWhole", "OrderBook", "Run", "RunOptions", "Times", "Verdict", "bench", "capacity",
    "compare", "orders", "run", "spark_tables", "sweep",
]  # fmt: skip
