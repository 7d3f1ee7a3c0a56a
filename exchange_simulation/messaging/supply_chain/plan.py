"""The planned traffic: messages and kilobytes a second by message, interaction, group and kind of location.

Everything follows from the topology by the paper's equations of section 3.1: an interaction that begins n times a
second sends each of its messages n times a second. Each supplier of the family makes an offer. Every subscriber of a
topic gets a copy of a message.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.supply_chain.messages import INTERACTIONS, AgentKind, Group, Message, To, mean_kb
from exchange_simulation.messaging.supply_chain.topologies import COUNTS, Topology

MOST_PER_LOCATION = 10_000.0
"""The largest number of messages a second, sent and received, of one location's process: our choice."""
MOST_PER_S = 100_000.0
"""The largest number of messages a second, sent and received, of one host: our choice."""


@dataclass(frozen=True)
class Flow:
    """One message's traffic of all locations together."""

    message: Message
    sent: float
    """Messages a second."""
    received: float
    """Messages a second."""
    kb: float
    """Average size of a message."""


@dataclass(frozen=True)
class SupplyChainPlan:
    topology: Topology
    flows: tuple[Flow, ...]

    @classmethod
    def of(cls, topology: Topology) -> SupplyChainPlan:
        """The plan of a topology. UserError if an interaction lacks a location, or if the rates cannot be met."""
        for number in topology.interactions:
            _check_served(topology, number)
        plan = cls(topology, tuple(_flow(topology, message) for message in topology.messages))
        plan._check_rates()
        return plan

    def of_interaction(self, number: int) -> SupplyChainPlan:
        """The part of the plan that belongs to an interaction."""
        return replace(self, flows=tuple(flow for flow in self.flows if flow.message.interaction == number))

    def of_group(self, group: Group) -> SupplyChainPlan:
        """The part of the plan that belongs to a group."""
        return replace(self, flows=tuple(flow for flow in self.flows if flow.message.group is group))

    @property
    def sent(self) -> float:
        """Messages sent a second."""
        return sum(flow.sent for flow in self.flows)

    @property
    def received(self) -> float:
        """Messages received a second."""
        return sum(flow.received for flow in self.flows)

    @property
    def received_kb(self) -> float:
        """Kilobytes received a second."""
        return sum(flow.received * flow.kb for flow in self.flows)

    def sent_by(self, kind: AgentKind) -> float:
        """Messages that each location of a kind sends a second; the headquarters' instances are one location."""
        return sum(flow.sent for flow in self.flows if flow.message.source is kind) / self._location_count(kind)

    def received_by(self, kind: AgentKind) -> float:
        """Messages that each location of a kind receives a second."""
        return sum(flow.received for flow in self.flows if flow.message.target is kind) / self._location_count(kind)

    def _location_count(self, kind: AgentKind) -> int:
        """The number of locations of a kind, at least 1; the headquarters' instances are one location."""
        if kind is AgentKind.HQ:
            return 1
        return max(self.topology.locations[kind], 1)

    def _check_rates(self) -> None:
        """UserError if a location or the host has too many messages a second."""
        for kind in AgentKind:
            each_process = self.sent_by(kind) + self.received_by(kind)
            if kind is AgentKind.HQ:  # its instances, which are one location, are a process each
                each_process /= max(self.topology.locations[kind], 1)
            if each_process > MOST_PER_LOCATION:
                raise UserError(
                    f"these rates cannot be met: each {kind.value} would send and receive {each_process:,.0f} messages "
                    f"a second; one process does {MOST_PER_LOCATION:,.0f}: lower the rates or --base, or add locations"
                )
        total = self.sent + self.received
        if total > MOST_PER_S:
            raise UserError(
                f"these rates cannot be met: {total:,.0f} messages a second would be sent and received; one host does "
                f"{MOST_PER_S:,.0f}: lower the rates or --base"
            )


def _flow(topology: Topology, message: Message) -> Flow:
    """The traffic of a message, by the paper's equations."""
    sent = topology.initiations_per_s(message.interaction)
    received = sent
    if message.to is To.FAMILY:
        received = sent * topology.suppliers_of_a_family
    if message.to is To.EVERYBODY:
        received = sent * topology.locations[AgentKind.SM]
    if message.name == "offer":
        sent *= topology.suppliers_of_a_family
        received = sent
    elif message.interaction == 2 and message.after:  # a family that nobody offers gets no order
        sent *= min(1.0, topology.suppliers_of_a_family)
        received = sent
    return Flow(message, sent, received, mean_kb(message))


def _check_served(topology: Topology, number: int) -> None:
    """UserError if an interaction lacks a kind of location, or if nobody makes offers."""
    interaction = INTERACTIONS[number]
    needed: set[AgentKind] = set()
    for message in interaction.messages:
        needed |= {message.source, message.target}
    for kind in AgentKind:
        if kind in needed and not topology.locations[kind]:
            raise UserError(
                f"interaction {number}, {interaction.about}, needs at least one {kind.value}, and {COUNTS[kind]} is 0: "
                f"add one, or turn the interaction off"
            )
    if number == 2 and topology.suppliers_of_a_family * topology.families < 1:
        raise UserError(
            f"nobody makes offers: {topology.locations[AgentKind.SP]} suppliers with {topology.offers_of:g} of "
            f"{topology.families} families offer none: raise offers_of or families"
        )
