"""The arms of `exchange compare` and `exchange nagle`: transports at rates, and Nagle's algorithm off or on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exchange.settings import NAGLE_ROLES, ROLES, RunSettings
from exchange_simulation.experiments.trials.arms import Arm, Factor, arms_of
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.option_types import USUAL
from exchange_simulation.launching.options import run_settings
from exchange_simulation.launching.transport_settings import (
    check_transport,
    check_warm_up,
    defaults_of,
    runs_in_one_process,
)
from transports.registry import has_broker

NAGLE_OFF = "Nagle off"


def comparison_arms(
    transports: Sequence[str], rates: Sequence[float | None], seconds: float, given: dict[str, Any]
) -> tuple[Arm, ...]:
    """Every transport at every rate, in runs of about `seconds`. UserError for a mistake in any arm."""
    settings = ArmSettings(transports, seconds, given)
    return of_one_kind(arms_of(settings, [transport_factor(transports)], [rate_factor(rates)]))


def of_one_kind(arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
    """The same arms. UserError if some run in threads and others in processes: their figures do not compare."""
    kinds = {runs_in_one_process(arm.settings.transport): arm.settings.transport for arm in arms}
    if len(kinds) > 1:
        raise UserError(f"{kinds[True]} runs in threads of one process, {kinds[False]} in processes: compare one kind")
    return arms


class ArmSettings:
    """Makes an arm's settings from its own choices and from `given`, which all arms share."""

    def __init__(self, transports: Sequence[str], seconds: float, given: dict[str, Any]) -> None:
        """`seconds` is the length of a run for which neither orders nor a duration is given.

        A setting that some of the transports have goes to their arms only. If none has it, all arms get and refuse it.
        """
        self._seconds, self._given = seconds, given
        self._of_some = {name for transport in transports for name in defaults_of(transport)}

    def __call__(self, **chosen: Any) -> RunSettings:
        lacks = self._of_some - defaults_of(chosen["transport"]).keys()
        fields = {**{name: value for name, value in self._given.items() if name not in lacks}, **chosen}
        if fields.get("orders") is None and fields.get("duration_s") is None:
            fields |= _length(chosen.get("orders_per_s"), self._seconds)
        settings = run_settings(**{"orders": None, **fields})
        check_warm_up(settings)
        check_transport(settings)
        return settings


def _length(orders_per_s: float | None, seconds: float) -> dict[str, Any]:
    """A number of orders, so that all runs at a rate have the same ones; without a rate, a duration."""
    if orders_per_s is None:
        return {"duration_s": seconds}
    return {"orders": max(1, round(orders_per_s * seconds))}


def transport_factor(transports: Sequence[str]) -> Factor:
    """A level for each transport; a repeated one gets a number, so that it is compared with itself."""
    if len(transports) < 2:
        raise UserError("--transports needs two or more, as zeromq,tcp; the same one twice is compared with itself")
    before = [transports[:place].count(name) for place, name in enumerate(transports)]
    words = [f"{name}#{times + 1}" if times else name for name, times in zip(transports, before, strict=True)]
    return Factor("transport", dict(zip(words, transports, strict=True)))


def rate_words(orders_per_s: float | None) -> str:
    """The rate of an arm in words."""
    return "as fast as it goes" if orders_per_s is None else f"at {orders_per_s:,.10g} orders/s"


def rate_factor(rates: Sequence[float | None]) -> Factor:
    levels = {rate_words(orders_per_s): orders_per_s for orders_per_s in rates}
    if len(levels) < len(rates) or not rates:
        raise UserError("--rates needs one or more, each once, as 1000,2000,4000")
    return Factor("orders_per_s", levels)


def nagle_arms(
    transports: Sequence[str],
    rates: Sequence[float | None],
    levels: Sequence[str],
    seconds: float,
    given: dict[str, Any],
) -> tuple[Arm, ...]:
    """Each transport at each rate with Nagle's algorithm off, which comes first, and on at each level.

    A level is roles joined by +, or all. A level that names the broker has no arm over a transport without one, and a
    transport without a level has no arm at all. UserError if no transport has a level.
    """
    if not transports or len(set(transports)) < len(transports):
        raise UserError("--transports needs one or more, each once, as tcp,zeromq,amqp")
    settings = ArmSettings(transports, seconds, given)
    arms = tuple(arm for transport in transports for arm in _nagle_arms_over(transport, rates, levels, settings))
    if not arms:
        raise UserError(f"--roles {','.join(levels)}: there is no such role over {', '.join(transports)}")
    return arms


def _nagle_arms_over(
    transport: str, rates: Sequence[float | None], levels: Sequence[str], settings: ArmSettings
) -> tuple[Arm, ...]:
    nagle = {words: roles for level in levels for words, roles in _nagle_level(level, transport)}
    blocks = [Factor("transport", {transport: transport}), rate_factor(rates)]
    return arms_of(settings, [Factor("nagle", {NAGLE_OFF: ()} | nagle)], blocks) if nagle else ()


def _nagle_level(level: str, transport: str) -> list[tuple[str, tuple[str, ...]]]:
    """The level as [(words, roles)]; empty over a transport that lacks one of the roles."""
    known = NAGLE_ROLES if has_broker(transport) else ROLES
    if level == USUAL:
        level = "broker" if has_broker(transport) else "all"
    if level == "all":
        return [("Nagle on", known)]
    roles = tuple(level.split("+"))
    if not set(roles) <= set(NAGLE_ROLES):
        raise UserError(
            f"--roles takes levels of {', '.join(NAGLE_ROLES)}, joined by +, all or usual; {level!r} is none"
        )
    return [(f"Nagle on at {' and '.join(roles)}", roles)] if set(roles) <= set(known) else []
