"""density: how close together messages arrive.

    publisher  ══ as fast as it goes ══▶  consumer      as in throughput: PUSH to PULL, or a direct exchange

Density is the mean time between two arrivals, in ns: the time from the consumer's first message to its last, divided by
the number of messages after the first. ZeroMQ's authors prefer density to messages/s, since the costs of a message add
up in it.
"""

from __future__ import annotations

from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.benchmarks import throughput
from exchange_simulation.messaging.benchmarks.throughput import COUNTS, STREAM
from exchange_simulation.messaging.cell import Cell, Figures, Results
from exchange_simulation.messaging.options import COUNT, sizes_option
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.presentation import Column, Plot

SMALL = Published(
    "ns between two small messages, ours of 8 B",
    "about 300",
    level=300.0,
    level_label="the paper, small ones",
    figure="between_arrivals_ns",
    where={"size_bytes": 8},
)


def figures(cell: Cell, results: Results) -> Figures:
    throughput_figures = throughput.figures(cell, results)
    if "messages_per_s" not in throughput_figures:
        return throughput_figures
    return {**throughput_figures, "between_arrivals_ns": 1e9 / throughput_figures["messages_per_s"]}


BENCHMARK = BenchmarkDefinition(
    about="the mean time between two arrivals, in ns, by size",
    paper="ZeroMQ 0.2 tests, density",
    roles=STREAM.roles,
    judge=STREAM.judge,
    figures=figures,
    flood_s=COUNTS.flood_s,
    takes_rate=True,
    columns=(
        Column("between_arrivals_ns", "ns between arrivals", with_interval=True),
        Column("messages_per_s", "messages/s"),
    ),
    plots=(Plot("Density", "between_arrivals_ns", "ns", published=(SMALL,), caption="Less is denser."),),
    published=(SMALL,),
    options=(sizes_option("1B..64KiB"), COUNT),
    quick_values={"sizes": (8, 1024)},
)
