"""Which agent plays which locations, and the ends of its links: queues and topics at a broker, or sockets without one.

A broker   two connections for each agent, however many destinations it has: `express` for groups a and c (nothing is
           acknowledged or confirmed, nothing survives), `assured` for groups b and d (persistent messages, durable
           queues and subscriptions, confirms). A location acknowledges a message once the broker has confirmed all
           messages that the location sent because of it, so consuming and publishing commit together.
No broker  groups a and c only: a PUB at each headquarters with a SUB at each supermarket, and a PUSH at each
           supermarket that deals to the PULLs of the headquarters. Nothing is persistent.
"""

from __future__ import annotations

import contextlib
import mmap
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.interrupts import in_background
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.roles import LinkEnd, Links, Role, Sharing
from exchange_simulation.messaging.supply_chain.agent import ChainAgent, Routes
from exchange_simulation.messaging.supply_chain.chain import NUMBER_OF, Chain, ChainTimes, Location
from exchange_simulation.messaging.supply_chain.messages import MESSAGES, AgentKind, Message, To
from transports.base import CONSUMED_PREFIX, SUBSCRIBER_MARK, Pattern, TransportError
from transports.declaration import BreakableServer, BrokerServer

BROKERLESS = (5, 6, 7)
"""The interactions whose messages all have a brokerless counterpart."""
MOST_AGENTS = 40
"""The default of `--agents`."""
LARGEST_MESSAGE = 1 << 16
"""Bytes."""
LOOK_EVERY_S = 0.02
"""Interval at which the launcher looks whether it is time to restart the broker."""
KIND_IN_WORDS = {
    AgentKind.SM: "supermarket",
    AgentKind.DC: "centre",
    AgentKind.SP: "supplier",
    AgentKind.HQ: "headquarters",
}


def agents_of(chain: Chain, most: int) -> list[tuple[Location, ...]]:
    """Return the locations of each agent: one each, or several of one kind if there are more locations than `most`.

    Each kind of location has one agent. Each further agent, up to `most`, goes to the kind whose agents have the most
    locations.
    """
    by_kind: dict[AgentKind, list[Location]] = {}
    for location in chain.locations:
        by_kind.setdefault(location.kind, []).append(location)
    agents_by_kind = dict.fromkeys(by_kind, 1)
    for _ in range(min(most, len(chain.locations)) - len(by_kind)):
        fullest = max(by_kind, key=lambda kind: len(by_kind[kind]) / agents_by_kind[kind])
        agents_by_kind[fullest] += 1
    agents: list[tuple[Location, ...]] = []
    for kind, locations in by_kind.items():
        number = agents_by_kind[kind]
        for first in range(number):
            agents.append(tuple(locations[first::number]))
    return agents


def roles_of(chain: Chain, times: ChainTimes, links: Links, most_agents: int, reconnects: bool) -> list[Role]:
    """A role for each agent; the last agent chooses the start of the clock.

    `reconnects`: agents open their links again after a restart of the broker.
    """
    if links.has_broker:
        agents = agents_of(chain, most_agents)
        links_of_agents = [_links_at_broker(chain, locations, links) for locations in agents]
    else:
        agents = agents_of(chain, len(chain.locations))
        links_of_agents = _links_without_broker(chain, agents, links)
    start_memory = mmap.mmap(-1, 8)
    shares = Sharing("the supply chain", chain.deliveries(times))
    subscribers = chain.count_of(AgentKind.SM)
    roles: list[Role] = []
    for locations, agent_links in zip(agents, links_of_agents, strict=True):
        is_last = locations is agents[-1]
        agent = ChainAgent(
            chain=chain,
            locations=locations,
            times=times,
            routes=agent_links.routes,
            receiving_indexes=agent_links.receiving_indexes,
            start_memory=start_memory,
            chooses_start=is_last,
            publishing_indexes=agent_links.publishing_indexes,
            subscribers=subscribers,
            reopened_ends=agent_links.ends if reconnects else (),
        )
        roles.append(Role(_name(locations), agent, agent_links.ends, begins=is_last, shares=shares))
    return roles


def descriptors_of_broker(chain: Chain, most_agents: int) -> int:
    """The broker's descriptors: RabbitMQ has a file for each durable queue, and each agent has two connections."""
    queues = 0
    for message in chain.topology.messages:
        if message.group.is_assured:
            queues += sum(chain.copies(message, destination) for destination in chain.destinations(message))
    return queues + 2 * len(agents_of(chain, most_agents))


def _name(locations: Sequence[Location]) -> str:
    """The name of the role that plays these locations.

    For example: supermarket 3; supermarket 3+13+23
    """
    return f"{KIND_IN_WORDS[locations[0].kind]} {'+'.join(str(location.number + 1) for location in locations)}"


@dataclass(frozen=True)
class _AgentLinks:
    """An agent's links; the fields after `ends` are those of ChainAgent."""

    ends: tuple[LinkEnd, ...]
    routes: Routes
    receiving_indexes: tuple[int, ...]
    publishing_indexes: tuple[int, ...] = ()


