"""The benchmarks there are: each is a file of experiments/bench/benchmarks, which declares BENCHMARK."""

from __future__ import annotations

import importlib
import pkgutil

from messaging import benchmarks
from messaging.benchmark import Benchmark


def names() -> list[str]:
    return [module.name.replace("_", "-") for module in pkgutil.iter_modules(benchmarks.__path__)]


def benchmark_of(name: str) -> Benchmark:
    found: Benchmark = importlib.import_module(f"{benchmarks.__name__}.{name.replace('-', '_')}").BENCHMARK
    return found
