"""What a search for a capacity will do: what it looks for, with how many probes, and how long it takes at most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from exchange.json_records import Record
from exchange.search_times import SearchTimes
from exchange.words import counted
from exchange_simulation.experiments.capacity.search import SearchSettings
from exchange_simulation.experiments.capacity.searched_load import SearchedLoad
from exchange_simulation.repeats.noise_rule import RedoRule
from exchange_simulation.reports.capacity.table import subject_of
from exchange_simulation.reports.formats.times import duration_in_words

PROBE_OVERHEAD_S = 2.5
"""Time of a probe beside its orders: processes start, load their compiled kernels and end."""


@dataclass(frozen=True)
class PlannedSearch:
    """A search that was not begun."""

    load: SearchedLoad
    settings: SearchSettings
    lowest_value: float
    """The lowest value of the load that can be judged."""

    @classmethod
    def of(cls, load: SearchedLoad, settings: SearchSettings) -> PlannedSearch:
        """Plan the search. UserError if it could not begin."""
        return cls(load, settings, load.lowest_value())

    @property
    def rule(self) -> RedoRule | None:
        """The rule on noisy probes; None if every probe counts."""
        return RedoRule.of_plan(self.settings.most_probes) if self.settings.redo_noisy else None

    @cached_property
    def _header(self) -> Record:
        return self.load.record_header()

    @cached_property
    def _times(self) -> SearchTimes:
        return self.load.times()

    @property
    def shortest_s(self) -> float:
        """How long all probes take if each is as short as a probe can be."""
        return self.settings.most_probes * (self._times.shortest_probe_s + self._around_s)

    @property
    def longest_s(self) -> float:
        """How long all probes take, with those made again, if each is as long as a probe can be."""
        most_runs = self.settings.most_probes + (self.rule.most_extra_runs if self.rule else 0)
        longest_s = most_runs * (self._times.longest_probe_s + self._around_s)
        if self._times.longest_ceiling_s:
            longest_s += self._times.longest_ceiling_s + self._around_s
        return longest_s

    @property
    def _around_s(self) -> float:
        """The time of a probe beside its load."""
        return self.settings.pause_s + PROBE_OVERHEAD_S

    @property
    def in_one_line(self) -> str:
        """What is looked for, and how long that takes.

        For example: tcp: the highest rate that holds p99 <= 1ms, from 2,000 orders/s on: up to 30 probes of 2 to 10 s,
        2 min 30 s to 10 min 8 s in all
        """
        axis = self.load.axis
        begins_at = axis.in_words(f"{self.settings.start_per_s:,.10g}")
        probes = counted(self.settings.most_probes, "probes")
        length = _range_of(f"{self._times.shortest_probe_s:.3g}", f"{self._times.longest_probe_s:.3g}")
        duration = _range_of(duration_in_words(self.shortest_s), duration_in_words(self.longest_s))
        return (
            f"{subject_of(self._header)}: the highest {axis.noun} that holds {self._header['objective']}, from "
            f"{begins_at} on: up to {probes} of {length} s, {duration} in all"
        )

    def lines(self) -> Iterator[str]:
        """Yield sentences on the search, as `--dry-run` prints them."""
        yield self.in_one_line
        yield f"it ends sooner once the interval is {self.settings.precision:.1%} to either side"
        if self._header["needed_orders"]:
            noun = "messages" if "benchmark" in self._header else "orders"
            needed = counted(self._header["needed_orders"], noun)
            yield f"a probe needs {needed}, so the lowest {self.load.axis.noun} is {self.lowest_value:,.4g}"
        if self.rule:
            yield f"{self.rule.in_words('probes')} (--keep-noisy: never)"

    def as_dict(self) -> Record:
        """Return the plan as `--dry-run --json` prints it."""
        return {
            "subject": subject_of(self._header),
            "objective": self._header["objective"],
            "starts_at": self.settings.start_per_s,
            "lowest": self.lowest_value,
            "most_probes": self.settings.most_probes,
            "probe_s": {"shortest": self._times.shortest_probe_s, "longest": self._times.longest_probe_s},
            "search_s": {"shortest": self.shortest_s, "longest": self.longest_s},
        }


def _range_of(low: str, high: str) -> str:
    """Return two ends in words; one of them if they are alike."""
    return low if low == high else f"{low} to {high}"
