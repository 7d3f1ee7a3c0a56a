"""A sweep's arms: every combination of what varies, where it makes sense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from exchange.settings import RunSettings
from experiments.comparison_arms import ABOUT_A_BROKER, ArmSettings, has_broker, of_one_kind, rate_factor
from experiments.sweep.description import Description, Levels
from experiments.sweep.keys import keys
from experiments.trials.arms import Arm, Factor, arms_of

CONDITIONS = (
    "rate", "arrivals", "orders", "duration", "seed", "prices", "price-model", "tape", "speed", "network",
)  # fmt: skip
"""What is offered, and where: arms are held against each other under the same, if anything else varies."""
DEFAULT_TRANSPORT, DEFAULT_RATE, DEFAULT_DURATION_S = "zeromq", 8000.0, 5.0
WARM_UP_S, LEAST_LENGTH_S = 1.0, 5.0
"""Analysis leaves out the first second of a run of five or more, unless it is told what to leave out."""


def sweep_arms(description: Description) -> tuple[Arm, ...]:
    """A mistake in any of them is said here."""
    vary, run = dict(description.vary), dict(description.run)
    transports = vary.pop("transport", None) or _only(run.pop("transport", DEFAULT_TRANSPORT))
    vary.setdefault("rate", _only(run.pop("rate", DEFAULT_RATE)))
    given = {key.field: run[name] for name, key in keys().items() if name in run}
    settings = SweepSettings(list(transports.values()), given)
    return of_one_kind(tuple(arm for words in transports for arm in _over({words: transports[words]}, vary, settings)))


def _only(value: Any) -> Levels:
    return {str(value): value}


def _over(transport: Levels, vary: Mapping[str, Levels], settings: SweepSettings) -> tuple[Arm, ...]:
    """The arms over one transport, of what it has."""
    (name,) = transport.values()
    there = {key: _possible(key, levels, name) for key, levels in vary.items()}
    there = {key: levels for key, levels in there.items() if levels}
    conditions = [key for key in there if key in CONDITIONS]
    if len(conditions) == len(there) and not settings.several_transports:
        conditions = ["rate"]
    alone = settings.several_transports or len(conditions) == len(there)
    contenders = [_factor(key, levels) for key, levels in there.items() if key not in conditions]
    return arms_of(
        settings,
        [Factor("transport", transport if alone else {"": name}), *contenders],
        [rate_factor(list(there["rate"].values())), *(_factor(key, there[key]) for key in conditions if key != "rate")],
    )


def _possible(key: str, levels: Levels, transport: str) -> Levels:
    """What a transport without a broker has not: its guarantees and clients, and Nagle's algorithm there."""
    if has_broker(transport):
        return levels
    if keys()[key].field in ABOUT_A_BROKER:
        return {}
    return levels if key != "nagle" else {words: roles for words, roles in levels.items() if "broker" not in roles}


def _factor(key: str, levels: Levels) -> Factor:
    return Factor(keys()[key].field, {f"{key} {words}": value for words, value in levels.items()})


class SweepSettings:
    """Makes an arm's settings, and leaves out its warm-up by the rule, unless it is told what to leave out."""

    def __init__(self, transports: list[str], given: dict[str, Any]) -> None:
        self.several_transports = len(transports) > 1
        self._of_arm = ArmSettings(transports, DEFAULT_DURATION_S, given)
        self._by_rule = "warm_up_s" not in given

    def __call__(self, **chosen: Any) -> RunSettings:
        made = self._of_arm(**chosen)
        return replace(made, warm_up_s=_warm_up_s(made)) if self._by_rule and "warm_up_s" not in chosen else made


def _warm_up_s(settings: RunSettings) -> float:
    return WARM_UP_S if (settings.length_s or 0.0) >= LEAST_LENGTH_S else 0.0
