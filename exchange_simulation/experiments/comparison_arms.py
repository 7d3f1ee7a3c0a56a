"""The arms of `exchange compare` (transports at rates) and of `exchange nagle` (Nagle's algorithm off or on)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exchange.settings import NAGLE_ROLES, ROLES, RunSettings
from exchange.words import counted
from exchange_simulation.experiments.trials.arms import Factor, TrialArm, arms_of
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.hosts.checks import check_hosts
from exchange_simulation.launching.option_types import USUAL
from exchange_simulation.launching.transport_checks import check_transport, check_warm_up, runs_in_one_process
from exchange_simulation.launching.transport_defaults import defaults_of
from exchange_simulation.launching.typed_settings import run_settings
from transports.registry import has_broker

LOCAL = "local"
"""The network of a run on loopback."""
NAGLE_OFF = "Nagle off"


def comparison_arms(
    transports: Sequence[str],
    rates: Sequence[float | None],
    seconds: float,
    given: dict[str, Any],
    gateways: Sequence[int] = (1,),
    subscribers: Sequence[int] = (0,),
    engines: Sequence[int] = (1,),
    least_transports: int = 2,
) -> tuple[TrialArm, ...]:
    """Return an arm for every transport at every rate, with every number of gateways, engines and subscribers.

    A run takes about `seconds`. UserError for a mistake in one, or for fewer than `least_transports`.
    """
    settings = ArmSettings(transports, seconds, given)
    blocks = [rate_factor(rates)]
    if list(gateways) != [1]:
        blocks.append(numbers_factor("gateways", gateways, "1,4,16"))
    if list(engines) != [1]:
        blocks.append(numbers_factor("engines", engines, "1,2"))
    if list(subscribers) != [0]:
        blocks.append(numbers_factor("subscribers", subscribers, "0,8"))
    return of_one_kind(arms_of(settings, [transport_factor(transports, least_transports)], blocks))


def of_one_kind(arms: tuple[TrialArm, ...]) -> tuple[TrialArm, ...]:
    """Return the same arms. UserError if some run in threads and others in processes, which cannot be compared."""
    in_threads = ""
    in_processes = ""
    for arm in arms:
        transport = arm.settings.transport
        if runs_in_one_process(transport):
            in_threads = transport
        else:
            in_processes = transport
    if in_threads and in_processes:
        raise UserError(f"{in_threads} runs in threads of one process, {in_processes} in processes: compare one kind")
    return arms


class ArmSettings:
    """Makes an arm's settings from its own choices and from `given`, which all arms share."""

    def __init__(self, transports: Sequence[str], seconds: float, given: dict[str, Any]) -> None:
        """`seconds` is the length of a run for which neither orders nor a duration is given.

        A setting of a transport is left out of the arms whose transport lacks it. If no transport has the setting, it
        is kept, so that the check of the settings refuses it.
        """
        self._seconds = seconds
        self._given = given
        self._settings_of_some: set[str] = set()
        for transport in transports:
            self._settings_of_some |= defaults_of(transport).keys()

    def __call__(self, **chosen: Any) -> RunSettings:
        """Return the settings of an arm. UserError or BadSetting for a mistake."""
        lacking = self._settings_of_some - defaults_of(chosen["transport"]).keys()
        fields = {name: value for name, value in self._given.items() if name not in lacking}
        fields |= chosen
        if fields.get("orders") is None and fields.get("duration_s") is None:
            fields |= _length(chosen.get("orders_per_s"), self._seconds)
        fields.setdefault("orders", None)  # a duration alone bounds the run: there is no default number of orders
        settings = run_settings(**fields)
        check_warm_up(settings)
        check_transport(settings)
        check_hosts(settings)
        return settings


def _length(orders_per_s: float | None, seconds: float) -> dict[str, Any]:
    """Return the number of orders, so that all runs at a rate have the same orders; without a rate, the duration."""
    if orders_per_s is None:
        return {"duration_s": seconds}
    return {"orders": max(1, round(orders_per_s * seconds))}


def transport_factor(transports: Sequence[str], least: int = 2) -> Factor:
    """Return a level for each transport. A repeated transport gets a number, and is compared with itself.

    For example: zeromq, zeromq#2. UserError for fewer than `least` transports.
    """
    if len(transports) < least:
        raise UserError("--transports needs two or more, as zeromq,tcp; the same one twice is compared with itself")
    levels = {}
    for place, transport in enumerate(transports):
        times_before = transports[:place].count(transport)
        words = f"{transport}#{times_before + 1}" if times_before else transport
        levels[words] = transport
    return Factor("transport", levels)


def rate_words(orders_per_s: float | None) -> str:
    """Return the rate of an arm in words. For example: at 8,000 orders/s."""
    return "as fast as it goes" if orders_per_s is None else f"at {orders_per_s:,.10g} orders/s"


