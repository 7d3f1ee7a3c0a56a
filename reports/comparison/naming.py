"""What an arm is called where its rate stands beside it."""

from __future__ import annotations

from typing import Any


def beside_the_rate(arm: dict[str, Any]) -> str:
    """What else the arm's block holds fast: a name, or a title, goes on with it."""
    words = arm["block"].partition(", ")[2]
    return f", {words}" if words else ""


def rate_and_name(arm: dict[str, Any]) -> tuple[str, str]:
    """8,000 or max; amqp, packing 10, arrivals poisson"""
    rate = arm["settings"]["orders_per_s"]
    return ("max" if rate is None else f"{rate:,.10g}"), arm["contender"] + beside_the_rate(arm)
