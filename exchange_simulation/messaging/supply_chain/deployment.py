"""Which agent plays which locations, and the ends of its links: queues and topics at a broker, or sockets without one.

A broker   two connections for each agent, however many destinations it has: `express` for groups a and c (nothing is
           acknowledged or confirmed, nothing survives), `assured` for groups b and d (persistent messages, durable
           queues and subscriptions, confirms). A location acknowledges a message once the broker has confirmed all
           that it sent because of it: consuming and publishing commit there.
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
from exchange_simulation.launching.interrupts import beside
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.roles import LinkEnd, Links, Role, Sharing
from exchange_simulation.messaging.supply_chain.agent import ROUTES, ChainAgent
from exchange_simulation.messaging.supply_chain.chain import NUMBER_OF, Chain, ChainTimes, Location
from exchange_simulation.messaging.supply_chain.messages import MESSAGES, AgentKind, Message, To
from transports.base import CONSUMED_PREFIX, SUBSCRIBER_MARK, Pattern, TransportError
from transports.declaration import BreakableServer, BrokerServer

BROKERLESS = (5, 6, 7)
"""The interactions of which every message has a brokerless counterpart."""
MOST_AGENTS = 40
LARGEST_MESSAGE = 1 << 16
LOOK_EVERY_S = 0.02
WORDS = {AgentKind.SM: "supermarket", AgentKind.DC: "centre", AgentKind.SP: "supplier", AgentKind.HQ: "headquarters"}


def agents_of(chain: Chain, most: int) -> list[tuple[Location, ...]]:
    """An agent for each location while they are few; else those of a kind share, in proportion to their number."""
    locations = chain.locations
    agents: list[tuple[Location, ...]] = []
    for kind in AgentKind:
        of_kind = [location for location in locations if location.kind is kind]
        number = len(of_kind)
        if len(locations) > most:
            number = min(len(of_kind), max(1, len(of_kind) * most // len(locations)))
        agents += [tuple(of_kind[first::number]) for first in range(number)]
    return agents


def roles_of(chain: Chain, times: ChainTimes, links: Links, most_agents: int, reconnects: bool) -> list[Role]:
    """A role for each agent; the last one opens. `reconnects`: the broker may go and come back."""
    if links.has_broker:
        agents = agents_of(chain, most_agents)
        wired = [_at_a_broker(chain, locations, links) for locations in agents]
    else:
        agents = agents_of(chain, len(chain.locations))
        wired = _without_a_broker(chain, agents, links)
    start = mmap.mmap(-1, 8)
    shares = Sharing("the supply chain", chain.deliveries(times))
    subscribers = chain.count_of(AgentKind.SM)
    return [
        Role(
            _name(locations),
            ChainAgent(
                chain,
                locations,
                times,
                wires.routes,
                wires.receives,
                start,
                locations is agents[-1],
                wires.publishes,
                subscribers,
                wires.ends if reconnects else (),
            ),
            wires.ends,
            locations is agents[-1],
            shares,
        )
        for locations, wires in zip(agents, wired, strict=True)
    ]


def descriptors_of_broker(chain: Chain, most_agents: int) -> int:
    """A file for each durable queue, as RabbitMQ has it, and two connections for each agent."""
    durable = [message for message in chain.topology.messages if message.group.is_assured]
    queues = sum(chain.copies(message, to) for message in durable for to in chain.destinations(message))
    return queues + 2 * len(agents_of(chain, most_agents))


def _name(locations: Sequence[Location]) -> str:
    """The name of the role that plays these locations.

    For example: supermarket 3; supermarket 3+13+23
    """
    return f"{WORDS[locations[0].kind]} {'+'.join(str(each.number + 1) for each in locations)}"


@dataclass(frozen=True)
class _Wires:
    """An agent's links."""

    ends: tuple[LinkEnd, ...]
    routes: ROUTES
    receives: tuple[int, ...]
    publishes: tuple[int, ...] = ()


def _destination(message: Message, number: int) -> str:
    """The name of a message's queue or topic.

    For example: order.DC.1; callForOffers.17; priceUpdate.1
    """
    to = "" if message.group.is_published else f"{message.target.name}."
    return f"{message.name}.{to}{number + 1}"


