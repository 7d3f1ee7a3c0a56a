"""How many locations there are and how often each begins an interaction: vertical, horizontal, or as a file says.

The paper's rules (sections 3.2 and 3.3) with BASE = B:

                 supermarkets  centres    suppliers    headquarters  families  a supplier offers   rates
    vertical     10            2          5            1             100       half of them        grow with B
    horizontal   B             ceil(B/5)  ceil(0.4 B)  ceil(B/20)    B         5 of them           fixed

The paper prints no rates. SHARES gives what each interaction has of 100 delivered messages, recovered from its tables 4
and 5; `PER_BASE` messages a second are delivered for each unit of BASE. Both are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.toml_file import read_toml
from exchange_simulation.messaging.supply_chain.messages import INTERACTIONS, AgentKind, Message

VERTICAL, HORIZONTAL, FREEFORM = TOPOLOGIES = ("vertical", "horizontal", "freeform")
PER_BASE = 20.0
SHARES = {
    VERTICAL: {1: 4.50, 2: 1.22, 3: 2.93, 4: 9.09, 5: 33.37, 6: 8.29, 7: 5.90},
    HORIZONTAL: {1: 2.89, 2: 0.74, 3: 10.96, 4: 5.87, 5: 20.91, 6: 20.83, 7: 16.63},
}
"""Shares of 100 delivered messages: initiations of interactions 1, 2, 4, 5; deliveries of the topics of 3, 6 and 7."""
LEAST_HORIZONTAL = 5
"""With fewer supermarkets there are fewer than the five families of products that each supplier offers."""
COUNTS = {
    AgentKind.SM: "supermarkets",
    AgentKind.DC: "distribution_centres",
    AgentKind.SP: "suppliers",
    AgentKind.HQ: "headquarters",
}
MOST_LOCATIONS, MOST_FAMILIES = 1_000, 10_000


@dataclass(frozen=True)
class Topology:
    """`rates`: initiations a second of each location that begins the interaction; for headquarters, of all together.

    `offers_of`: the share of all families that each supplier offers, the paper's rho.
    """

    name: str
    locations: Mapping[AgentKind, int]
    families: int
    offers_of: float
    rates: Mapping[int, float]

    def initiations_per_s(self, interaction: int) -> float:
        """Initiations a second at all locations together; the headquarters' instances are one location."""
        initiator = INTERACTIONS[interaction].initiator
        return self.rates.get(interaction, 0.0) * (1 if initiator is AgentKind.HQ else self.locations[initiator])

    @property
    def suppliers_of_a_family(self) -> float:
        """The paper's zeta."""
        return self.locations[AgentKind.SP] * self.offers_of

    @property
    def interactions(self) -> list[int]:
        return [number for number in INTERACTIONS if self.rates.get(number, 0.0) > 0]

    @property
    def messages(self) -> list[Message]:
        return [message for number in self.interactions for message in INTERACTIONS[number].messages]

    def only(self, numbers: Collection[int]) -> Topology:
        """The same with all other interactions off."""
        return replace(self, rates={number: rate for number, rate in self.rates.items() if number in numbers})


def vertical(base: int) -> Topology:
    locations = {AgentKind.SM: 10, AgentKind.DC: 2, AgentKind.SP: 5, AgentKind.HQ: 1}
    return Topology(
        VERTICAL, locations, 100, 0.5, _rates(VERTICAL, base, locations[AgentKind.SM], locations[AgentKind.DC])
    )


def horizontal(base: int) -> Topology:
    """UserError below LEAST_HORIZONTAL."""
    if base < LEAST_HORIZONTAL:
        raise UserError(
            f"--base is {base}; --topology horizontal takes {LEAST_HORIZONTAL} or more: "
            f"each supplier offers {LEAST_HORIZONTAL} families of products, and there are as many as --base"
        )
    centres, suppliers, headquarters = (math.ceil(base / share) for share in (5, 2.5, 20))
    locations = {AgentKind.SM: base, AgentKind.DC: centres, AgentKind.SP: suppliers, AgentKind.HQ: headquarters}
    return Topology(HORIZONTAL, locations, base, 5 / base, _rates(HORIZONTAL, 1, 1, 1 / 5))


