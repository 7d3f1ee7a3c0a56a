"""The supply chain against a straightforward program on pika, reference/supply_chain_pika.py: how much passes.

Both programs do the same work on one private RabbitMQ, and pass or fail by the same judge. The highest base that passes
is searched for both in lockstep: a probe of ours, then a probe of the reference.
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
"""OPTIONS leaves --bound at its default, which equals BOUND_S in reference/supply_chain_pika.py."""
Probe = Callable[[int], bool]
"""A function that runs a chain with a base, and returns whether it passes."""


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Compare interactions a second at the highest base that passes."""
    ours = []
    theirs = []
    try:
        with node() as broker:
            for _ in range(min(repeats, MOST_REPEATS)):
                our_base, their_base = highest_passed_bases((partial(we_pass, broker), partial(pika_passes, broker)))
                ours.append(interactions_per_s(our_base))
                theirs.append(interactions_per_s(their_base))
    except RabbitMqMissing as missing:
        print(missing)
        return
    yield BenchmarkRow(
        "supply chain, vertical: highest base that passes",
        "pika",
        "interactions/s",
        ours,
        theirs,
        required=3,
        hoped_for=4,
    )


def highest_passed_bases(probes: tuple[Probe, ...]) -> list[int]:
    """Return the highest base that passes for each probe, by bisections in lockstep.

    RuntimeError if no base passes.
    """
    highest_passed = [-1] * len(probes)
    lowest_failed = [len(BASES)] * len(probes)
    while any(failed - passed > 1 for passed, failed in zip(highest_passed, lowest_failed, strict=True)):
        for number, probe in enumerate(probes):
            if lowest_failed[number] - highest_passed[number] > 1:
                middle = (highest_passed[number] + lowest_failed[number]) // 2
                if probe(BASES[middle]):
                    highest_passed[number] = middle
                else:
                    lowest_failed[number] = middle
    if min(highest_passed) < 0:
        raise RuntimeError(f"no base of {BASES[0]} or more passes")
    return [BASES[place] for place in highest_passed]


def interactions_per_s(base: int) -> float:
    """Return the interactions that a chain with this base begins in a second."""
    topology = vertical(base)
    return sum(map(topology.initiations_per_s, topology.interactions))


def we_pass(broker: Node, base: int) -> bool:
    """Return whether `exchange bench supply-chain` passes. RuntimeError if it could not be judged."""
    with tempfile.TemporaryDirectory(prefix="exchange-benches-") as results:
        url = f"amqp://{broker.user}@{broker.host}:{broker.port}"
        words = ("bench", "supply-chain", "--transport", url, "--base", str(base), *OPTIONS, "--results", results)
        finished = subprocess.run([*EXCHANGE, *words], capture_output=True, text=True, check=False)
    if finished.returncode not in (0, 1):
        raise RuntimeError(finished.stderr)
    return finished.returncode == 0


def pika_passes(broker: Node, base: int) -> bool:
    """Return whether the program on pika passes."""
    url = f"amqp://{broker.user}:{broker.password}@{broker.host}:{broker.port}/%2F"
    command = [sys.executable, "-m", "benchmarks.reference.supply_chain_pika", url, str(base)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return finished.stdout.strip() == "1"
