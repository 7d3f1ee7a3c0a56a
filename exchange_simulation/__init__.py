"""The exchange from Python: the same measurements as the command's, as functions that return figures.

from exchange_simulation import run

outcome = run(transport="zeromq", rate=8000, orders=80_000)
print(outcome.p50_us, outcome.p99_us, outcome.from_due)
outcome.to_pandas()          # a row for each second

help(run) has every option of a run, and docs/python.md all functions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exchange_simulation.launching.record.noise_summary import NoiseSummary
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
        faults,
        nagle,
        paper,
        run,
        simulate,
        spark_tables,
        suite,
        sweep,
    )
    from exchange_simulation.outcomes import (
        Arm,
        Benchmark,
        Capacity,
        Comparison,
        Estimate,
        FaultMatrix,
        PaperOutcome,
        Run,
        SimulatedMarket,
        Times,
        Verdict,
    )
    from exchange_simulation.stored_outcomes import NoOutcome, list_results, open

__all__ = [
    "Answers",
    "Arm",
    "BadOption",
    "Benchmark",
    "CannotMeasure",
    "Capacity",
    "Comparison",
    "Estimate",
    "FaultMatrix",
    "MeasurementError",
    "NoOutcome",
    "NoiseSummary",
    "NotWhole",
    "OrderBook",
    "PaperOutcome",
    "Run",
    "RunOptions",
    "SimulatedMarket",
    "Times",
    "Verdict",
    "bench",
    "capacity",
    "compare",
    "faults",
    "list_results",
    "nagle",
    "open",
    "orders",
    "paper",
    "run",
    "simulate",
    "spark_tables",
    "suite",
    "sweep",
]

API_MODULES = ("market", "outcomes", "stored_outcomes", "measuring")
"""The modules that define or import the names of `__all__`, the quickest to import first."""


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is first used.

    The `exchange` command is part of this package. It would start a second later if the package imported all of this.
    """
    if name in __all__:
        # This chooses the folder of compiled kernels, so it comes before the modules below, which import numba.
        import_module(f"{__name__}.launching.kernel_cache").settle_kernel_cache()
        errors = import_module(f"{__name__}.launching.errors")
        with errors.naming_extras():
            for module_name in API_MODULES:
                module = import_module(f"{__name__}.{module_name}")
                if hasattr(module, name):
                    return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names of the module, and the public names that are not imported yet: for help() and editors."""
    return sorted({*globals(), *__all__})
