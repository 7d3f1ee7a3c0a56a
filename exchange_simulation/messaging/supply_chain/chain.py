"""The locations of a topology: who serves whom, who offers which family, and when each begins its interactions.

All of this is fixed before the start, so the number of messages of a run is known exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from exchange_simulation.messaging.supply_chain.messages import INTERACTIONS, MESSAGES, AgentKind, Message, To
from exchange_simulation.messaging.supply_chain.topologies import Topology
from transports.frames import Longs

NUMBER_OF = {message.name: number for number, message in enumerate(MESSAGES)}
GOLDEN = (math.sqrt(5) - 1) / 2
"""The golden ratio, less 1: its multiples modulo 1 are spread evenly, also the first few."""


class Location(NamedTuple):
    kind: AgentKind
    number: int
    """From 0, among the locations of its kind."""


@dataclass(frozen=True)
class ChainTimes:
    """The parts of a run: nothing is counted in the warm-up, and no interaction begins in the drain."""

    warm_up_s: float
    measured_s: float
    drain_s: float

    @property
    def driven_s(self) -> float:
        """Seconds in which interactions begin."""
        return self.warm_up_s + self.measured_s


@dataclass(frozen=True)
class Chain:
    topology: Topology

    @property
    def locations(self) -> list[Location]:
        """The locations that take part in an interaction which is on."""
        kinds: set[AgentKind] = set()
        for message in self.topology.messages:
            kinds |= {message.source, message.target}
        locations: list[Location] = []
        for kind in AgentKind:
            if kind in kinds:
                locations += [Location(kind, number) for number in range(self.count_of(kind))]
        return locations

    def count_of(self, kind: AgentKind) -> int:
        return self.topology.locations[kind]

    def centre_of(self, supermarket: int) -> int:
        """The distribution centre that serves a supermarket."""
        return supermarket % self.count_of(AgentKind.DC)

    @cached_property
    def suppliers_of(self) -> list[list[int]]:
        """The suppliers of each family of products: each supplier has as many families, in changing combinations."""
        suppliers = self.count_of(AgentKind.SP)
        load = [0] * suppliers
        chosen_by_family: list[list[int]] = []
        for family in range(self.topology.families):
            wanted = self.topology.offers_of_first(family + 1) - self.topology.offers_of_first(family)
            by_load = sorted(range(suppliers), key=lambda supplier: (load[supplier], (supplier - family) % suppliers))
            chosen = by_load[:wanted]
            for supplier in chosen:
                load[supplier] += 1
            chosen_by_family.append(sorted(chosen))
        return chosen_by_family

    def family(self, centre: int, call: int) -> int:
        """The family of a centre's call for offers: all families in turn, by a long stride."""
        families = self.topology.families
        first_family = centre * families // self.count_of(AgentKind.DC)
        return (first_family + call * self._stride) % families

    @cached_property
    def _stride(self) -> int:
        """A step that reaches every family before the first one again: it has no factor in common with their number."""
        families = self.topology.families
        step = max(1, round(families * GOLDEN))
        while math.gcd(step, families) != 1:
            step += 1
        return step

    def winner(self, centre: int, call: int) -> int:
        """The supplier that gets the order: the suppliers of a family win in turn; 0 if nobody offers the family."""
        rivals = self.suppliers_of[self.family(centre, call)]
        if not rivals:
            return 0
        round_of_calls = call // self.topology.families
        return rivals[(round_of_calls + centre) % len(rivals)]

    def dues_ns(self, location: Location, interaction: int, times: ChainTimes) -> Longs:
        """The times at which a location begins an interaction, in ns from the start.

        They are evenly spaced, and never the times of another location. The measured time begins in the middle between
        two initiations, so its number of initiations is as planned, or the nearest.
        """
        initiators = self.count_of(location.kind)
        rate = self.topology.initiations_per_s(interaction) / initiators
        first = ((location.number + 0.5) / initiators + times.warm_up_s * rate) % 1
        count = math.ceil(max(times.driven_s * rate - first, 0) - 1e-9)
        return np.round((first + np.arange(count)) / rate * 1e9).astype(np.int64)

    def destinations(self, message: Message) -> range:
        """Numbers of a message's destinations: queues of locations, topics of families, or one topic."""
        if message.to is To.EVERYBODY:
            return range(1)
        if message.to is To.FAMILY:
            return range(self.topology.families)
        return range(self.count_of(message.target))

    def copies(self, message: Message, destination: int) -> int:
        """The number of deliveries of one message."""
        if message.to is To.EVERYBODY:
            return self.count_of(AgentKind.SM)
        if message.to is To.FAMILY:
            return len(self.suppliers_of[destination])
        return 1

    def deliveries(self, times: ChainTimes) -> int:
        """The number of all deliveries from start to end."""
        deliveries = 0
        for number in self.topology.interactions:
            initiator = INTERACTIONS[number].initiator
            for place in range(self.count_of(initiator)):
                deliveries += self._deliveries(Location(initiator, place), number, times)
        return deliveries

    def _deliveries(self, location: Location, number: int, times: ChainTimes) -> int:
        """The number of deliveries of the interactions that one location begins."""
        begun = len(self.dues_ns(location, number, times))
        messages = INTERACTIONS[number].messages
        if number != 2:
            return begun * sum(self.copies(message, 0) for message in messages)
        deliveries = 0
        for call in range(begun):
            offers = len(self.suppliers_of[self.family(location.number, call)])
            if offers:  # each supplier has a call and an offer; the other messages follow the winning offer once
                deliveries += 2 * offers + len(messages) - 2
        return deliveries


def size_number(location: Location, nth: int) -> int:
    """The size (0, 1 or 2) of a location's nth interaction: in the paper's proportions, not at random."""
    share = (nth * GOLDEN + location.number * 0.37) % 1
    if share < 0.95:
        return 0
    return 1 if share < 0.99 else 2
