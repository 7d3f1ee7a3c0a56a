"""The planned traffic: messages and kilobytes a second by message, interaction, group and kind of location.

Everything follows from the topology by the paper's equations of section 3.1: an interaction that begins n times a
second sends each of its messages n times a second. Each supplier of the family makes an offer; every subscriber gets
a copy of a message to a topic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.supply_chain.messages import INTERACTIONS, AgentKind, Group, Message, To, mean_kb
from exchange_simulation.messaging.supply_chain.topologies import COUNTS, Topology

MOST_PER_LOCATION, MOST_PER_S = 10_000.0, 100_000.0
"""Messages a second, sent and received, that one location's process and one broker may be asked for. Ours."""


@dataclass(frozen=True)
class Flow:
    """One message's traffic, a second, of all locations together."""

    message: Message
    sent: float
    received: float
    kb: float
    """Average size."""


@dataclass(frozen=True)
class SupplyChainPlan:
    topology: Topology
    flows: tuple[Flow, ...]

    @classmethod
    def of(cls, topology: Topology) -> SupplyChainPlan:
        """UserError if an interaction has nobody to begin it or to serve it, or if the rates cannot be met."""
        for number in topology.interactions:
            _check_served(topology, number)
        plan = cls(topology, tuple(_flow(topology, message) for message in topology.messages))
        plan._check_rates()
        return plan

    def of_interaction(self, number: int) -> SupplyChainPlan:
        """The part of the plan that is an interaction's."""
        return replace(self, flows=tuple(flow for flow in self.flows if flow.message.interaction == number))

    def of_group(self, group: Group) -> SupplyChainPlan:
        """The part of the plan that is a group's."""
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
        return sum(flow.sent for flow in self.flows if flow.message.source is kind) / self._many(kind)

    def received_by(self, kind: AgentKind) -> float:
        """Messages that each location of a kind receives a second."""
        return sum(flow.received for flow in self.flows if flow.message.target is kind) / self._many(kind)

    def _many(self, kind: AgentKind) -> int:
        return 1 if kind is AgentKind.HQ else max(self.topology.locations[kind], 1)

    def _check_rates(self) -> None:
        for kind in AgentKind:
            most = self.sent_by(kind) + self.received_by(kind)
            each = most / max(self.topology.locations[kind], 1) if kind is AgentKind.HQ else most
            if each > MOST_PER_LOCATION:
                raise UserError(
                    f"these rates cannot be met: each {kind.value} would send and receive {each:,.0f} messages a "
                    f"second; one process does {MOST_PER_LOCATION:,.0f}: lower the rates or --base, or add locations"
                )
        total = self.sent + self.received
        if total > MOST_PER_S:
            raise UserError(
                f"these rates cannot be met: {total:,.0f} messages a second would be sent and received; one host does "
                f"{MOST_PER_S:,.0f}: lower the rates or --base"
            )


def _flow(topology: Topology, message: Message) -> Flow:
    sent = topology.initiations_per_s(message.interaction)
    received = sent
    if message.to is To.FAMILY:
        received = sent * topology.suppliers_of_a_family
    if message.to is To.EVERYBODY:
        received = sent * topology.locations[AgentKind.SM]
    if message.name == "offer":
        sent = received = sent * topology.suppliers_of_a_family
    elif message.interaction == 2 and message.after:  # families that nobody offers get no order
        sent = received = sent * min(1.0, topology.suppliers_of_a_family)
    return Flow(message, sent, received, mean_kb(message))


def _check_served(topology: Topology, number: int) -> None:
    interaction = INTERACTIONS[number]
    needed = {kind for message in interaction.messages for kind in (message.source, message.target)}
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
