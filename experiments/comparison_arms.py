"""What a comparison compares: transports, at each of some rates, with the same orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exchange.settings import RunSettings
from experiments.trials.arms import Arm, Factor, arms_of
from runs.errors import UserError
from runs.options import run_settings
from runs.run import runs_in_one_process

ABOUT_A_BROKER = ("amqp_client", "delivery")
"""What only the arms with a broker are told; where there are none, all are, and refuse it."""


def comparison_arms(
    transports: Sequence[str], rates: Sequence[float | None], seconds: float, given: dict[str, Any]
) -> tuple[Arm, ...]:
    """A run of about so many seconds for every transport at every rate. A mistake in any of them is said here."""
    settings = ArmSettings(transports, seconds, given)
    return of_one_kind(arms_of(settings, [transport_factor(transports)], [rate_factor(rates)]))


def of_one_kind(arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
    """UserError where threads of one process would be held against processes: their figures do not compare."""
    kinds = {runs_in_one_process(arm.settings): arm.settings.transport for arm in arms}
    if len(kinds) > 1:
        raise UserError(f"{kinds[True]} runs in threads of one process, {kinds[False]} in processes: compare one kind")
    return arms


class ArmSettings:
    """Makes an arm's settings of what it chooses and what all arms are given."""

    def __init__(self, transports: Sequence[str], seconds: float, given: dict[str, Any]) -> None:
        """`seconds` is how long a run is that is told neither its orders nor its duration."""
        self._seconds, self._given = seconds, given
        self._some_have_a_broker = any(map(has_broker, transports))
        self._about_all = {name: value for name, value in given.items() if name not in ABOUT_A_BROKER}

    def __call__(self, **chosen: Any) -> RunSettings:
        all_of_it = has_broker(chosen["transport"]) or not self._some_have_a_broker
        told = {**(self._given if all_of_it else self._about_all), **chosen}
        if told.get("orders") is None and told.get("duration_s") is None:
            told |= _length(chosen["orders_per_s"], self._seconds)
        made = run_settings(**{"orders": None, **told})
        runs_in_one_process(made)
        return made


def has_broker(transport: str) -> bool:
    return RunSettings(transport=transport).has_broker


def _length(orders_per_s: float | None, seconds: float) -> dict[str, Any]:
    """A number of orders, so that every run at a rate has the same ones; without a rate, only time ends a run."""
    if orders_per_s is None:
        return {"duration_s": seconds}
    return {"orders": max(1, round(orders_per_s * seconds))}


def transport_factor(transports: Sequence[str]) -> Factor:
    """The same transport twice compares it with itself: what the method calls equal should be."""
    if len(transports) < 2:
        raise UserError("--transports needs two or more, as zeromq,tcp; the same one twice is held against itself")
    times_seen = {place: transports[: place + 1].count(name) for place, name in enumerate(transports)}
    words = [name if times_seen[place] == 1 else f"{name}#{times_seen[place]}" for place, name in enumerate(transports)]
    return Factor("transport", dict(zip(words, transports, strict=True)))


def rate_factor(rates: Sequence[float | None]) -> Factor:
    levels = {"as fast as it goes" if rate is None else f"at {rate:,.10g} orders/s": rate for rate in rates}
    if len(levels) < len(rates) or not rates:
        raise UserError("--rates needs one or more, each once, as 1000,2000,4000")
    return Factor("orders_per_s", levels)
