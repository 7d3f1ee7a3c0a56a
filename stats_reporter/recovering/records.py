"""The records of sources that may be started again, and of a reporter that may take the place of a killed one."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from exchange.messages import Timestamp
from stats_reporter.records import SpoolRecords
from stats_reporter.sample_pairs import SamplePairs


class RecoveringPairs(SamplePairs):
    """Pairs the readings of a gateway that may be started again, and gives each sample once."""

    def __init__(self) -> None:
        super().__init__()
        self._newest = 0
        """The highest id of a complete sample."""
        self._given = 0
        """The same, when the gateway was started again: samples up to this one were given before."""

    def begin_again(self) -> None:
        """Count from 0, since the gateway was started again; samples that both report are given once."""
        self._given = self._newest
        self.open.clear()
        self.paired = 0

    def take(self, stamp: Timestamp) -> dict[str, int | None] | None:
        """Take a reading. Returns the sample that it completes, None where it completes none or one given before."""
        sample = super().take(stamp)
        if sample is None:
            return None
        self._newest = max(self._newest, stamp.correlation_id)
        return sample if stamp.correlation_id > self._given else None

    def state(self) -> dict[str, Any]:
        """Return what another reporter has to know to go on with these pairs."""
        return {
            "open": self.open,
            "paired": self.paired,
            "scheduled": self._scheduled,
            "newest": self._newest,
            "given": self._given,
        }

    def go_on_from(self, state: dict[str, Any]) -> None:
        """Take the state of a reporter that was killed."""
        self.open = {int(order_id): sample for order_id, sample in state["open"].items()}
        self.paired = state["paired"]
        self._scheduled = state["scheduled"]
        self._newest = state["newest"]
        self._given = state["given"]


class RecoveringRecords(SpoolRecords):
    """Writes records that go on where those of a killed gateway or reporter ended."""

    pairs_class = RecoveringPairs
    _pairs: defaultdict[str, RecoveringPairs]  # type: ignore[assignment]

    def begin_again(self, source: str) -> None:
        """Note that another process stands for the source."""
        self._pairs[source].begin_again()

    def state(self) -> dict[str, Any]:
        """Return what another reporter has to know to go on with these records."""
        return {"second": self._second, "pairs": {source: pairs.state() for source, pairs in self._pairs.items()}}

    def go_on_from(self, state: dict[str, Any]) -> None:
        """Take the state of a reporter that was killed."""
        self._second = state["second"]
        for source, pairs in state["pairs"].items():
            self._pairs[source].go_on_from(pairs)
