"""How many locations there are, and how often each begins an interaction: vertical, horizontal, or from a file.

The paper's rules (sections 3.2 and 3.3) with BASE = B:

                 supermarkets  centres    suppliers    headquarters  families  a supplier offers   rates
    vertical     10            2          5            1             100       half of them        grow with B
    horizontal   B             ceil(B/5)  ceil(0.4 B)  ceil(B/20)    B         5 of them           fixed

The paper prints no rates. SHARES gives the share of each interaction of 100 delivered messages, which we computed from
the paper's tables 4 and 5. `PER_BASE` messages a second are delivered for each unit of BASE, which is our choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.toml_file import read_toml
from exchange_simulation.messaging.supply_chain.messages import (
    INTERACTIONS,
    MESSAGES,
    PROBABILITIES,
    AgentKind,
    Message,
)

VERTICAL = "vertical"
HORIZONTAL = "horizontal"
FREEFORM = "freeform"
TOPOLOGIES = (VERTICAL, HORIZONTAL, FREEFORM)
PER_BASE = 20.0
SHARES = {
    VERTICAL: {1: 4.50, 2: 1.22, 3: 2.94, 4: 9.09, 5: 33.37, 6: 8.29, 7: 5.90},
    HORIZONTAL: {1: 2.89, 2: 0.74, 3: 10.97, 4: 5.92, 5: 20.92, 6: 20.83, 7: 16.63},
}
"""Shares of 100 delivered messages: initiations of interactions 1, 2, 4, 5; deliveries of the topics of 3, 6 and 7."""
LEAST_HORIZONTAL = 5
"""The least BASE: each supplier offers five families of products, and there are as many families as BASE."""
COUNTS = {
    AgentKind.SM: "supermarkets",
    AgentKind.DC: "distribution_centres",
    AgentKind.SP: "suppliers",
    AgentKind.HQ: "headquarters",
}
"""Names of the entries of a file, by the kind of location that they count."""
MOST_LOCATIONS = 1_000
"""The most locations of one kind in a file."""
MOST_FAMILIES = 10_000
"""The most product families in a file."""
LEAST_KB = 0.1
"""The smallest size of a message in a file, which has room for the head of our frames."""
MOST_KB = 64.0
"""The largest size of a message in a file."""


@dataclass(frozen=True)
class Topology:
    """The numbers of locations and families of products, and the rates of the interactions."""

    name: str
    locations: Mapping[AgentKind, int]
    families: int
    offers_of: float
    """The share of all families that each supplier offers, the paper's rho."""
    rates: Mapping[int, float]
    """Initiations a second of each location, by interaction; of all headquarters together."""
    sizes: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    """The three sizes in kB of messages that have others than the paper's, by the message's name."""
    persistent: Mapping[str, bool] = field(default_factory=dict)
    """Whether a message is persistent, transactional and durable, by the name of messages that differ from the paper's.
    """

    def initiations_per_s(self, interaction: int) -> float:
        """Initiations a second at all locations together; the headquarters' instances are one location."""
        initiator = INTERACTIONS[interaction].initiator
        rate = self.rates.get(interaction, 0.0)
        if initiator is AgentKind.HQ:
            return rate
        return rate * self.locations[initiator]

    def offers_of_first(self, families: int) -> int:
        """The number of suppliers of each of the first `families` families, added up and rounded down."""
        return math.floor(families * self.locations[AgentKind.SP] * self.offers_of + 1e-9)

    @property
    def suppliers_of_a_family(self) -> float:
        """The average number of suppliers that offer a family: the paper's zeta, or less, as offers are whole."""
        return self.offers_of_first(self.families) / self.families

    @property
    def interactions(self) -> list[int]:
        return [number for number in INTERACTIONS if self.rates.get(number, 0.0) > 0]

    @property
    def messages(self) -> list[Message]:
        messages: list[Message] = []
        for number in self.interactions:
            messages += [self.configured(message) for message in INTERACTIONS[number].messages]
        return messages

    def configured(self, message: Message) -> Message:
        """The message with its sizes and its group in this topology."""
        group = message.group.with_assurance(self.persistent.get(message.name, message.group.is_assured))
        return replace(message, group=group, sizes=self.sizes.get(message.name))

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
    locations = {
        AgentKind.SM: base,
        AgentKind.DC: math.ceil(base / 5),
        AgentKind.SP: math.ceil(base / 2.5),
        AgentKind.HQ: math.ceil(base / 20),
    }
    return Topology(HORIZONTAL, locations, base, 5 / base, _rates(HORIZONTAL, 1, 1, 1 / 5))


def _rates(name: str, base: int, supermarkets: float, centres: float) -> dict[int, float]:
    """The rates of each location that lead to SHARES; centres begin interaction 2, and supermarkets the others."""
    rates: dict[int, float] = {}
    for number, share in SHARES[name].items():
        initiations_per_s = share / 100 * PER_BASE * base
        rates[number] = initiations_per_s / (centres if number == 2 else supermarkets)
    return rates


