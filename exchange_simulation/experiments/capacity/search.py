"""The search for a capacity: the rate at which half of all probes hold.

This module does not depend on the exchange.

The search first finds a bracket, which is a rate that holds and a higher rate that fails. The first rate is
`start_per_s`; each further one is four times the previous rate, or a quarter. Then the search probes rates at which the
capacity may still lie, until the interval of the capacity is narrow enough. A rate that failed is probed once more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from math import log
from typing import Any

import numpy as np

from exchange.estimates import IntervalEstimate
from exchange.json_records import Record
from exchange.load_axis import LoadAxis
from exchange.words import counted
from exchange_simulation.experiments.capacity.curve import STEP, Posterior, ProbeOutcome

Probe = Callable[[float], ProbeOutcome]
"""A function that offers orders at a rate and returns the outcome."""

ORDERS_AXIS = LoadAxis()
GROWTH = 4.0
"""Factor from one rate of the bracket to the next."""
LEAST_PROBES = 12
MAJORITY = 2
"""The number of equal outcomes that decides a rate of the bracket, if that rate is probed several times."""
CEILING_SHARE = 0.8
"""A capacity above this share of the ceiling is flagged: the generator, not the transport, may limit it."""
FOUND = "found"
"""A rate held and a higher rate failed, so the capacity lies within the reach."""
ABOVE = "above"
"""All rates held, so the capacity lies above the reach."""
BELOW = "below"
"""All rates failed, so the capacity lies below the reach."""
UNKNOWN = "unknown"
"""No rate is decided yet."""
CURVE_POINTS = 61
CURVE_MARGIN = 1.25
"""The curve goes from the lowest probed rate divided by this factor to the highest probed rate times this factor."""


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """The rate at which a search starts, and when it ends."""

    start_per_s: float = 2_000.0
    precision: float = 0.05
    """The search ends once the interval's half width is this share of the capacity."""
    most_probes: int = 30
    pause_s: float = 0.5
    """Time between two runs, in which the previous run's resources are released."""
    seconds: float = 2.0
    """The shortest time for which a probe offers orders."""
    longest_s: float = 10.0
    """The longest time for which a probe offers orders: at a low rate it needs longer to offer enough of them."""
    redo_noisy: bool = True
    """Whether a probe is repeated if other programs used the machine meanwhile."""


def search_settings_of(record: Record) -> SearchSettings:
    """Return the settings of a recorded search, with defaults for settings that an older record lacks."""
    recorded = {"seconds": record["settings"].get("duration_s") or SearchSettings.seconds, **record["search"]}
    names = {setting.name for setting in fields(SearchSettings)}
    known_settings = {name: value for name, value in recorded.items() if name in names}
    return SearchSettings(**known_settings)


class ProbesUsedUp(Exception):
    """The search has made as many probes as it may."""


