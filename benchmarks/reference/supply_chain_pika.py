"""The supply chain written with pika as its documentation shows it: the reference of benchmarks/supply_chain.py.

Each location is a process with one BlockingConnection. A callback handles each message, publishes what follows, and
acknowledges it; persistent messages are confirmed. Plan, message heads, ledger and judge are those of our benchmark, so
that both do the same work and pass or fail by the same rule.
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
from exchange_simulation.messaging.supply_chain.ledger import HEAD, Head, Ledger, bodies
from exchange_simulation.messaging.supply_chain.messages import INTERACTIONS, MESSAGES, AgentKind, Message, To
from exchange_simulation.messaging.supply_chain.topologies import vertical

BOUND_S, PREFETCH = 0.5, 100
TIMES = ChainTimes(warm_up_s=3.0, measured_s=5.0, drain_s=10.0)
BEGIN_IN_S = 0.3
"""After the last process is ready."""


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
        channel, assured = self.channel(message), message.group.is_assured
        if not message.group.is_published:
            queues = [f"{message.name}.{self.me.number}"]
            channel.queue_declare(queues[0], durable=assured)
        else:
            queues = []
            for topic in self.chain.destinations(message):
                if message.to is To.EVERYBODY or self.me.number in self.chain.suppliers_of[topic]:
                    queues.append(f"{message.name}.{topic}.{self.me.number}")
                    channel.exchange_declare(f"{message.name}.{topic}", "fanout", durable=assured)
                    channel.queue_declare(queues[-1], durable=assured)
                    channel.queue_bind(queues[-1], f"{message.name}.{topic}")
        for queue in queues:
            channel.basic_consume(queue, self.handle, auto_ack=not assured)

    def channel(self, message: Message) -> Any:
        return self.assured if message.group.is_assured else self.express

    def run(self, start_ns: int) -> RoleResult:
        """Begin interactions when they are due; handle messages until two seconds without any follow the last."""
        driven_ns = int(TIMES.driven_s * 1e9)
        end_ns = start_ns + driven_ns + int(TIMES.drain_s * 1e9)
        self.ledger = Ledger(start_ns + int(TIMES.warm_up_s * 1e9), start_ns + driven_ns)
        plan = sorted(
            (start_ns + due_ns, number, nth)
            for number in INTERACTIONS
            if INTERACTIONS[number].initiator is self.me.kind
            for nth, due_ns in enumerate(self.chain.dues_ns(self.me, number, TIMES).tolist())
        )
        for due_ns, number, nth in plan:
            while (left_s := (due_ns - time.monotonic_ns()) / 1e9) > 0:
                self.connection.process_data_events(time_limit=left_s)
            self.begin(INTERACTIONS[number].messages[0], nth, due_ns)
        seen = -1
        quiet_ns = time.monotonic_ns()
        while (now_ns := time.monotonic_ns()) < end_ns and now_ns < max(quiet_ns, start_ns + driven_ns) + 2_000_000_000:
            self.connection.process_data_events(time_limit=0.1)
            if self.ledger.received > seen:
                seen = self.ledger.received
                quiet_ns = time.monotonic_ns()
        self.connection.close()
        return RoleResult(sent=self.ledger.sent, received=self.ledger.received, details=self.ledger.details())

    def begin(self, message: Message, nth: int, due_ns: int) -> None:
        target, winner = self.target(message, self.me.number, self.me.number), 0
        if message.to is To.FAMILY:
            target, winner = self.chain.family(self.me.number, nth), self.chain.winner(self.me.number, nth)
        self.ledger.note_begun(due_ns, time.monotonic_ns())
        self.publish(message, target, size_number(self.me, nth), self.me.number, winner, due_ns)

    def handle(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:  # noqa: ARG002
        head = Head._make(HEAD.unpack_from(body))
        came = MESSAGES[head.message]
        self.ledger.note_received(head, len(body), 1, time.monotonic_ns())
        for answer in MESSAGES:
            if answer.after == came.name and (answer.name != "pOrder" or head.sender == head.winner):
                target = self.target(answer, head.sender, head.initiator)
                self.publish(answer, target, head.size, head.initiator, head.winner, head.due_ns)
        if came.group.is_assured:
            channel.basic_ack(method.delivery_tag)

    def target(self, message: Message, sender: int, initiator: int) -> int:
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
        number, now_ns = NUMBER_OF[message.name], time.monotonic_ns()
        deliveries = self.chain.copies(message, target)
        sequence = self.ledger.next_sequence(number, target, self.me.number, deliveries, now_ns)
        head = HEAD.pack(0, number, size, target, self.me.number, initiator, winner, sequence, now_ns, due_ns)
        place = f"{message.name}.{target}"
        exchange, key = (place, "") if message.group.is_published else ("", place)
        mode = pika.BasicProperties(delivery_mode=2 if message.group.is_assured else 1)
        self.channel(message).basic_publish(exchange, key, head + bodies()[number][size], mode)


def play(chain: Chain, me: Location, url: str, ready: Any, start: Any, results: Any) -> None:
    """Play a location in a process of its own: wait for the others, run, and put (name, result) into `results`."""
    agent = PikaAgent(chain, me, url)
    ready.wait()
    results.put((str(me), agent.run(start.value)))


def is_held(url: str, base: int) -> bool:
    """Run a chain with this base; returns whether it passes."""
    chain, context = Chain(vertical(base)), multiprocessing.get_context("fork")
    locations = chain.locations
    ready, results = context.Barrier(len(locations) + 1), context.Queue()
    start = context.Value("q", 0)
    agents = [context.Process(target=play, args=(chain, me, url, ready, start, results)) for me in locations]
    for agent in agents:
        agent.start()
    while ready.n_waiting < len(locations):
        time.sleep(0.01)
    start.value = time.monotonic_ns() + int(BEGIN_IN_S * 1e9)
    ready.wait()
    found = dict(results.get() for _ in agents)
    for agent in agents:
        agent.join()
    wrong = wrong_with(chain, TIMES, BOUND_S, found)
    print(f"base {base}: {wrong[0] if wrong else 'held'}", file=sys.stderr)
    return not wrong


if __name__ == "__main__":
    print(int(is_held(sys.argv[1], int(sys.argv[2]))))
