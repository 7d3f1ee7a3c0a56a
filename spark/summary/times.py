"""Completion from handing over and from due time, and lag, of a run: the figures of its log buckets, put together.

    tables of records of seconds --each--> figures of seconds, one histogram of the run --together--> figures of both

The last order is left out, as analysis does. The whole run's figures leave out the warm-up's seconds too, as those of
run.json do; each second keeps its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark.histograms import COUNTED, FIGURES, added, figures

NAMES = ("second", "clock")
COLUMNS = (*NAMES, "last_order", *COUNTED, "bucket", "bucket_count")
RECORDS = 1_000
"""At once: of long rows, with some hundred buckets in each."""
WHOLE_RUN = -1
"""The second of what belongs to none."""


class Times:
    """Of one run. No two records of one source have the same second and clock, so of one nothing has to be added up."""

    def __init__(self, warm_up_s: float, sources: int) -> None:
        self._warm_up_s, self._alone = warm_up_s, sources == 1
        self._figures: list[pa.Table] = []
        self._histograms: list[pa.Table] = []

    def take(self, records: pa.Table) -> None:
        """COLUMNS of some records."""
        known = _where(records, pc.and_(pc.invert(records["last_order"]), pc.greater(records["count"], 0)))
        of_run = _where(known, pc.greater_equal(known["second"], self._warm_up_s))
        whole = pa.array([WHOLE_RUN] * len(of_run), pa.int32())
        of_run = of_run.set_column(of_run.column_names.index("second"), "second", whole)
        if self._alone:
            self._figures.append(figures(known, NAMES))
        self._histograms += [added(part, NAMES) for part in (of_run, *([] if self._alone else [known]))]

    def figures(self) -> dict[int, dict[str, Any]]:
        """By second, and WHOLE_RUN: FIGURES of each clock, with the clock before the name."""
        found: defaultdict[int, dict[str, Any]] = defaultdict(dict)
        put_together = [figures(added(_together(self._histograms), NAMES), NAMES)] if self._histograms else []
        for row in (row for part in (*self._figures, *put_together) for row in part.to_pylist()):
            found[row["second"]] |= {f"{row['clock']}_{name}": row[name] for name in FIGURES}
        return found


def _where(records: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Without a copy of all buckets where it is all of them."""
    return records if pc.all(mask).as_py() else records.filter(mask)


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(table.select([*NAMES, *COUNTED, "bucket", "bucket_count"]) for table in tables)