def _at_a_broker(chain: Chain, locations: Sequence[Location], links: Links) -> _Wires:
    """A link for each delivery that the agent's messages need."""
    ends: list[LinkEnd] = []
    routes: dict[tuple[int, int], tuple[int, int]] = {}
    receives: list[int] = []
    for name, is_assured, delivery in (("assured", True, "durable"), ("express", False, "lossy")):
        messages = [each for each in chain.topology.messages if each.group.is_assured is is_assured]
        consumed = _consumed(chain, locations, messages)
        sent = _sent_to(chain, locations, messages)
        if not consumed and not sent:
            continue
        keys = (
            *(CONSUMED_PREFIX + each for each in consumed),
            *(_destination(MESSAGES[m], number) for m, number in sent),
        )
        (end,), _ = links.many(LARGEST_MESSAGE, Pattern.ROUTED, [keys], name=name, options={"delivery": delivery})
        routes |= {to: (len(ends), number) for number, to in enumerate(sent)}
        if consumed:
            receives.append(len(ends))
        ends.append(end)
    return _Wires(tuple(ends), routes, tuple(receives))


def _consumed(chain: Chain, locations: Sequence[Location], messages: Sequence[Message]) -> list[str]:
    """Queues of these locations, and their subscriptions."""
    names: list[str] = []
    for location in locations:
        for message in messages:
            if message.target is location.kind:
                names += _consumed_by(chain, location, message)
    return names


def _consumed_by(chain: Chain, location: Location, message: Message) -> list[str]:
    if not message.group.is_published:
        return [_destination(message, location.number)]
    subscriber = f"{SUBSCRIBER_MARK}{location.kind.name}.{location.number + 1}"
    families = [
        topic
        for topic in chain.destinations(message)
        if message.to is not To.FAMILY or location.number in chain.suppliers_of[topic]
    ]
    return [_destination(message, topic) + subscriber for topic in families]


def _sent_to(chain: Chain, locations: Sequence[Location], messages: Sequence[Message]) -> list[tuple[int, int]]:
    """(message, destination) of all that these locations, which are of one kind, may send."""
    return [
        (NUMBER_OF[message.name], number)
        for message in messages
        if message.source is locations[0].kind
        for number in chain.destinations(message)
    ]


def _without_a_broker(chain: Chain, agents: Sequence[tuple[Location, ...]], links: Links) -> list[_Wires]:
    headquarters = chain.count_of(AgentKind.HQ)
    pulls, push = links.many(LARGEST_MESSAGE, Pattern.QUEUE, [()] * headquarters, name="statistics")
    pubs, sub = links.many(LARGEST_MESSAGE, Pattern.FANOUT, [()] * headquarters, name="announcements")
    statistics, *announced = (NUMBER_OF[name] for name in ("statInfoSM", "productAnnouncement", "creditCardHL"))
    wired = []
    for (location,) in agents:
        if location.kind is AgentKind.HQ:
            routes = {(message, 0): (1, 0) for message in announced}
            wired.append(_Wires((pulls[location.number], pubs[location.number]), routes, (0,), publishes=(1,)))
        else:
            routes = {(statistics, number): (1, 0) for number in range(headquarters)}
            wired.append(_Wires((sub, push), routes, (0,)))
    return wired


@contextlib.contextmanager
def restarting(cell: Cell, roles: Sequence[Role], server: BrokerServer | None) -> Iterator[None]:
    """Restart the broker in the middle, if that was asked for. UserError if it is not ours."""
    after_s = cell.settings.get("restart_after_s")
    if after_s is None:
        yield
        return
    if not isinstance(server, BreakableServer):
        raise UserError("--restart-after needs a broker of its own: give --transport amqp, after exchange broker stop")
    start: mmap.mmap = roles[0].task.start  # type: ignore[attr-defined]
    failed: list[Exception] = []

    def restart(over: threading.Event) -> None:
        while not over.wait(LOOK_EVERY_S):
            began_ns = int.from_bytes(start[:8], "little")
            if began_ns and time.monotonic_ns() > began_ns + (cell.settings["warm_up_s"] + after_s) * 1e9:
                break
        try:
            if not over.is_set():
                server.restart()
        except (TransportError, OSError) as error:
            failed.append(error)

    with beside(restart):
        yield
    if failed:
        raise UserError(f"the broker could not be restarted: {failed[0]}")
