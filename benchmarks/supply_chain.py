"""The supply chain against a straightforward program on pika, reference/supply_chain_pika.py: how much passes.

Both do the same work on one private RabbitMQ, and pass or fail by the same judge. The highest base that passes is
searched for both in lockstep, a probe of ours and one of theirs in turns.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.amqp import node
from benchmarks.comparison import EXCHANGE, BenchmarkRow
from exchange_simulation.messaging.supply_chain.topologies import vertical
from transports.rabbitmq import Node, RabbitMqMissing

BASES = [round(10 * 1.12**step) for step in range(41)]
"""The bases that may be tried: 10 to 930, in steps of 12 %."""
MOST_REPEATS = 2
OPTIONS = ("--warm-up", "3", "--duration", "5", "--repeats", "1", "--json")
"""The default of --bound equals BOUND_S of the reference."""
Probe = Callable[[int], bool]
"""A function that runs a chain with a base, and returns whether it passes."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Compare interactions a second at the highest base that passes."""
    ours = []
    theirs = []
    try:
        with node() as broker:
            for _ in range(min(repeats, MOST_REPEATS)):
                our_base, their_base = highest((partial(ours_holds, broker), partial(theirs_holds, broker)))
                ours.append(interactions_per_s(our_base))
                theirs.append(interactions_per_s(their_base))
    except RabbitMqMissing as missing:
        print(missing)
        return
    yield BenchmarkRow(
        "supply chain, vertical: highest base that passes", "pika", "interactions/s", ours, theirs, reach=3, aim=4
    )


def highest(probes: tuple[Probe, ...]) -> list[int]:
    """Return the highest base at which each probe holds, by bisections in lockstep. RuntimeError if none does."""
    highest_held = [-1] * len(probes)
    lowest_failed = [len(BASES)] * len(probes)
    while any(failed - held > 1 for held, failed in zip(highest_held, lowest_failed, strict=True)):
        for number, probe in enumerate(probes):
            if lowest_failed[number] - highest_held[number] > 1:
                middle = (highest_held[number] + lowest_failed[number]) // 2
                if probe(BASES[middle]):
                    highest_held[number] = middle
                else:
                    lowest_failed[number] = middle
    if min(highest_held) < 0:
        raise RuntimeError(f"no base of {BASES[0]} or more passes")
    return [BASES[place] for place in highest_held]


def interactions_per_s(base: int) -> float:
    """Return the interactions that a chain with this base begins in a second."""
    topology = vertical(base)
    return sum(map(topology.initiations_per_s, topology.interactions))


def ours_holds(broker: Node, base: int) -> bool:
    """Return whether `exchange bench supply-chain` passes. RuntimeError if it could not be judged."""
    with tempfile.TemporaryDirectory(prefix="exchange-benches-") as results:
        url = f"amqp://{broker.user}@{broker.host}:{broker.port}"
        words = ("bench", "supply-chain", "--transport", url, "--base", str(base), *OPTIONS, "--results", results)
        done = subprocess.run([*EXCHANGE, *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return done.returncode == 0


def theirs_holds(broker: Node, base: int) -> bool:
    """Return whether the program on pika passes."""
    url = f"amqp://{broker.user}:{broker.password}@{broker.host}:{broker.port}/%2F"
    command = [sys.executable, "-m", "benchmarks.reference.supply_chain_pika", url, str(base)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "1"
