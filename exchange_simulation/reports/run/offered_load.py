"""The load that a run was offered: in words, and the rate of each second."""

from __future__ import annotations

import math
from dataclasses import dataclass

from exchange.json_records import Record, section
from exchange.load_shape import LoadShape
from exchange.scheduled_load import scheduled_load_of_record
from exchange.workload import Arrivals, is_steady
from exchange_simulation.reports.formats.numbers import is_number, rate_text

MOST_SEGMENTS_IN_WORDS = 6


def load_over_time(settings: Record) -> LoadShape | None:
    """Return the rates over time, in orders/s, of a load of steps; None for other loads."""
    orders_per_s = settings.get("orders_per_s")
    if not is_number(orders_per_s):
        return None
    return Arrivals.parse(settings.get("arrivals", "fixed")).load_at(orders_per_s)


def load_in_words(load: LoadShape) -> str:
    """Return the load as a user types it; of many segments only their number.

    For example: 1000@10s,8000@10s orders/s
    """
    if len(load.segments) <= MOST_SEGMENTS_IN_WORDS:
        return f"{load.typed} orders/s"
    return f"up to {rate_text(load.highest)} orders/s in {len(load.segments):,} segments"


@dataclass(frozen=True)
class LoadOfRun:
    """What a run was offered by its schedule."""

    mean_per_s: float | None
    """The mean rate over the run, of all gateways; None if it is not known, or if there is no schedule."""
    is_steady: bool
    """True if the mean rate is the same in every second."""
    load: LoadShape | None
    """The rates over time of all gateways; None for other loads than steps."""
    end_s: float = math.inf
    """When the last order was due; infinite if the settings do not say it. Answers to a backlog come later."""
    run_end_s: float = math.inf
    """When the run ended; infinite if its record does not say it. Its last second is as short as this says."""

    @classmethod
    def of_run(cls, run: Record) -> LoadOfRun:
        settings = section(run, "settings")
        offered = section(run, "rates").get("offered_orders_per_s", settings.get("orders_per_s"))
        scheduled = scheduled_load_of_record(settings)
        load = load_over_time(settings)
        if load is not None:
            load = load.scaled(settings.get("pairs", 1))
        duration_s = run.get("duration_s")
        return cls(
            mean_per_s=offered if is_number(offered) else None,
            is_steady=is_steady(settings.get("arrivals", "fixed")),
            load=load,
            end_s=math.inf if scheduled is None else scheduled.length_s,
            run_end_s=float(duration_s) if is_number(duration_s) else math.inf,
        )

    def in_second(self, second: int) -> float | None:
        """Return the rate that was offered in this second; None if it changes, and is not known by second."""
        if self.load is not None:
            return self._changing_load_in(second, self.load)
        if not self.is_steady or self.mean_per_s is None:
            return None
        return 0.0 if second >= self.end_s else self.mean_per_s

    def _changing_load_in(self, second: int, load: LoadShape) -> float:
        """Return the mean rate over a second, or over the part of it that the run lasted."""
        second_end_s = min(second + 1.0, self.run_end_s)
        if second_end_s <= second:
            return 0.0
        amount_before = load.amount_after(min(second, self.end_s))
        amount = load.amount_after(min(second_end_s, self.end_s)) - amount_before
        return amount / (second_end_s - second)
