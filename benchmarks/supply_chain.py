"""The supply chain against a straightforward program on pika, reference/supply_chain_pika.py: how much passes.

Both do the same work on one private RabbitMQ, and pass or fail by the same judge. The highest base that passes is
searched for both in lockstep, a probe of ours and one of theirs in turns.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

from benchmarks.amqp import node
from benchmarks.comparison import EXCHANGE, BenchmarkRow
from exchange_simulation.messaging.supply_chain.topologies import vertical
from transports.rabbitmq import Node, RabbitMqMissing

BASES = [round(10 * 1.12**step) for step in range(41)]
"""10 to 930."""
MOST_REPEATS = 2
OPTIONS = ("--warm-up", "3", "--duration", "5", "--repeats", "1", "--json")
"""The default of --bound equals BOUND_S of the reference."""
Probe = Callable[[int], bool]


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Interactions a second at the highest base that passes."""
    try:
        with node() as broker:
            probes = (lambda base: ours_holds(broker, base), lambda base: theirs_holds(broker, base))
            found = [highest(probes) for _ in range(min(repeats, MOST_REPEATS))]
    except RabbitMqMissing as missing:
        print(missing)
        return
    ours, theirs = ([interactions_per_s(base) for base in side] for side in zip(*found, strict=True))
    yield BenchmarkRow(
        "supply chain, vertical: highest base that passes", "pika", "interactions/s", ours, theirs, reach=3, aim=4
    )


def highest(probes: tuple[Probe, ...]) -> list[int]:
    """The highest base at which each probe holds: bisections in lockstep. RuntimeError if none does."""
    reach = [[-1, len(BASES)] for _ in probes]
    while any(high - low > 1 for low, high in reach):
        for probe, ends in zip(probes, reach, strict=True):
            if ends[1] - ends[0] > 1:
                middle = sum(ends) // 2
                ends[not probe(BASES[middle])] = middle
    if any(low < 0 for low, _ in reach):
        raise RuntimeError(f"no base of {BASES[0]} or more passes")
    return [BASES[low] for low, _ in reach]


def interactions_per_s(base: int) -> float:
    topology = vertical(base)
    return sum(map(topology.initiations_per_s, topology.interactions))


def ours_holds(broker: Node, base: int) -> bool:
    """Whether `exchange bench supply-chain` passes."""
    with tempfile.TemporaryDirectory(prefix="exchange-benches-") as results:
        url = f"amqp://{broker.user}@{broker.host}:{broker.port}"
        words = ("bench", "supply-chain", "--transport", url, "--base", str(base), *OPTIONS, "--results", results)
        done = subprocess.run([*EXCHANGE, *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return done.returncode == 0


def theirs_holds(broker: Node, base: int) -> bool:
    url = f"amqp://{broker.user}:{broker.password}@{broker.host}:{broker.port}/%2F"
    command = [sys.executable, "-m", "benchmarks.reference.supply_chain_pika", url, str(base)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "1"