class CapacitySearch:
    """A search and the outcomes of its probes so far. After KeyboardInterrupt in `run` the outcomes remain."""

    def __init__(
        self,
        probe: Probe,
        measure_ceiling_per_s: Callable[[], float],
        least_per_s: float,
        settings: SearchSettings,
        axis: LoadAxis = ORDERS_AXIS,
    ) -> None:
        self._axis = axis
        self._probe = probe
        self._measure_ceiling_per_s = measure_ceiling_per_s
        self._settings = settings
        self.least_per_s = least_per_s
        """The lowest rate that can be judged: the lower end of the reach."""
        self.ceiling_per_s = 0.0
        """The highest rate that can be offered, once it is measured: the upper end of the reach."""
        self.outcomes: list[ProbeOutcome] = []
        self._first_grid: Posterior | None = None
        """The posterior on the coarse grid over the whole reach; None before the first is needed."""
        self.held_per_s: float | None = None
        """The highest rate of the bracket that held; None if none held."""
        self.failed_per_s: float | None = None
        """The lowest rate of the bracket that failed; None if none failed."""
        self.stopped: str | None = "interrupted"
        """The reason why the search is incomplete; None once it is complete. `run` clears it at its end."""

    def run(self) -> None:
        """Measure the ceiling and make all probes."""
        self.ceiling_per_s = self._measure_ceiling_per_s()
        self.least_per_s = min(self.least_per_s, self.ceiling_per_s)
        with contextlib.suppress(ProbesUsedUp):
            if self._bracket():
                self._narrow()
        self.stopped = None

    def _make_probe(self, rate_per_s: float) -> bool:
        """Make a probe, and return whether it held. Raises ProbesUsedUp if no further probe is allowed."""
        if len(self.outcomes) >= self._settings.most_probes:
            raise ProbesUsedUp
        value = round(rate_per_s) if self._axis.whole else rate_per_s
        outcome = self._probe(value)
        self.outcomes.append(outcome)
        return outcome.holds

    def _bracket(self) -> bool:
        """Search a rate that holds and a higher rate that fails. Returns False if the reach has no such pair."""
        rate = self._within_reach(self._settings.start_per_s)
        while True:
            holds = self._holds_mostly(rate)
            rate = self.outcomes[-1].rate_per_s  # the probe may have rounded it
            if holds:
                self.held_per_s = rate
            else:
                self.failed_per_s = rate
            if self.held_per_s and self.failed_per_s:
                return True
            if self.held_per_s and self.held_per_s >= self.ceiling_per_s:
                return False
            if self.failed_per_s == self.least_per_s:
                return False
            rate = self._within_reach(rate * GROWTH if self.held_per_s else rate / GROWTH)

    def _within_reach(self, rate_per_s: float) -> float:
        """Return the rate of the reach that is nearest to this rate."""
        if rate_per_s < self.least_per_s:
            return self.least_per_s
        return min(rate_per_s, self.ceiling_per_s)

    def _holds_mostly(self, rate_per_s: float) -> bool:
        """Probe the rate, and return whether it holds.

        One probe decides if it holds. Two of three decide if the first fails, or if the rate is an end of the reach.
        """
        is_at_an_end = not self.least_per_s < rate_per_s < self.ceiling_per_s
        if self._make_probe(rate_per_s) and not is_at_an_end:
            return True
        holding = 1 if self.outcomes[-1].holds else 0
        failing = 1 - holding
        while max(holding, failing) < MAJORITY:
            if self._make_probe(rate_per_s):
                holding += 1
            else:
                failing += 1
        return holding >= MAJORITY

    def _narrow(self) -> None:
        """Probe at quantiles of the posterior until the interval is narrow enough.

        The quantiles are Halton's sequence in one dimension, which fills the unit interval evenly: 1/2, 1/4, 3/4, 1/8.
        """
        from scipy.stats import qmc  # takes a second to import

        shares = qmc.Halton(d=1, scramble=False).random(self._settings.most_probes)[1:, 0]  # the first share is 0
        for share in shares.tolist():
            if len(self.outcomes) >= LEAST_PROBES and self._is_answered():
                return
            (rate,) = self._posterior().quantiles([share])
            if not self._make_probe(rate):
                self._make_probe(rate)

    def _is_answered(self) -> bool:
        """Return whether the interval is narrow enough.

        The refined posterior is slow to compute. So it is computed only if the coarse interval is nearly narrow enough.
        """
        coarse = self._posterior()
        if not self._is_narrow(coarse.estimate, spare=STEP):
            return False
        return self._is_narrow(coarse.refined().estimate)

    def _is_narrow(self, capacity: IntervalEstimate, spare: float = 0.0) -> bool:
        """Return whether half the interval's width is within the precision, plus `spare`; both are logarithms."""
        assert capacity.low is not None
        assert capacity.high is not None
        return log(capacity.high / capacity.low) / 2 <= log(1 + self._settings.precision) + spare

    def _posterior(self) -> Posterior:
        """Return the posterior of all outcomes.

        It covers the whole reach and not only the bracket, since noise may have decided a rate of the bracket wrongly.
        """
        if self._first_grid is None:
            self._first_grid = Posterior(self.least_per_s, self.ceiling_per_s)
        new_outcomes = self.outcomes[len(self._first_grid.outcomes) :]
        return self._first_grid.add(new_outcomes)

    @property
    def kind(self) -> str:
        """FOUND, ABOVE, BELOW or UNKNOWN: where the capacity lies."""
        if self.held_per_s and self.failed_per_s:
            return FOUND
        if self.held_per_s:
            return ABOVE
        if self.failed_per_s:
            return BELOW
        return UNKNOWN

    def answer(self) -> Posterior | None:
        """Return the distribution of the capacity; None unless the capacity lies within the reach."""
        if self.kind != FOUND:
            return None
        return self._posterior().refined()

    def flags(self, capacity: IntervalEstimate | None) -> list[str]:
        """Return warnings about the figure, which a page shows above it."""
        flags = []
        if self.stopped:
            flags.append(f"{self.stopped}: the figures are those found until then")
        if capacity and capacity.value > CEILING_SHARE * self.ceiling_per_s:
            highest = f"{CEILING_SHARE:.0%} of {self._axis.ceiling}, {self.ceiling_per_s:,.0f} {self._axis.unit}"
            flags.append(f"the capacity is over {highest}: that ceiling may be what was found")
        if capacity and not self.stopped and not self._is_narrow(capacity):
            wider = f"the interval is wider than --precision {self._settings.precision:g}"
            flags.append(f"{wider} after {counted(len(self.outcomes), 'probes')}")
        return flags

    def as_dict(self, is_over: bool) -> dict[str, Any]:
        """Return the search's part of capacity.json. Estimate and curve are added if `is_over`, since they are slow."""
        answer = self.answer() if is_over else None
        unit = self._axis.name
        capacity = answer.estimate if answer else None
        return {
            "status": "partial" if self.stopped else "complete",
            "flags": self.flags(capacity),
            f"capacity_{unit}": asdict(capacity) if capacity else None,
            "answer": {
                "kind": self.kind,
                f"highest_held_{unit}": self.held_per_s,
                f"lowest_failed_{unit}": self.failed_per_s,
            },
            f"reach_{unit}": {"low": self.least_per_s, "high": self.ceiling_per_s},
            f"ceiling_{unit}": self.ceiling_per_s or None,
            "search": asdict(self._settings),
            "curve": self._curve(answer) if answer else [],
        }

    def _curve(self, answer: Posterior) -> list[dict[str, float | None]]:
        """Return the chance that a probe holds, with its interval, at CURVE_POINTS rates around the probed rates."""
        probed_rates = [outcome.rate_per_s for outcome in self.outcomes]
        lowest = min(probed_rates) / CURVE_MARGIN
        highest = max(probed_rates) * CURVE_MARGIN
        rates = np.geomspace(lowest, highest, CURVE_POINTS).tolist()
        return [{self._axis.name: rate, **asdict(answer.chance(rate))} for rate in rates]
