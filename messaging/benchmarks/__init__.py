"""The benchmarks. Each file here declares BENCHMARK; the benchmark has the file's name."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace

from messaging.benchmark import Benchmark


def names() -> list[str]:
    return [module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)]


def benchmark_of(name: str) -> Benchmark:
    declared: Benchmark = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").BENCHMARK
    return replace(declared, name=name)