def _destination(message: Message, number: int) -> str:
    """The name of a message's queue or topic.

    For example: order.DC.1; callForOffers.17; priceUpdate.1
    """
    if message.group.is_published:
        return f"{message.name}.{number + 1}"
    return f"{message.name}.{message.target.name}.{number + 1}"


def _links_at_broker(chain: Chain, locations: Sequence[Location], links: Links) -> _AgentLinks:
    """The agent's links: one for each delivery that its messages need."""
    ends: list[LinkEnd] = []
    routes: dict[tuple[int, int], tuple[int, int]] = {}
    receiving_indexes: list[int] = []
    for name, is_assured, delivery in (("assured", True, "durable"), ("express", False, "lossy")):
        messages = [message for message in chain.topology.messages if message.group.is_assured is is_assured]
        consumed = _consumed_queues(chain, locations, messages)
        sent = _sent_to(chain, locations, messages)
        if not consumed and not sent:
            continue
        consumed_keys = [CONSUMED_PREFIX + queue for queue in consumed]
        sent_keys = [_destination(MESSAGES[message], number) for message, number in sent]
        keys = (*consumed_keys, *sent_keys)
        (end,), _ = links.many(LARGEST_MESSAGE, Pattern.ROUTED, [keys], name=name, options={"delivery": delivery})
        for number, destination in enumerate(sent):
            routes[destination] = (len(ends), number)
        if consumed:
            receiving_indexes.append(len(ends))
        ends.append(end)
    return _AgentLinks(tuple(ends), routes, tuple(receiving_indexes))


def _consumed_queues(chain: Chain, locations: Sequence[Location], messages: Sequence[Message]) -> list[str]:
    """Names of the queues and subscriptions of these locations, for these messages."""
    names: list[str] = []
    for location in locations:
        for message in messages:
            if message.target is location.kind:
                names += _consumed_by(chain, location, message)
    return names


def _consumed_by(chain: Chain, location: Location, message: Message) -> list[str]:
    """Names of a location's queue for a message, or of its subscriptions."""
    if not message.group.is_published:
        return [_destination(message, location.number)]
    subscriber = f"{SUBSCRIBER_MARK}{location.kind.name}.{location.number + 1}"
    names: list[str] = []
    for topic in chain.destinations(message):
        if message.to is not To.FAMILY or location.number in chain.suppliers_of[topic]:
            names.append(_destination(message, topic) + subscriber)
    return names


def _sent_to(chain: Chain, locations: Sequence[Location], messages: Sequence[Message]) -> list[tuple[int, int]]:
    """The messages that these locations, which are of one kind, may send: (message, destination)."""
    sent: list[tuple[int, int]] = []
    for message in messages:
        if message.source is locations[0].kind:
            sent += [(NUMBER_OF[message.name], number) for number in chain.destinations(message)]
    return sent


def _links_without_broker(chain: Chain, agents: Sequence[tuple[Location, ...]], links: Links) -> list[_AgentLinks]:
    """The links of each agent, in the order of the agents; an agent has one location."""
    headquarters = chain.count_of(AgentKind.HQ)
    pulls, push = links.many(LARGEST_MESSAGE, Pattern.QUEUE, [()] * headquarters, name="statistics")
    pubs, sub = links.many(LARGEST_MESSAGE, Pattern.FANOUT, [()] * headquarters, name="announcements")
    statistics = NUMBER_OF["statInfoSM"]
    announcements = (NUMBER_OF["productAnnouncement"], NUMBER_OF["creditCardHL"])
    links_of_agents = []
    for (location,) in agents:
        if location.kind is AgentKind.HQ:
            routes = {(message, 0): (1, 0) for message in announcements}
            links_of_agents.append(
                _AgentLinks((pulls[location.number], pubs[location.number]), routes, (0,), publishing_indexes=(1,))
            )
        else:
            routes = {(statistics, number): (1, 0) for number in range(headquarters)}
            links_of_agents.append(_AgentLinks((sub, push), routes, (0,)))
    return links_of_agents


@contextlib.contextmanager
def restarting(cell: Cell, roles: Sequence[Role], server: BrokerServer | None) -> Iterator[None]:
    """Restart the broker during the context if the user gave `--restart-after`. UserError if the broker is not ours."""
    after_s = cell.settings.get("restart_after_s")
    if after_s is None:
        yield
        return
    if not isinstance(server, BreakableServer):
        raise UserError("--restart-after needs a broker of its own: give --transport amqp, after exchange broker stop")
    agent = roles[0].task
    assert isinstance(agent, ChainAgent)
    errors: list[Exception] = []

    def restart(over: threading.Event) -> None:
        while not over.wait(LOOK_EVERY_S):
            start_ns = int.from_bytes(agent.start_memory[:8], "little")
            restart_ns = start_ns + (cell.settings["warm_up_s"] + after_s) * 1e9
            if start_ns and time.monotonic_ns() > restart_ns:
                break
        try:
            if not over.is_set():
                server.restart()
        except (TransportError, OSError) as error:
            errors.append(error)

    with in_background(restart):
        yield
    if errors:
        raise UserError(f"the broker could not be restarted: {errors[0]}")