def freeform(path: Path) -> Topology:
    """Read the locations, families and rates of a TOML file. UserError names the wrong entry and what it takes."""
    try:
        entries = read_toml(path)
    except FileNotFoundError as error:
        raise UserError(f"--config {path} cannot be read: {error.strerror}") from error
    _check_names(f"--config {path}", entries, {"locations", "families", "offers_of", "rates", "sizes", "persistent"})
    locations = _table(path, entries, "locations")
    _check_names(f"--config {path}: [locations]", locations, set(COUNTS.values()))
    rates = _table(path, entries, "rates")
    _check_names(f"--config {path}: [rates]", rates, {str(number) for number in INTERACTIONS})
    checked_locations = {kind: _whole(path, locations, name, 0, MOST_LOCATIONS) for kind, name in COUNTS.items()}
    families = _whole(path, entries, "families", 1, MOST_FAMILIES, default=1)
    offers_of = _checked(
        path,
        "offers_of",
        entries.get("offers_of", 1.0),
        lambda share: 0 < share <= 1,
        "a share above 0 and up to 1",
    )
    checked_rates: dict[int, float] = {}
    for number, rate in rates.items():
        checked_rates[int(number)] = _checked(
            path,
            f"the rate of interaction {number}",
            rate,
            lambda rate: 0 <= rate < math.inf,
            "initiations a second, 0 or more",
        )
    sizes = {name: _sizes(path, name, value) for name, value in _messages_table(path, entries, "sizes").items()}
    persistent = {
        name: _switch(path, name, value) for name, value in _messages_table(path, entries, "persistent").items()
    }
    return Topology(FREEFORM, checked_locations, families, offers_of, checked_rates, sizes, persistent)


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

[sizes]                        # kB of 95, 4 and 1 % of a message; the paper's without an entry
order = [1.0, 4.0, 20.0]

[persistent]                   # persistent, transactional and durable, or none of it; the paper's without an entry
order = false
"""
"""A file for `--config`."""


def topology_of(name: str, base: int, config: str | None, interactions: Collection[int]) -> Topology:
    """The topology with only these interactions on. UserError for options that do not fit together."""
    if (name == FREEFORM) != (config is not None):
        raise UserError("--config FILE and --topology freeform belong together: give both, or neither")
    if config is not None:
        topology = freeform(Path(config))
    elif name == VERTICAL:
        topology = vertical(base)
    else:
        topology = horizontal(base)
    topology = topology.only(interactions)
    if not topology.interactions:
        raise UserError("no interaction is on: --interactions and [rates] have none in common with a rate above 0")
    return topology


def _check_names(place: str, table: Mapping[str, Any], allowed: set[str]) -> None:
    """UserError if the table, at a place of the file, has an unknown entry."""
    unknown = sorted(set(table) - allowed)
    if unknown:
        raise UserError(f"{place}: {unknown[0]!r} is unknown; it takes {', '.join(sorted(allowed))}")


def _table(path: Path, entries: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A table of the file. UserError if the file lacks it."""
    entry = entries.get(name)
    if not isinstance(entry, dict):
        raise UserError(f"--config {path} lacks the table [{name}]; this is a whole file:\n\n{EXAMPLE}")
    return entry


def _messages_table(path: Path, entries: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A table of the file with an entry for some messages; empty if the file lacks it. UserError."""
    if name not in entries:
        return {}
    table = _table(path, entries, name)
    _check_names(f"--config {path}: [{name}]", table, {message.name for message in MESSAGES})
    return table


def _sizes(path: Path, name: str, value: Any) -> tuple[float, float, float]:
    """A message's three sizes in kB. UserError."""
    if not isinstance(value, list) or len(value) != len(PROBABILITIES):
        raise UserError(f"--config {path}: the sizes of {name} are {value!r}; give three in kB, as [1.0, 4.0, 20.0]")
    small, medium, large = (
        float(_checked(path, f"a size of {name}", size, _is_size, f"{LEAST_KB:g} to {MOST_KB:g} kB")) for size in value
    )
    return small, medium, large


def _is_size(kb: float) -> bool:
    return LEAST_KB <= kb <= MOST_KB


def _switch(path: Path, name: str, value: Any) -> bool:
    """Whether a message is persistent. UserError."""
    if not isinstance(value, bool):
        raise UserError(f"--config {path}: [persistent] {name} is {value!r}; it takes true or false")
    return value


def _whole(path: Path, table: Mapping[str, Any], name: str, least: int, most: int, default: int = 0) -> int:
    """A whole number from `least` to `most`. UserError."""
    number: int = _checked(
        path,
        name,
        table.get(name, default),
        lambda value: isinstance(value, int) and least <= value <= most,
        f"a whole number, {least} to {most:,}",
    )
    return number


def _checked(path: Path, entry: str, value: Any, fits: Callable[[Any], bool], takes: str) -> Any:
    """The value of an entry. UserError unless it is a number that fits."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not fits(value):
        raise UserError(f"--config {path}: {entry} is {value!r}; it takes {takes}")
    return value
