"""The locations of a topology: who serves whom, who offers which family, and when each begins its interactions.

All of this is fixed before the start, so the number of messages of a whole run is known exactly.
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
"""Its multiples, modulo 1, spread evenly from the first few on."""


class Location(NamedTuple):
    kind: AgentKind
    number: int
    """From 0, among the locations of its kind."""


@dataclass(frozen=True)
class ChainTimes:
    """Seconds of a run: nothing is counted in the warm-up; no interaction begins in the drain."""

    warm_up_s: float
    measured_s: float
    drain_s: float

    @property
    def driven_s(self) -> float:
        return self.warm_up_s + self.measured_s


@dataclass(frozen=True)
class Chain:
    topology: Topology

    @property
    def locations(self) -> list[Location]:
        """The locations that take part in an interaction which is on."""
        kinds = {kind for each in self.topology.messages for kind in (each.source, each.target)}
        return [Location(kind, number) for kind in AgentKind if kind in kinds for number in range(self.count_of(kind))]

    def count_of(self, kind: AgentKind) -> int:
        return self.topology.locations[kind]

    def centre_of(self, supermarket: int) -> int:
        """The distribution centre that serves a supermarket."""
        return supermarket % self.count_of(AgentKind.DC)

    @cached_property
    def suppliers_of(self) -> list[list[int]]:
        """The suppliers of each family of products: as many families for each supplier, in changing company."""
        of_a_family = self.topology.suppliers_of_a_family
        suppliers = self.count_of(AgentKind.SP)
        load = [0] * suppliers
        chosen_by_family: list[list[int]] = []
        for family in range(self.topology.families):
            wanted = math.floor((family + 1) * of_a_family + 1e-9) - math.floor(family * of_a_family + 1e-9)
            by_load = sorted(range(suppliers), key=lambda supplier: (load[supplier], (supplier - family) % suppliers))
            chosen = by_load[:wanted]
            for supplier in chosen:
                load[supplier] += 1
            chosen_by_family.append(sorted(chosen))
        return chosen_by_family

    def family(self, centre: int, call: int) -> int:
        """The family of a centre's call for offers: all in turn, neighbours far apart."""
        return (
            centre * self.topology.families // self.count_of(AgentKind.DC) + call * self._stride
        ) % self.topology.families

    @cached_property
    def _stride(self) -> int:
        families = self.topology.families
        return next(
            step for step in range(max(1, round(families * GOLDEN)), 2 * families + 1) if math.gcd(step, families) == 1
        )

    def winner(self, centre: int, call: int) -> int:
        """The supplier whose turn it is to get the order: the offers of a family win one after the other."""
        rivals = self.suppliers_of[self.family(centre, call)]
        return rivals[(call // self.topology.families + centre) % len(rivals)] if rivals else 0

    def dues_ns(self, location: Location, interaction: int, times: ChainTimes) -> Longs:
        """When a location begins an interaction, in ns from the start: evenly, and never with its neighbours.

        The measured time begins in the middle between two initiations, so it has as many as planned, or the nearest.
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
        return range(self.topology.families if message.to is To.FAMILY else self.count_of(message.target))

    def copies(self, message: Message, destination: int) -> int:
        """Deliveries of one message."""
        if message.to is To.EVERYBODY:
            return self.count_of(AgentKind.SM)
        return len(self.suppliers_of[destination]) if message.to is To.FAMILY else 1

    def deliveries(self, times: ChainTimes) -> int:
        """All messages that are received from start to end."""
        return sum(
            self._deliveries(Location(INTERACTIONS[number].initiator, place), number, times)
            for number in self.topology.interactions
            for place in range(self.count_of(INTERACTIONS[number].initiator))
        )

    def _deliveries(self, location: Location, number: int, times: ChainTimes) -> int:
        begun = len(self.dues_ns(location, number, times))
        messages = INTERACTIONS[number].messages
        if number != 2:
            return begun * sum(self.copies(message, 0) for message in messages)
        deliveries = 0
        for call in range(begun):
            offers = len(self.suppliers_of[self.family(location.number, call)])
            if offers:  # a call and an offer for each supplier; the other messages follow the offer that wins
                deliveries += 2 * offers + len(messages) - 2
        return deliveries


def size_number(location: Location, nth: int) -> int:
    """Which of an interaction's three sizes its nth time has: in the paper's proportions, not at random."""
    share = (nth * GOLDEN + location.number * 0.37) % 1
    if share < 0.95:
        return 0
    return 1 if share < 0.99 else 2
