"""A benchmark's rows: our figures beside a reference's, measured in turns, since a machine's speed drifts."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.priority import going_first

EXCHANGE = [sys.executable, "-m", "exchange_simulation.cli"]
LONGEST_COMMAND_S = 600.0

Measure = Callable[[], float]
Record = dict[str, Any]


@dataclass(frozen=True)
class BenchmarkRow:
    """One comparison, in which more is better. It has no reference where none could be built."""

    what: str
    against: str
    unit: str
    ours: list[float]
    reference: list[float]
    reach: float | None = None  # the ratio that must be reached
    aim: float | None = None  # the ratio to aim for
    bound: ClassVar[str] = ">="  # the side of `reach` on which the figure has to be

    @property
    def ratios(self) -> list[float]:
        """Ours in units of the reference, repeat by repeat."""
        return [ours / reference for ours, reference in zip(self.ours, self.reference, strict=True)]

    @property
    def is_reached(self) -> bool | None:
        """Whether the median ratio reaches its target; None where there is no target or no reference."""
        if self.reach is None or not self.reference:
            return None
        return median(self.ratios) >= self.reach


def in_turns(ours: Measure, reference: Measure | None, repeats: int) -> tuple[list[float], list[float]]:
    """Measure both in turns, after one round that does not count."""
    figures: tuple[list[float], list[float]] = [], []
    for _ in range(repeats + 1):
        figures[0].append(ours())
        if reference:
            figures[1].append(reference())
    return figures[0][1:], figures[1][1:]


def record_of(*words: object, environment: Mapping[str, str] | None = None) -> Record:
    """The record that an `exchange` command prints as JSON; its results are thrown away. RuntimeError if it failed."""
    with tempfile.TemporaryDirectory(prefix="exchange-results-") as results:
        command = [*EXCHANGE, *map(str, words), "--json", "--results", results]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST_COMMAND_S, check=False, env=environment
        )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    record: Record = json.loads(done.stdout)
    return record


def permitted_priority() -> str:
    """Real-time, so that other work is in no figure, where the system permits it; else normal."""
    try:
        with going_first():
            return "real-time"
    except UserError:
        return "normal"


def processor() -> str:
    """The processor's name, as far as the system knows it, and how many there are."""
    name, lines = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if lines.exists():
        named = [line.partition(":")[2].strip() for line in lines.read_text().splitlines() if "model name" in line]
        name = named[0] if named else name
    return f"{name}, {os.cpu_count()} processors"
