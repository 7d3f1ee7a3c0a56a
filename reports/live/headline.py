"""What runs, and how far it is."""

from __future__ import annotations

from exchange.settings import RunSettings
from exchange.words import each_of
from reports.live.time_left import left_s, said
from transports.registry import scheme_of


class Headline:
    """Of one run: before its first second, after each, at its end."""

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        rate = settings.orders_per_s
        each = settings.orders if rate is None else settings.order_limit
        self._of_total = " orders" if each is None else f" of {settings.pairs * each:,} orders"
        offered = "as fast as it goes" if rate is None else f"at {rate:,.10g} orders/s"
        self._what = f"{scheme_of(settings.transport)}{each_of(settings.pairs)} {offered}"

    @property
    def before(self) -> str:
        return f"{self._what}: the components get ready"

    def at(self, answered: int, elapsed_s: float) -> str:
        left = left_s(self._settings, answered, elapsed_s)
        left_said = "" if left is None else f", {said(left)} left"
        return f"{self._what}: {answered:,}{self._of_total} answered{left_said}"

    @property
    def at_the_end(self) -> str:
        return f"{self._what}: ended"
