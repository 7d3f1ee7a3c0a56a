"""A benchmark's rows: our figures beside a reference's, measured in turns, since a machine's speed drifts."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.priority import at_priority

EXCHANGE = [sys.executable, "-m", "exchange_simulation.cli"]
LONGEST_COMMAND_S = 600.0
"""A command that takes longer fails."""

Measure = Callable[[], float]
"""A function that measures once and returns the figure."""
Record = dict[str, Any]


@dataclass(frozen=True)
class BenchmarkRow:
    """One comparison, in which more is better."""

    title: str
    against: str
    """The name of the reference; empty if there is none."""
    unit: str
    ours: list[float]
    """Our figure in each round."""
    reference: list[float]
    """The reference's figure in each round; empty if it could not be built."""
    required: float | None = None
    """The ratio that must be reached; the column `reach` of the table. A row that misses it fails the benchmark."""
    hoped_for: float | None = None
    """A better ratio that is hoped for; the column `aim` of the table."""
    bound: ClassVar[str] = ">="
    """Whether the ratio must be at least (>=) or at most (<=) `required`."""

    @property
    def ratios(self) -> list[float]:
        """Our figure in units of the reference's, round by round."""
        return [ours / reference for ours, reference in zip(self.ours, self.reference, strict=True)]

    @property
    def is_reached(self) -> bool | None:
        """True if the median ratio is as required; None if no ratio is required, or if there is no reference."""
        if self.required is None or not self.reference:
            return None
        return median(self.ratios) >= self.required


@dataclass(frozen=True)
class Cost(BenchmarkRow):
    """A comparison in which less is better."""

    bound: ClassVar[str] = "<="

    @property
    def is_reached(self) -> bool | None:
        if self.required is None or not self.reference:
            return None
        return median(self.ratios) <= self.required


@dataclass(frozen=True)
class Limit(BenchmarkRow):
    """A figure without a reference, in which less is better; the targets are for the figure itself."""

    against: str = field(default="", kw_only=True)
    reference: list[float] = field(default_factory=list, kw_only=True)

    bound: ClassVar[str] = "<="

    @property
    def is_reached(self) -> bool | None:
        if self.required is None:
            return None
        return median(self.ours) <= self.required


@dataclass(frozen=True)
class Floor(BenchmarkRow):
    """A figure without a reference, in which more is better; the targets are for the figure itself."""

    against: str = field(default="", kw_only=True)
    reference: list[float] = field(default_factory=list, kw_only=True)

    @property
    def is_reached(self) -> bool | None:
        if self.required is None:
            return None
        return median(self.ours) >= self.required


def in_turns(ours: Measure, reference: Measure | None, repeats: int) -> tuple[list[float], list[float]]:
    """Measure both in turns, after one round that does not count.

    Returns (our figures, the reference's figures); the second list is empty if there is no reference.
    """
    our_figures = []
    reference_figures = []
    for _ in range(repeats + 1):
        our_figures.append(ours())
        if reference:
            reference_figures.append(reference())
    return our_figures[1:], reference_figures[1:]


def record_of(*words: object, environment: Mapping[str, str] | None = None) -> Record:
    """Run an `exchange` command; returns the record that it prints as JSON. RuntimeError if the command failed.

    The command's results folder is thrown away.
    """
    with tempfile.TemporaryDirectory(prefix="exchange-results-") as results:
        command = [*EXCHANGE, *map(str, words), "--json", "--results", results]
        finished = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST_COMMAND_S, check=False, env=environment
        )
    if finished.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{finished.stderr}")
    record: Record = json.loads(finished.stdout)
    return record


def usage_of(record: Record, role: str, name: str) -> float:
    """Return a figure of a component's usage. For example: `usage_of(record, "gateway", "cpu_s")`."""
    return float(record["components"][role][name])


def permitted_priority() -> str:
    """Return "real-time" if the system permits it, since other work then disturbs no figure; else "normal"."""
    try:
        with at_priority("real-time"):
            return "real-time"
    except UserError:
        return "normal"


def processor() -> str:
    """Return the processor's name, as far as the system knows it, and how many there are."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if "model name" in line:
                name = line.partition(":")[2].strip()
                break
    return f"{name}, {os.cpu_count()} processors"
