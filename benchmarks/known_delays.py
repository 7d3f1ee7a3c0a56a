"""Does `compare` find a delay that is there? Links over tcp that are 20 and 40 us late, against one that is not.

    exchange compare --transports delayed?us=0,delayed?us=20 --rates 2000 --repeats 12

The repeats are always 12, since that is the question. There is one comparison for each delay, so each has its own
family of rows. The runs have real-time priority where the system permits it, so that other work does not hide what is
asked; no run is made again for noise.
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
RATE, SECONDS, REPEATS = 2_000, 4, 12
METRIC = "due_p50_us"


@dataclass(frozen=True)
class KnownDifference(BenchmarkRow):
    """A difference that is there, and whether `compare` finds it."""

    is_found: bool = False

    @property
    def is_reached(self) -> bool:
        return self.is_found


def rows(repeats: int) -> Iterator[BenchmarkRow]:  # noqa: ARG001
    """Compare the p50 from due of each delayed link with that of one without delay."""
    with tempfile.TemporaryDirectory(prefix="exchange-delays-") as place:
        install(Path(place))
        for delay_us in DELAYS_US:
            yield row(delay_us, compared(delay_us, Path(place)))


def install(folder: Path) -> None:
    """Make `delayed` a transport of every process that has this folder in its PYTHONPATH."""
    info = folder / "delayed-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: delayed\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\ndelayed = benchmarks.delayed\n")


def compared(delay_us: int, place: Path) -> Record:
    """Compare a link with the delay with one without; returns comparison.json."""
    arms = f"delayed?us=0,delayed?us={delay_us}"
    words = ("--transports", arms, "--rates", RATE, "--seconds", SECONDS, "--repeats", REPEATS)
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), str(Path(__file__).parents[1])])}
    return record_of(
        "compare", *words, "--keep-noisy", "--no-spark", "--priority", permitted_priority(), environment=surroundings
    )


def row(delay_us: int, record: dict[str, Any]) -> KnownDifference:
    """Return the row of a comparison: whether its verdict is that the two links differ, and by how much they do."""
    (verdict,) = (verdict for verdict in record["verdicts"] if verdict["metric"] == METRIC)
    is_found = verdict["outcome"] == "differ"
    arm_without, arm_delayed = record["arms"]
    without_us = list(arm_without["metrics"][METRIC]["by_repeat"].values())
    delayed_us = list(arm_delayed["metrics"][METRIC]["by_repeat"].values())
    more_us = median(delayed_us) - median(without_us)
    what = f"{delay_us} us more on a link at {RATE:,}/s, {REPEATS} repeats: "
    what += f"{'found' if is_found else 'not found'} ({more_us:+.0f} us in p50 from due)"
    return KnownDifference(what, "no delay", "us", delayed_us, without_us, is_found=is_found)
