"""Does `compare` find a delay that is there? Links over tcp that are 20 and 40 us late, against one that is not.

    exchange compare --transports delayed?us=0,delayed?us=20 --rates 2000 --repeats 12

The repeats are always 12, since that is the question. One comparison a delay, so each has its own family of rows.
The runs have real-time priority where we may give it, so that other work does not hide what is asked; no run is made
again for noise.
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
class Known(BenchmarkRow):
    """A difference that is there: whether `compare` says so."""

    is_found: bool = False

    @property
    def is_reached(self) -> bool:
        return self.is_found


def rows(repeats: int) -> Iterator[BenchmarkRow]:  # noqa: ARG001
    """The p50 from due of each delayed link beside that of one without delay."""
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
    """The comparison.json of a link with the delay against one without."""
    arms = f"delayed?us=0,delayed?us={delay_us}"
    words = ("--transports", arms, "--rates", RATE, "--seconds", SECONDS, "--repeats", REPEATS)
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), str(Path(__file__).parents[1])])}
    return record_of(
        "compare", *words, "--keep-noisy", "--no-spark", "--priority", permitted_priority(), environment=surroundings
    )


def row(delay_us: int, record: dict[str, Any]) -> Known:
    """What was found, and in the words of the verdict if nothing was."""
    [verdict] = [each for each in record["verdicts"] if each["metric"] == METRIC]
    none, late = ([*arm["metrics"][METRIC]["by_repeat"].values()] for arm in record["arms"])
    is_found = verdict["outcome"] == "differ"
    more_us = median(late) - median(none)
    what = f"{delay_us} us more on a link at {RATE:,}/s, {REPEATS} repeats: "
    what += f"{'found' if is_found else 'not found'} ({more_us:+.0f} us in p50 from due)"
    return Known(what, "no delay", "us", late, none, is_found=is_found)
