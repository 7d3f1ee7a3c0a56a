"""What a search for a capacity asks of the load that it varies."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from exchange.json_records import Record
from exchange.load_axis import LoadAxis
from exchange.search_times import SearchTimes


class SearchedLoad(Protocol):
    """The load that a search varies: orders a second to the exchange, or the scale of a benchmark."""

    @property
    def axis(self) -> LoadAxis: ...

    def lowest_value(self) -> float:
        """Return the lowest value that can be judged.

        UserError if the search would start below that value, or nothing can be measured.
        """

    def record_header(self) -> Record:
        """Return the record's first fields, among them the objective and the settings."""

    def ready(self) -> AbstractContextManager[None]:
        """Return a context with the resources that all probes share. For example: a private broker."""

    def times(self) -> SearchTimes:
        """Return how long a probe takes, and the measurement of the ceiling."""

    def ceiling(self, folder: Path) -> float:
        """Return the highest value that can be offered. A run that measures this value leaves its files in `folder`."""

    def probe(self, folder: Path, value: float) -> Record:
        """Measure at a value in `folder`. UserError if that cannot start.

        Returns the probe's part of the record: the value under the axis's name, `holds`, `why` if it does not hold,
        `log_ratio` of figure and bound if there is a figure, `noise_share`, and more.
        """