def rate_factor(rates: Sequence[float | None]) -> Factor:
    """Return a level for each rate. UserError if there is no rate, or one rate twice."""
    if not rates:
        raise UserError("--rates is empty: give one or more, each once, as 1000,2000,4000")
    levels: dict[str, float | None] = {}
    for orders_per_s in rates:
        words = rate_words(orders_per_s)
        if words in levels:
            rate = words.removeprefix("at ")
            raise UserError(f"--rates has the rate {rate} twice: give each once, as 1000,2000,4000")
        levels[words] = orders_per_s
    return Factor("orders_per_s", levels)


def network_factor(networks: Sequence[str]) -> Factor:
    """Return a level for each network, without words if there is one. UserError if there is none, or one twice."""
    if not networks:
        raise UserError("--network is empty: give one or more, each once, as local,gige")
    if len(networks) == 1:
        return Factor("network", {"": networks[0]})
    levels: dict[str, str] = {}
    for network in networks:
        words = f"on {network}"
        if words in levels:
            raise UserError(f"--network has {network} twice: give each once, as local,gige")
        levels[words] = network
    return Factor("network", levels)


def numbers_factor(components: str, numbers: Sequence[int], example: str) -> Factor:
    """Return a level for each number of such components, as gateways. UserError if there is none, or one twice."""
    if not numbers:
        raise UserError(f"--{components} is empty: give one number or more, each once, as {example}")
    levels: dict[str, int] = {}
    for number in numbers:
        words = counted(number, components)
        if words in levels:
            raise UserError(f"--{components} has {number} twice: give each number once, as {example}")
        levels[words] = number
    return Factor(components, levels)


def nagle_arms(
    transports: Sequence[str],
    rates: Sequence[float | None],
    levels: Sequence[str],
    seconds: float,
    given: dict[str, Any],
    networks: Sequence[str] = (LOCAL,),
) -> tuple[TrialArm, ...]:
    """Return arms for each transport at each rate, on each network.

    The first arm of each block has Nagle's algorithm off, the others have it on at each level.

    A level is roles joined by +, or all, or usual. Usual is as in Subramoni et al. (docs/nagle.md): the broker alone,
    or every role where there is no broker. A level with the broker has no arm over a transport without a broker. A
    transport that has none of the levels has no arm at all. UserError if no transport has a level.
    """
    if not transports:
        raise UserError("--transports is empty: give one or more, each once, as tcp,zeromq,amqp")
    for transport in transports:
        if transports.count(transport) > 1:
            raise UserError(f"--transports has {transport} twice: give each once, as tcp,zeromq,amqp")
    settings = ArmSettings(transports, seconds, given)
    conditions = [rate_factor(rates), network_factor(networks)]
    arms: list[TrialArm] = []
    for transport in transports:
        arms += _nagle_arms_over(transport, conditions, levels, settings)
    if not arms:
        raise UserError(f"--roles {','.join(levels)}: there is no such role over {', '.join(transports)}")
    return tuple(arms)


def _nagle_arms_over(
    transport: str, conditions: Sequence[Factor], levels: Sequence[str], settings: ArmSettings
) -> tuple[TrialArm, ...]:
    """Return the arms over one transport; none if the transport has none of the levels."""
    roles_by_level: dict[str, tuple[str, ...]] = {NAGLE_OFF: ()}
    for level in levels:
        roles = _roles_of(level, transport)
        if roles is not None:
            words = _level_in_words(level, roles, transport)
            roles_by_level[words] = roles
    if len(roles_by_level) == 1:
        return ()
    blocks = [Factor("transport", {transport: transport}), *conditions]
    return arms_of(settings, [Factor("nagle", roles_by_level)], blocks)


def _roles_of(level: str, transport: str) -> tuple[str, ...] | None:
    """Return the roles of a level; None if the transport lacks one of them. UserError if the text is no level."""
    roles_of_transport = _roles_over(transport)
    if level == "all":
        return roles_of_transport
    if level == USUAL:
        return ("broker",) if has_broker(transport) else roles_of_transport
    roles = tuple(level.split("+"))
    if not set(roles) <= set(NAGLE_ROLES):
        raise UserError(
            f"--roles takes levels of {', '.join(NAGLE_ROLES)}, joined by +, all or usual; {level!r} is none"
        )
    return roles if set(roles) <= set(roles_of_transport) else None


def _roles_over(transport: str) -> tuple[str, ...]:
    """Return the roles that may have Nagle's algorithm on over the transport."""
    return NAGLE_ROLES if has_broker(transport) else ROLES


def _level_in_words(level: str, roles: tuple[str, ...], transport: str) -> str:
    """Return the level in words. For example: Nagle on; Nagle on at gateway and engine.

    Roles that the user listed are named, even if they are all roles.
    """
    is_list_of_roles = level not in ("all", USUAL)
    has_every_role = set(roles) == set(_roles_over(transport))
    if has_every_role and not is_list_of_roles:
        return "Nagle on"
    return f"Nagle on at {' and '.join(roles)}"
