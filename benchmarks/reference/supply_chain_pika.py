"""The supply chain, written as pika's documentation shows: the reference of benchmarks/supply_chain.py.

Each location is a process with one BlockingConnection. A callback handles each message, publishes the messages that
follow, and acknowledges the message; persistent messages are confirmed. Plan, message heads, ledger and judge are those
of our benchmark, so both programs do the same work and pass or fail by the same rule.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from typing import Any

import pika

from exchange_simulation.messaging.roles import RoleResult
from exchange_simulation.messaging.supply_chain.chain import NUMBER_OF, Chain, ChainTimes, Location, size_number
from exchange_simulation.messaging.supply_chain.judging import wrong_with
from exchange_simulation.messaging.supply_chain.ledger import HEAD, Head, Ledger, bodies_of
from exchange_simulation.messaging.supply_chain.messages import INTERACTIONS, MESSAGES, AgentKind, Message, To
from exchange_simulation.messaging.supply_chain.topologies import vertical

BOUND_S = 0.5
"""The seconds within which 90 % of the deliveries of each message must come."""
PREFETCH = 100
BODIES = [bodies_of(message) for message in MESSAGES]
"""The three bodies of each message, by its number."""
TIMES = ChainTimes(warm_up_s=3.0, measured_s=5.0, drain_s=10.0)
BEGIN_IN_S = 0.3
"""Seconds from the moment at which the last process is ready to the start of the chain."""
QUIET_NS = 2_000_000_000
"""A location ends after so long without a message."""


class PikaAgent:
    """One location of the chain, with its connection."""

    def __init__(self, chain: Chain, me: Location, url: str) -> None:
        self.chain = chain
        self.me = me
        self.turn = me.number
        self.connection = pika.BlockingConnection(pika.URLParameters(url))
        self.express = self.connection.channel()
        self.assured = self.connection.channel()
        self.assured.confirm_delivery()
        for channel in (self.express, self.assured):
            channel.basic_qos(prefetch_count=PREFETCH)
        for message in MESSAGES:
            if message.target is me.kind:
                self.subscribe(message)

    def subscribe(self, message: Message) -> None:
        """Declare this location's queues for a message, and consume from them."""
        channel = self.channel(message)
        assured = message.group.is_assured
        queues = []
        if not message.group.is_published:
            queues.append(f"{message.name}.{self.me.number}")
            channel.queue_declare(queues[0], durable=assured)
        else:
            for topic in self.chain.destinations(message):
                if message.to is To.EVERYBODY or self.me.number in self.chain.suppliers_of[topic]:
                    exchange = f"{message.name}.{topic}"
                    queue = f"{exchange}.{self.me.number}"
                    channel.exchange_declare(exchange, "fanout", durable=assured)
                    channel.queue_declare(queue, durable=assured)
                    channel.queue_bind(queue, exchange)
                    queues.append(queue)
        for queue in queues:
            channel.basic_consume(queue, self.handle, auto_ack=not assured)

    def channel(self, message: Message) -> Any:
        return self.assured if message.group.is_assured else self.express

    def run(self, start_ns: int) -> RoleResult:
        """Begin interactions when they are due; handle messages until none has come for QUIET_NS."""
        driven_ns = int(TIMES.driven_s * 1e9)
        end_ns = start_ns + driven_ns + int(TIMES.drain_s * 1e9)
        self.ledger = Ledger(start_ns + int(TIMES.warm_up_s * 1e9), start_ns + driven_ns)
        for due_ns, number, nth in self.plan(start_ns):
            left_s = (due_ns - time.monotonic_ns()) / 1e9
            while left_s > 0:
                self.connection.process_data_events(time_limit=left_s)
                left_s = (due_ns - time.monotonic_ns()) / 1e9
            self.begin(INTERACTIONS[number].messages[0], nth, due_ns)
        received = -1
        last_message_ns = time.monotonic_ns()
        while time.monotonic_ns() < min(end_ns, max(last_message_ns, start_ns + driven_ns) + QUIET_NS):
            self.connection.process_data_events(time_limit=0.1)
            if self.ledger.received > received:
                received = self.ledger.received
                last_message_ns = time.monotonic_ns()
        self.connection.close()
        return RoleResult(sent=self.ledger.sent, received=self.ledger.received, details=self.ledger.details())

    def plan(self, start_ns: int) -> list[tuple[int, int, int]]:
        """This location's interactions in the order in which they are due: (due time, interaction, its number)."""
        plan = []
        for number, interaction in INTERACTIONS.items():
            if interaction.initiator is self.me.kind:
                for nth, due_ns in enumerate(self.chain.dues_ns(self.me, number, TIMES).tolist()):
                    plan.append((start_ns + due_ns, number, nth))
        return sorted(plan)

    def begin(self, message: Message, nth: int, due_ns: int) -> None:
        """Begin this location's interaction number `nth` by its first message."""
        target = self.target(message, self.me.number, self.me.number)
        winner = 0
        if message.to is To.FAMILY:
            target = self.chain.family(self.me.number, nth)
            winner = self.chain.winner(self.me.number, nth)
        self.ledger.note_begun(due_ns, time.monotonic_ns())
        self.publish(message, target, size_number(self.me, nth), self.me.number, winner, due_ns)

    def handle(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:  # noqa: ARG002
        """Note a message that has come, publish the messages that follow, and acknowledge it."""
        head = Head._make(HEAD.unpack_from(body))
        received = MESSAGES[head.message]
        self.ledger.note_received(head, len(body), 1, time.monotonic_ns())
        for answer in MESSAGES:
            if answer.after == received.name and (answer.name != "pOrder" or head.sender == head.winner):
                target = self.target(answer, head.sender, head.initiator)
                self.publish(answer, target, head.size_index, head.initiator, head.winner, head.due_ns)
        if received.group.is_assured:
            channel.basic_ack(method.delivery_tag)

    def target(self, message: Message, sender: int, initiator: int) -> int:
        """The number of the location that gets the message."""
        if message.to is To.HQ_IN_TURN:
            self.turn = (self.turn + 1) % self.chain.count_of(AgentKind.HQ)
        centre = self.chain.centre_of(self.me.number)
        return {
            To.ITSELF: self.me.number,
            To.ITS_DC: centre,
            To.SENDER: sender,
            To.INITIATOR: initiator,
            To.HQ_IN_TURN: self.turn,
        }.get(message.to, 0)

    def publish(self, message: Message, target: int, size: int, initiator: int, winner: int, due_ns: int) -> None:
        number = NUMBER_OF[message.name]
        now_ns = time.monotonic_ns()
        deliveries = self.chain.copies(message, target)
        sequence = self.ledger.note_sent(number, target, self.me.number, deliveries, now_ns)
        head = HEAD.pack(0, number, size, target, self.me.number, initiator, winner, sequence, now_ns, due_ns)
        destination = f"{message.name}.{target}"
        exchange, key = (destination, "") if message.group.is_published else ("", destination)
        properties = pika.BasicProperties(delivery_mode=2 if message.group.is_assured else 1)
        self.channel(message).basic_publish(exchange, key, head + BODIES[number][size], properties)


def play(chain: Chain, me: Location, url: str, ready: Any, start: Any, results: Any) -> None:
    """The work of a location's process: wait for the other processes, run, and put (name, result) into `results`."""
    agent = PikaAgent(chain, me, url)
    ready.wait()
    results.put((str(me), agent.run(start.value)))


def passes(url: str, base: int) -> bool:
    """Run a chain with this base; returns whether it passes."""
    chain = Chain(vertical(base))
    context = multiprocessing.get_context("fork")
    locations = chain.locations
    ready = context.Barrier(len(locations) + 1)
    results = context.Queue()
    start = context.Value("q", 0)
    processes = [context.Process(target=play, args=(chain, me, url, ready, start, results)) for me in locations]
    for process in processes:
        process.start()
    while ready.n_waiting < len(locations):
        time.sleep(0.01)
    start.value = time.monotonic_ns() + int(BEGIN_IN_S * 1e9)
    ready.wait()
    results_by_name = dict(results.get() for _ in processes)
    for process in processes:
        process.join()
    reasons = wrong_with(chain, TIMES, BOUND_S, results_by_name)
    print(f"base {base}: {reasons[0] if reasons else 'passed'}", file=sys.stderr)
    return not reasons


if __name__ == "__main__":
    print(int(passes(sys.argv[1], int(sys.argv[2]))))
