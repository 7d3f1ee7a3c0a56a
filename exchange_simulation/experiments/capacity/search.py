"""The search for a capacity: the rate at which half of all probes hold.

This module knows nothing of an exchange.

The search first finds a bracket: from its start, by factors of four, to a rate that holds below one that does not. Then
it probes where the capacity may still be, until the interval is narrow enough. A failed probe is repeated at its rate.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from math import log
from typing import Any

import numpy as np

from exchange.estimates import IntervalEstimate
from exchange.json_records import LoadAxis, Record
from exchange.words import counted
from exchange_simulation.experiments.capacity.curve import STEP, Posterior, ProbeOutcome

Probe = Callable[[float], ProbeOutcome]
"""A function that offers a rate and returns how that went."""

OF_ORDERS = LoadAxis()
GROWTH = 4.0
"""Factor from one rate of the bracket to the next."""
LEAST_PROBES = 12
MAJORITY = 2
"""Two probes of three decide a rate of the bracket, if its first probe failed or it is at an end of the reach."""
NEAR_THE_CEILING = 0.8
"""A capacity above this share of the generator's own ceiling says little about the transport."""
FOUND, ABOVE, BELOW, UNKNOWN = "found", "above", "below", "unknown"
CURVE_POINTS = 61
CURVE_MARGIN = 1.25
"""The curve is drawn as far beyond the lowest and the highest probe."""


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """The rate at which a search starts, and when it ends."""

    start_per_s: float = 2_000.0
    precision: float = 0.05
    """The search ends once the interval's half width is this share of the capacity."""
    most_probes: int = 30
    pause_s: float = 0.5
    """Time between two runs for the previous one to drain."""
    seconds: float = 2.0
    """How long a probe offers orders, at least."""
    longest_s: float = 10.0
    """How long a probe may offer orders at a low rate, to have as many as the objective needs."""
    redo_noisy: bool = True
    """Whether a probe beside which others used the machine is made again."""


def search_settings_of(record: Record) -> SearchSettings:
    """Return the settings of a recorded search; those that an older version's record lacks have their defaults."""
    recorded = {"seconds": record["settings"].get("duration_s") or SearchSettings.seconds, **record["search"]}
    names = {setting.name for setting in fields(SearchSettings)}
    return SearchSettings(**{name: value for name, value in recorded.items() if name in names})


class Enough(Exception):
    """The search has made as many probes as it may."""


class CapacitySearch:
    """A search, with the outcomes of its probes so far; an interrupt leaves them as they are."""

    def __init__(
        self,
        probe: Probe,
        measure_ceiling_per_s: Callable[[], float],
        least_per_s: float,
        settings: SearchSettings,
        axis: LoadAxis = OF_ORDERS,
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
        self.held_per_s: float | None = None
        """The highest rate of the bracket that held."""
        self.failed_per_s: float | None = None
        self.stopped: str | None = "interrupted"
        """The reason why the search is incomplete, None if it is complete."""

    def run(self) -> None:
        """Measure the ceiling and make all probes."""
        self.ceiling_per_s = self._measure_ceiling_per_s()
        self.least_per_s = min(self.least_per_s, self.ceiling_per_s)
        with contextlib.suppress(Enough):
            if self._bracket():
                self._narrow()
        self.stopped = None

    def _make_probe(self, rate_per_s: float) -> bool:
        """Make a probe; returns whether it held. Enough if no further one is allowed."""
        if len(self.outcomes) >= self._settings.most_probes:
            raise Enough
        self.outcomes.append(self._probe(round(rate_per_s) if self._axis.whole else rate_per_s))
        return self.outcomes[-1].holds

    def _bracket(self) -> bool:
        """Return True once a rate holds and a higher one does not; False if the reach ends before that."""
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
        return min(max(rate_per_s, self.least_per_s), self.ceiling_per_s)

    def _holds_mostly(self, rate_per_s: float) -> bool:
        """Return whether the rate holds: best of three if its first probe fails, or at an end of the reach."""
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
        """Probe at the quantiles of what is possible: the middle, a quarter, three quarters, an eighth ...

        These shares are Halton's sequence in one dimension, which fills the unit interval evenly.
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

        The fine grid is slow, so it is filled only once the first grid's interval is nearly narrow enough.
        """
        posterior = self._posterior()
        return self._is_narrow(posterior.estimate, STEP) and self._is_narrow(posterior.refined().estimate)

    def _is_narrow(self, capacity: IntervalEstimate, spare: float = 0.0) -> bool:
        assert capacity.low is not None
        assert capacity.high is not None
        return log(capacity.high / capacity.low) / 2 <= log(1 + self._settings.precision) + spare

    def _posterior(self) -> Posterior:
        """Return the posterior of all outcomes, over the whole reach: the bracket's probes may have been unlucky."""
        if self._first_grid is None:
            self._first_grid = Posterior(self.least_per_s, self.ceiling_per_s)
        new_outcomes = self.outcomes[len(self._first_grid.outcomes) :]
        return self._first_grid.add(new_outcomes)

    @property
    def kind(self) -> str:
        """FOUND, or the end of the reach beyond which the capacity lies; UNKNOWN before any rate is decided."""
        if self.held_per_s and self.failed_per_s:
            return FOUND
        if self.held_per_s:
            return ABOVE
        if self.failed_per_s:
            return BELOW
        return UNKNOWN

    def answer(self) -> Posterior | None:
        """Return the distribution of the capacity; None if the capacity lies beyond the reach."""
        return self._posterior().refined() if self.kind == FOUND else None

    def flags(self, capacity: IntervalEstimate | None) -> list[str]:
        """Return the sentences that a reader must know before the figure."""
        flags = []
        if self.stopped:
            flags.append(f"{self.stopped}: the figures are those found until then")
        if capacity and capacity.value > NEAR_THE_CEILING * self.ceiling_per_s:
            highest = f"{NEAR_THE_CEILING:.0%} of {self._axis.ceiling}, {self.ceiling_per_s:,.0f} {self._axis.unit}"
            flags.append(f"the capacity is over {highest}: that ceiling may be what was found")
        if capacity and not self.stopped and not self._is_narrow(capacity):
            wider = f"the interval is wider than --precision {self._settings.precision:g}"
            flags.append(f"{wider} after {counted(len(self.outcomes), 'probes')}")
        return flags

    def as_dict(self, is_over: bool) -> dict[str, Any]:
        """Return capacity.json's part about the search, with estimate and curve if it is over."""
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
        """Return the chance of holding, with its interval, at rates about those that were probed."""
        rates = [outcome.rate_per_s for outcome in self.outcomes]
        grid = np.geomspace(min(rates) / CURVE_MARGIN, max(rates) * CURVE_MARGIN, CURVE_POINTS)
        return [{self._axis.name: rate, **asdict(answer.chance(rate))} for rate in grid.tolist()]
