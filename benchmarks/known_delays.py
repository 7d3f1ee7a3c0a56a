"""Whether `compare` finds known delays: links over tcp that are 20 and 40 us late, against a link without delay.

    exchange compare --transports delayed?us=0,delayed?us=20 --rates 2000 --repeats 12

The number of repeats is always 12, since the question is whether 12 suffice. There is one comparison for each delay, so
each delay has its own family of rows. The runs have real-time priority if the system permits it, so that other work
does not hide the delay; no run is made again for noise.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.comparison import BenchmarkRow, Record, permitted_priority, record_of
from transports.registry import GROUP

DELAYS_US = (20, 40)
RATE = 2_000
"""Orders a second."""
SECONDS = 4
REPEATS = 12
METRIC = "due_p50_us"


@dataclass(frozen=True)
class KnownDifference(BenchmarkRow):
    """A known difference, and whether `compare` finds it."""

    is_found: bool = False

    @property
    def is_reached(self) -> bool:
        return self.is_found


def rows(repeats: int) -> Iterator[BenchmarkRow]:  # noqa: ARG001
    """Compare the p50 from due of each delayed link with that of a link without delay."""
    with tempfile.TemporaryDirectory(prefix="exchange-delays-") as name:
        folder = Path(name)
        install(folder)
        for delay_us in DELAYS_US:
            yield row(delay_us, compare(delay_us, folder))


def install(folder: Path) -> None:
    """Make `delayed` a transport of every process that has this folder in its PYTHONPATH."""
    info = folder / "delayed-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: delayed\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\ndelayed = benchmarks.delayed\n")


def compare(delay_us: int, folder: Path) -> Record:
    """Compare a link with the delay with a link without it; returns comparison.json.

    `folder` is the folder in which `delayed` is installed.
    """
    arms = f"delayed?us=0,delayed?us={delay_us}"
    options = ("--transports", arms, "--rates", RATE, "--seconds", SECONDS, "--repeats", REPEATS)
    python_path = os.pathsep.join([str(folder), str(Path(__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": python_path}
    return record_of(
        "compare", *options, "--keep-noisy", "--no-spark", "--priority", permitted_priority(), environment=environment
    )


def row(delay_us: int, record: dict[str, Any]) -> KnownDifference:
    """Return the row of a comparison: whether its verdict says that the links differ, and by how much they differ."""
    (verdict,) = (verdict for verdict in record["verdicts"] if verdict["metric"] == METRIC)
    is_found = verdict["outcome"] == "differ"
    arm_without, arm_delayed = record["arms"]
    without_us = list(arm_without["metrics"][METRIC]["by_repeat"].values())
    delayed_us = list(arm_delayed["metrics"][METRIC]["by_repeat"].values())
    difference_us = median(delayed_us) - median(without_us)
    title = f"{delay_us} us more on a link at {RATE:,}/s, {REPEATS} repeats: "
    title += f"{'found' if is_found else 'not found'} ({difference_us:+.0f} us in p50 from due)"
    return KnownDifference(title, "no delay", "us", delayed_us, without_us, is_found=is_found)
