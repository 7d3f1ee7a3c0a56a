"""The benchmarks. Each file here declares BENCHMARK; the benchmark has the file's name.

`coverage` lists every figure, table and experiment of the papers with the command that makes it, or the reason why
there is no command. Benchmarks declare the items that they make; ELSEWHERE has the others.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.streams import with_rates

AMQP = "AMQP over InfiniBand"
MRG = "Red Hat and Intel, MRG Messaging"
ZEROMQ = "ZeroMQ 0.2 tests"
QUEUES = "IBM MQSeries and MSMQ"
CHAIN = "Sachs, Kounev, Bacon and Buchmann, a supply chain workload"
PAPERS = (AMQP, MRG, ZEROMQ, QUEUES, CHAIN)
RATES = "1000,2000,4000,6000,8000"
"""Orders/s of the AMQP paper's exchange."""


@dataclass(frozen=True)
class PaperItem:
    """A figure, table or experiment of a paper."""

    paper: str
    item: str
    """The paper's name for it, as "figure 4a"."""
    title: str
    command: str
    """The command that makes the item; empty if there is none."""
    note: str
    """Differences from the paper, or the reason why there is no command."""


ELSEWHERE = (
    PaperItem(
        paper=AMQP,
        item="figures 1, 2, 7",
        title="drawings of broker, hosts and application",
        command="",
        note="nothing is measured in them",
    ),
    PaperItem(
        paper=AMQP,
        item="4.2",
        title="bandwidth of the network alone",
        command="exchange bench throughput --transport tcp --sizes 1MiB",
        note="one way; the paper's hosts sent and received at once",
    ),
    PaperItem(
        paper=AMQP,
        item="figure 3d",
        title="message rate of MPI over IPoIB and RDMA",
        command="exchange bench throughput --transport tcp --sizes 1B..1MiB",
        note="sockets alone stand in for MPI over IPoIB; nothing here for RDMA, which takes InfiniBand",
    ),
    PaperItem(
        paper=AMQP,
        item="5.2",
        title="weighted average size of the exchange's messages",
        command="exchange run --transport amqp --rate 8000 --orders 1000000",
        note="at the foot of its page: of orders and answers; the paper's 9 bytes are also of its samples",
    ),
    PaperItem(
        paper=AMQP,
        item="figures 8a, 8b, 9a to 9c",
        title="the exchange: rates, completion time, CPU",
        command=f"exchange sweep --transports amqp --rates {RATES} --orders 40000",
        note="the paper sends 1,000,000 orders at each rate, which takes 35 min a repeat",
    ),
    PaperItem(
        paper=AMQP,
        item="figure 8c",
        title="completion time with Nagle's algorithm",
        command=f"exchange nagle --transports amqp --roles broker --rates {RATES}",
        note="",
    ),
    PaperItem(
        paper=AMQP,
        item="table 1",
        title="packets with and without it",
        command="exchange nagle --transports amqp --roles broker --rates 1000,8000",
        note="",
    ),
    PaperItem(
        paper=MRG,
        item="figures 1 to 7",
        title="drawings of brokers, exchanges, queues and hosts",
        command="",
        note="nothing is measured in them",
    ),
    PaperItem(
        paper=MRG,
        item="5.1",
        title="another memory allocator, another processor",
        command="",
        note="the broker's allocator is not ours to change",
    ),
    PaperItem(
        paper=QUEUES,
        item="figure 1",
        title="a drawing of the hosts",
        command="",
        note="nothing is measured in it",
    ),
    PaperItem(
        paper=CHAIN,
        item="figures 1, 2",
        title="drawings of interactions 1 and 2",
        command="",
        note="docs/supply-chain.md draws them",
    ),
)


def names() -> list[str]:
    return [module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)]


def benchmark_of(name: str) -> BenchmarkDefinition:
    """Return the benchmark. UserError if there is none of this name, which may be from a record."""
    if name not in names():
        raise UserError(f"{name!r} is no benchmark; there are {', '.join(names())}")
    declared: BenchmarkDefinition = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").BENCHMARK
    return replace(with_rates(declared) if declared.takes_rate else declared, name=name)


def coverage() -> list[PaperItem]:
    """The items of all papers, paper by paper: first those with a command, each group by its first number."""

    def place(item: PaperItem) -> tuple[int, bool, int]:
        has_no_command = not item.command
        return PAPERS.index(item.paper), has_no_command, _first_number(item)

    return sorted([*_reproduced_items(), *ELSEWHERE], key=place)


def _first_number(item: PaperItem) -> int:
    """The first number in the paper's name for the item; 0 without one."""
    number = re.search(r"\d+", item.item)
    return int(number[0]) if number else 0


def _reproduced_items() -> Iterator[PaperItem]:
    """The items that benchmarks make."""
    for benchmark in map(benchmark_of, names()):
        paper = next(paper for paper in PAPERS if benchmark.paper.startswith(paper))
        for reproduced in benchmark.reproduces:
            command = f"exchange bench {benchmark.name} {reproduced.options}".rstrip()
            yield PaperItem(paper, reproduced.item, reproduced.title, command, reproduced.differences)