def _rates(name: str, base: int, supermarkets: float, centres: float) -> dict[int, float]:
    """Rates at which the shares come out with so many locations."""
    per_s = {number: share / 100 * PER_BASE * base for number, share in SHARES[name].items()}
    return {number: rate / (centres if number == 2 else supermarkets) for number, rate in per_s.items()}


def freeform(path: Path) -> Topology:
    """Read the locations, families and rates of a TOML file. UserError says which entry is wrong, and what it takes."""
    try:
        entries = read_toml(path)
    except FileNotFoundError as error:
        raise UserError(f"--config {path} cannot be read: {error.strerror}") from error
    _check_names(f"--config {path}", entries, {"locations", "families", "offers_of", "rates"})
    locations = _table(path, entries, "locations")
    _check_names(f"--config {path}: [locations]", locations, set(COUNTS.values()))
    rates = _table(path, entries, "rates")
    _check_names(f"--config {path}: [rates]", rates, {str(number) for number in INTERACTIONS})
    return Topology(
        FREEFORM,
        {kind: _whole(path, locations, word, 0, MOST_LOCATIONS) for kind, word in COUNTS.items()},
        _whole(path, entries, "families", 1, MOST_FAMILIES, default=1),
        _checked(
            path,
            "offers_of",
            entries.get("offers_of", 1.0),
            lambda share: 0 < share <= 1,
            "a share above 0 and up to 1",
        ),
        {
            int(each): _checked(
                path,
                f"the rate of interaction {each}",
                rate,
                lambda rate: 0 <= rate < math.inf,
                "initiations a second, 0 or more",
            )
            for each, rate in rates.items()
        },
    )


EXAMPLE = """\
families = 20                  # of products, each with a topic
offers_of = 0.5                # the share of the families that each supplier offers

[locations]
supermarkets = 4
distribution_centres = 2
suppliers = 3
headquarters = 1

[rates]                        # initiations a second of each location; of all headquarters together
1 = 2.0                        # leave an interaction out to turn it off
2 = 0.5
5 = 10.0
"""
"""A file for `--config`."""


def topology_of(name: str, base: int, config: str | None, interactions: Collection[int]) -> Topology:
    """The topology with those interactions on. UserError if it cannot be."""
    if (name == FREEFORM) != (config is not None):
        raise UserError("--config FILE and --topology freeform belong together: give both, or neither")
    whole = freeform(Path(config)) if config is not None else {VERTICAL: vertical, HORIZONTAL: horizontal}[name](base)
    some = whole.only(interactions)
    if not some.interactions:
        raise UserError("no interaction is on: --interactions and [rates] have none in common with a rate above 0")
    return some


def _check_names(where: str, table: Mapping[str, Any], allowed: set[str]) -> None:
    unknown = sorted(set(table) - allowed)
    if unknown:
        raise UserError(f"{where}: {unknown[0]!r} is unknown; it takes {', '.join(sorted(allowed))}")


def _table(path: Path, entries: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    entry = entries.get(name)
    if not isinstance(entry, dict):
        raise UserError(f"--config {path} lacks the table [{name}]; this is a whole file:\n\n{EXAMPLE}")
    return entry


def _whole(path: Path, table: Mapping[str, Any], name: str, least: int, most: int, default: int = 0) -> int:
    found: int = _checked(
        path,
        name,
        table.get(name, default),
        lambda value: isinstance(value, int) and least <= value <= most,
        f"a whole number, {least} to {most:,}",
    )
    return found


def _checked(path: Path, what: str, value: Any, fits: Callable[[Any], bool], takes: str) -> Any:
    if not isinstance(value, int | float) or isinstance(value, bool) or not fits(value):
        raise UserError(f"--config {path}: {what} is {value!r}; it takes {takes}")
    return value
