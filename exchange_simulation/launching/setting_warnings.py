"""Warnings about settings that are allowed, but seldom intended."""

from __future__ import annotations

from exchange.settings import RunSettings
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.priority import processors_of


def warn_of_rejections(settings: RunSettings) -> None:
    """Warn of seeded orders that the book will reject. The prices of a tape are not checked."""
    if settings.tape is None:
        warn_of_prices(settings.prices, settings.max_price)


def warn_of_spinning(*runs: RunSettings) -> None:
    """Warn of runs whose --pace spin has no effect, or leaves the engine no processor."""
    spinning = [settings for settings in runs if settings.spin_ns]
    if any(settings.orders_per_s is None for settings in spinning):
        say("warning: --pace spin does nothing at --rate max, where no order waits for its due time")
    if spinning and len(processors_of()) == 1:
        say(f"warning: --pace {spinning[0].pace} with one processor: while the gateway spins, nothing else runs")


def warn_of_prices(prices: tuple[int, int], max_price: int) -> None:
    """Warn of prices outside of the book."""
    low, high = prices
    if low < 1 or high > max_price:
        say(f"warning: --prices {low}..{high} leave the book's 1..{max_price}: such orders will be rejected")
