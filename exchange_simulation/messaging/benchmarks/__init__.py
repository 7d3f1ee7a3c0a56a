"""The benchmarks. Each file here declares BENCHMARK; the benchmark has the file's name.

papers/ says which figures and tables of the papers they make.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace

from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.paced import with_rates


def names() -> list[str]:
    return [module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)]


def benchmark_of(name: str) -> BenchmarkDefinition:
    """Return the benchmark. UserError if there is none of this name, which may be from a record."""
    if name not in names():
        raise UserError(f"{name!r} is no benchmark; there are {', '.join(names())}")
    declared: BenchmarkDefinition = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").BENCHMARK
    return replace(with_rates(declared) if declared.takes_rate else declared, name=name)
