"""The records of sources that may be started again, and of a reporter that may take the place of a killed one."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from exchange.messages import Timestamp
from stats_reporter.records import SpoolRecords
from stats_reporter.sample_pairs import SamplePairs


class RecoveringPairs(SamplePairs):
    """Joins the readings of a gateway that may be started again, and returns each sample once."""

    def __init__(self) -> None:
        super().__init__()
        self._newest = 0
        """The highest id of a complete sample."""
        self._newest_before = 0
        """The highest such id before the gateway was started again: samples up to this one were returned before."""

    def begin_again(self) -> None:
        """Count from 0, since the gateway was started again. Samples that it reports again are not returned again."""
        self._newest_before = self._newest
        self.open.clear()
        self.paired = 0

    def take(self, stamp: Timestamp) -> dict[str, int | None] | None:
        """Take a reading. Returns the sample that it completes; None if it completes none, or one returned before."""
        sample = super().take(stamp)
        if sample is None:
            return None
        self._newest = max(self._newest, stamp.correlation_id)
        if stamp.correlation_id <= self._newest_before:
            return None
        return sample

    def state(self) -> dict[str, Any]:
        """Return the state from which another reporter can go on."""
        return {
            "open": self.open,
            "paired": self.paired,
            "scheduled": self._scheduled,
            "newest": self._newest,
            "given": self._newest_before,
        }

    def go_on_from(self, state: dict[str, Any]) -> None:
        """Take the state of a reporter that was killed."""
        self.open = {int(order_id): sample for order_id, sample in state["open"].items()}
        self.paired = state["paired"]
        self._scheduled = state["scheduled"]
        self._newest = state["newest"]
        self._newest_before = state["given"]


class RecoveringRecords(SpoolRecords):
    """Writes records that go on where those of a killed gateway or reporter ended."""

    pairs_class = RecoveringPairs
    _pairs: defaultdict[str, RecoveringPairs]  # type: ignore[assignment]

    def begin_again(self, source: str) -> None:
        """Note that another process stands for the source."""
        self._pairs[source].begin_again()

    def state(self) -> dict[str, Any]:
        """Return the state from which another reporter can go on."""
        return {"second": self._second, "pairs": {source: pairs.state() for source, pairs in self._pairs.items()}}

    def go_on_from(self, state: dict[str, Any]) -> None:
        """Take the state of a reporter that was killed."""
        self._second = state["second"]
        for source, pairs in state["pairs"].items():
            self._pairs[source].go_on_from(pairs)
