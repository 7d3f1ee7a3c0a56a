"""The benchmarks. Each file here declares BENCHMARK; the benchmark has the file's name.

`coverage` lists every figure, table and experiment of the papers with the command that makes it, or the reason why none
does: the benchmarks say theirs, ELSEWHERE has the others.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.streams import with_rates

AMQP, MRG, ZEROMQ = "AMQP over InfiniBand", "Red Hat and Intel, MRG Messaging", "ZeroMQ 0.2 tests"
QUEUES, CHAIN = "IBM MQSeries and MSMQ", "Sachs, Kounev, Bacon and Buchmann, a supply chain workload"
PAPERS = (AMQP, MRG, ZEROMQ, QUEUES, CHAIN)
RATES = "1000,2000,4000,6000,8000"


class Covered(NamedTuple):
    """Something that a paper shows; `command` is empty where none makes it, and `but` then says why."""

    paper: str
    item: str
    what: str
    command: str
    but: str


ELSEWHERE = (
    Covered(AMQP, "figures 1, 2, 7", "drawings of broker, hosts and application", "", "nothing is measured in them"),
    Covered(AMQP, "4.2", "bandwidth of the network alone", "exchange bench throughput --transport tcp --sizes 1MiB",
            "one way; the paper's hosts sent and received at once"),
    Covered(AMQP, "figure 3d", "message rate of MPI over IPoIB and RDMA",
            "exchange bench throughput --transport tcp --sizes 1B..1MiB",
            "sockets alone stand in for MPI over IPoIB; nothing here for RDMA, which takes InfiniBand"),
    Covered(AMQP, "5.2", "weighted average size of the exchange's messages",
            "exchange run --transport amqp --rate 8000 --orders 1000000",
            "at the foot of its page: of orders and answers; the paper's 9 bytes are also of its samples"),
    Covered(AMQP, "figures 8a, 8b, 9a to 9c", "the exchange: rates, completion time, CPU",
            f"exchange sweep --transports amqp --rates {RATES} --orders 40000",
            "the paper sends 1,000,000 orders at each rate, which takes 35 min a repeat"),
    Covered(AMQP, "figure 8c", "completion time with Nagle's algorithm",
            f"exchange nagle --transports amqp --roles broker --rates {RATES}", ""),
    Covered(AMQP, "table 1", "packets with and without it",
            "exchange nagle --transports amqp --roles broker --rates 1000,8000", ""),
    Covered(MRG, "figures 1 to 7", "drawings of brokers, exchanges, queues and hosts", "",
            "nothing is measured in them"),
    Covered(MRG, "5.1", "another memory allocator, another processor", "",
            "the broker's allocator is not ours to change"),
    Covered(QUEUES, "figure 1", "a drawing of the hosts", "", "nothing is measured in it"),
    Covered(CHAIN, "figures 1, 2", "drawings of interactions 1 and 2", "", "docs/supply-chain.md draws them"),
)  # fmt: skip


def names() -> list[str]:
    return [module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)]


def benchmark_of(name: str) -> BenchmarkDefinition:
    declared: BenchmarkDefinition = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").BENCHMARK
    return replace(with_rates(declared) if declared.paced else declared, name=name)


def coverage() -> list[Covered]:
    """Paper by paper: what there is, by its first number, and then what there is not."""
    return sorted([*_own(), *ELSEWHERE], key=lambda each: (PAPERS.index(each.paper), not each.command, _first(each)))


def _first(covered: Covered) -> int:
    number = re.search(r"\d+", covered.item)
    return int(number[0]) if number else 0


def _own() -> Iterator[Covered]:
    for benchmark in map(benchmark_of, names()):
        paper = next(paper for paper in PAPERS if benchmark.paper.startswith(paper))
        for each in benchmark.makes:
            command = f"exchange bench {benchmark.name} {each.options}".rstrip()
            yield Covered(paper, each.item, each.what, command, each.but)
