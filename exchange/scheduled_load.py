"""The load that a run's schedule offers: how many orders, in which time, at which mean rate.

The settings, run.json and the pages all take these figures from here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exchange.load_shape import LoadShape
from exchange.workload import Arrivals

MAX_ORDERS = 2**32 - 1
"""The most orders of a run: ids are u32."""


@dataclass(frozen=True)
class ScheduledLoad:
    """The orders of a schedule, and the rates at which they fall due."""

    rates: LoadShape
    """Orders a second over time. Arrivals other than steps have one rate here: their mean."""
    orders: int
    """The orders after which the schedule ends."""

    @classmethod
    def of(
        cls, arrivals: Arrivals, orders_per_s: float, most_orders: int | None, duration_s: float | None
    ) -> ScheduledLoad:
        """Return the load that ends after `most_orders`, or after `duration_s` where that comes first."""
        rates = arrivals.mean_rates(orders_per_s)
        orders = MAX_ORDERS if most_orders is None else most_orders
        if duration_s is not None:
            amount = round(rates.amount_after(duration_s), 6)  # 0.07 s of 100 orders/s are 7.000000000000001 orders
            orders = min(orders, max(1, math.ceil(amount)))
        return cls(rates, orders)

    @property
    def length_s(self) -> float:
        """The time in which the orders fall due. If the segments of steps are over before, their last rate goes on."""
        return self.rates.seconds_until(self.orders)

    @property
    def mean_per_s(self) -> float:
        """The mean rate over that time, in orders/s."""
        if self.rates.is_steady:
            return self.rates.highest
        return self.orders / self.length_s


def scheduled_load_of_record(settings: Mapping[str, Any]) -> ScheduledLoad | None:
    """Return the load of the `settings` of a run.json: of each pair, or of a market's gateways together.

    None without a schedule, or if the settings do not say when it ends.
    """
    orders_per_s = settings.get("orders_per_s")
    orders = settings.get("orders")
    duration_s = settings.get("duration_s")
    if orders_per_s is None or (orders is None and duration_s is None):
        return None
    arrivals = Arrivals.parse(settings.get("arrivals", "fixed"))
    return ScheduledLoad.of(arrivals, orders_per_s, orders, duration_s)
