"""What is compared: Nagle's algorithm off, and on at some roles, over each transport at each rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exchange.settings import NAGLE_ROLES, ROLES
from experiments.comparison_arms import ArmSettings, has_broker, rate_factor
from experiments.trials.arms import Arm, Factor, arms_of
from runs.errors import UserError

OFF = "Nagle off"


def nagle_arms(
    transports: Sequence[str], rates: Sequence[float | None], roles: Sequence[str], seconds: float,
    given: dict[str, Any],
) -> tuple[Arm, ...]:  # fmt: skip
    """Off first, which the others are held against. A level that names the broker has no arm where there is none."""
    if not transports or len(set(transports)) < len(transports):
        raise UserError("--transports needs one or more, each once, as tcp,zeromq,amqp")
    settings = ArmSettings(transports, seconds, given)
    return tuple(arm for transport in transports for arm in _over(transport, rates, roles, settings))


def _over(
    transport: str, rates: Sequence[float | None], roles: Sequence[str], settings: ArmSettings
) -> tuple[Arm, ...]:
    levels = {OFF: ()} | {words: named for level in roles for words, named in _level(level, transport)}
    blocks = [Factor("transport", {transport: transport}), rate_factor(rates)]
    return arms_of(settings, [Factor("nagle", levels)], blocks)


def _level(level: str, transport: str) -> list[tuple[str, tuple[str, ...]]]:
    """gateway+engine, or all: (words, roles); none over a transport that lacks one of the roles."""
    there = NAGLE_ROLES if has_broker(transport) else ROLES
    if level == "all":
        return [("Nagle on", there)]
    named = tuple(level.split("+"))
    if not set(named) <= set(NAGLE_ROLES):
        raise UserError(f"--roles takes levels of {', '.join(NAGLE_ROLES)}, joined by +, or all; {level!r} is none")
    return [(f"Nagle on at {' and '.join(named)}", named)] if set(named) <= set(there) else []
