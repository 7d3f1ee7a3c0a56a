"""The figures of a run's completion times and lag, from its log buckets.

    tables of records of seconds --each--> figures of seconds, one histogram of the run --together--> figures of both

The last order is left out, as everywhere in analysis. The whole run's figures leave out the warm-up's seconds too, as
those of run.json do; a second's row has them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark.tables.histograms import COUNTED, FIGURES, added, figures

NAMES = ("second", "clock")
COLUMNS = (*NAMES, "last_order", *COUNTED, "bucket", "bucket_count")
RECORDS = 1_000
"""How many records are read at once: rows are long, with some hundred buckets each."""
WHOLE_RUN = -1
"""Stands for the second in the whole run's histogram."""


class Times:
    """Collects one run's records. No two of one source have the same second and clock: if alone, none are added."""

    def __init__(self, warm_up_s: float, sources: int) -> None:
        self._warm_up_s, self._alone = warm_up_s, sources == 1
        self._figures: list[pa.Table] = []
        self._histograms: list[pa.Table] = []

    def take(self, records: pa.Table) -> None:
        """`records`: some of the run's, with COLUMNS."""
        known = _where(records, pc.and_(pc.invert(records["last_order"]), pc.greater(records["count"], 0)))
        of_run = _where(known, pc.greater_equal(known["second"], self._warm_up_s))
        whole = pa.array([WHOLE_RUN] * len(of_run), pa.int32())
        of_run = of_run.set_column(of_run.column_names.index("second"), "second", whole)
        if self._alone:
            self._figures.append(figures(known, NAMES))
        self._histograms += [added(part, NAMES) for part in (of_run, *([] if self._alone else [known]))]

    def figures(self) -> dict[int, dict[str, Any]]:
        """FIGURES of each clock by second, and by WHOLE_RUN; names begin with the clock."""
        found: defaultdict[int, dict[str, Any]] = defaultdict(dict)
        put_together = [figures(added(_together(self._histograms), NAMES), NAMES)] if self._histograms else []
        for row in (row for part in (*self._figures, *put_together) for row in part.to_pylist()):
            found[row["second"]] |= {f"{row['clock']}_{name}": row[name] for name in FIGURES}
        return found


def _where(records: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """The records that the mask selects. If it selects all of them, nothing is copied."""
    return records if pc.all(mask).as_py() else records.filter(mask)


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(table.select([*NAMES, *COUNTED, "bucket", "bucket_count"]) for table in tables)
