"""How many orders took how long, second by second, from the spool's log buckets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exchange.measurements import BUCKETS, BUCKETS_PER_OCTAVE
from reports.run.completion_series import of_clock
from reports.run.run_folder import Record

CELLS_PER_OCTAVE = 8
BUCKETS_PER_CELL = BUCKETS_PER_OCTAVE // CELLS_PER_OCTAVE


@dataclass(frozen=True)
class HeatMap:
    """`counts` has a row for each step of time taken, from `lowest` on, and a column for each point of the run."""

    counts: npt.NDArray[np.int64]
    lowest: int
    point_s: int

    @property
    def edges_us(self) -> npt.NDArray[np.float64]:
        """Of the rows, one more than there are."""
        steps = self.lowest + np.arange(len(self.counts) + 1)
        return np.asarray(np.exp2(steps / CELLS_PER_OCTAVE) / 1e3, np.float64)


def heat_map(completions: list[Record], point_s: int) -> HeatMap | None:
    """Of the completion from due, or where nothing was due from handing over; the warm-up too, not the last order."""
    chosen = of_clock(completions, "due") or of_clock(completions, "handed_over")
    if not chosen:
        return None
    points = [int(record["payload"]["second"]) // point_s for record in chosen]
    counts = np.zeros((BUCKETS // BUCKETS_PER_CELL, max(points) + 1), np.int64)
    for point, record in zip(points, chosen, strict=True):
        cells = np.asarray(record["payload"]["bucket"], np.int64) // BUCKETS_PER_CELL
        np.add.at(counts[:, point], cells, record["payload"]["bucket_count"])
    used = np.flatnonzero(counts.any(axis=1))
    return HeatMap(counts[used[0] : used[-1] + 1], int(used[0]), point_s)
