"""The whole exchange against one in C++ on the same libzmq: `reference/exchange_zeromq.cpp`.

    ours    exchange run  ─▶  gateway ══zeromq══ engine, and a reporter
    C++     one program   ─▶  gateway ══libzmq══ engine

Both run the same orders with the same window, high-water marks and waits, and must count the same answers. The two
programs run in turns.

The places of a program's four threads change its throughput twofold. So both programs have a processor for each side,
and real-time priority if the system permits it. In the rows "scheduled as usual" they have neither, as a command
without options. A round is measured again if other work took over 5 % of the processors meanwhile; a row says how many
rounds stayed noisy. Memory has no reference: it has a limit.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.comparison import BenchmarkRow, Cost, Limit, Record, permitted_priority, record_of, usage_of
from benchmarks.cpp import built, libzmq
from exchange.settings import DEFAULT_WINDOW
from exchange_simulation.launching.priority import at_priority
from exchange_simulation.launching.record.noise import MOST_SHARE, MachineTimes, noise_between, noise_share

SEED = 1
LONGEST_RUN_S = 120.0
FEW = 3
"""Repeats for figures that hardly vary."""
SLOW_REPEATS_FACTOR = 3
"""Multiplies the repeats at the lower rate, since one repeat of 4,000 orders varies by 12 %.

Seven repeats, the default, could fail the row by chance."""
COUNTS = ("trades", "confirmations", "quotes", "rejections")
"""The counts of answers that both programs must agree on."""
AGAINST = "C++ on libzmq"


class OfferedLoad(NamedTuple):
    """The load that a run offers."""

    rate: str
    """Orders a second, or max."""
    orders: int

    @property
    def in_words(self) -> str:
        return f"{int(self.rate):,} orders/s"

    @property
    def window(self) -> int:
        """The largest number of unanswered orders; 0 for no bound, the default of `exchange run` with a rate."""
        return DEFAULT_WINDOW if self.rate == "max" else 0


SLOW = OfferedLoad("1000", 4_000)
FAST = OfferedLoad("8000", 24_000)
FLAT_OUT = OfferedLoad("max", 4_000_000)
FOR_MEMORY = OfferedLoad("max", 1_000_000)


class Scheduling(NamedTuple):
    """How both programs are scheduled: their priority, and the processors of gateway and engine, if each has one."""

    priority: str = "normal"
    cpus: tuple[int, ...] = ()

    @property
    def options(self) -> list[str]:
        """The options of `exchange run`."""
        options = ["--priority", self.priority]
        if self.cpus:
            gateway, engine = self.cpus
            options += ["--cpus", f"gateway={gateway},engine={engine}"]
        return options


USUAL = Scheduling()


class RunPair(NamedTuple):
    """One run of each program, back to back; the reference is None if it could not be built."""

    ours: Record
    reference: Record | None

    @property
    def noise(self) -> float:
        """The larger of both runs' noise shares; 0 if both are unknown."""
        noise_beside_ours = noise_share(self.ours) or 0.0
        noise_beside_reference = noise_share(self.reference or {}) or 0.0
        return max(noise_beside_ours, noise_beside_reference)

    @property
    def is_noisy(self) -> bool:
        return self.noise > MOST_SHARE


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Compare throughput, completion time and CPU time of a run; measure its memory."""
    program = built("exchange_zeromq", *libzmq())
    place = best_place()
    yield throughput(repeated(FLAT_OUT, program, repeats, place))

    slow_pairs = repeated(SLOW, program, SLOW_REPEATS_FACTOR * repeats, place)
    yield completion("p50", SLOW, slow_pairs, required=1.15, hoped_for=1.0)
    yield processor_time(SLOW, slow_pairs)

    fast_pairs = repeated(FAST, program, repeats, place)
    yield completion("p50", FAST, fast_pairs, required=1.15, hoped_for=1.0)
    yield completion("p99", FAST, fast_pairs, required=1.3, hoped_for=1.0)
    yield processor_time(FAST, fast_pairs)

    if place != USUAL:
        as_usual = ", scheduled as usual"
        yield throughput(repeated(FLAT_OUT, program, repeats), as_usual)
        yield completion("p99", FAST, repeated(FAST, program, repeats), required=1.3, hoped_for=1.0, how=as_usual)

    records = [run(FOR_MEMORY) for _ in range(min(repeats, FEW))]
    for role in ("engine", "gateway"):
        megabytes = [usage_of(record, role, "max_rss_bytes") / 1e6 for record in records]
        yield Limit(title=f"{role}'s memory, 1,000,000 orders", unit="MB", ours=megabytes, required=300, hoped_for=200)


def best_place() -> Scheduling:
    """Return the best place that this machine permits: real-time priority, and a processor for each side."""
    cpus = sorted(os.sched_getaffinity(0))
    cpus_of_sides = (cpus[0], cpus[1]) if len(cpus) > 1 else ()
    return Scheduling(permitted_priority(), cpus_of_sides)


def throughput(pairs: list[RunPair], how: str = "") -> BenchmarkRow:
    """Compare orders/s from the first order's hand-over to the last answer."""
    ours = [pair.ours["rates"]["orders_per_s"] for pair in pairs]
    reference = [pair.reference["orders_per_s"] for pair in pairs if pair.reference]
    return BenchmarkRow(
        f"whole exchange, flat out{how}", AGAINST, "orders/s", ours, reference, required=1.0, hoped_for=1.3
    )


def completion(
    percentile: str, load: OfferedLoad, pairs: list[RunPair], *, required: float, hoped_for: float, how: str = ""
) -> BenchmarkRow:
    """Compare completion times from due to the first answer; the row says how many of our runs fell behind."""
    ours = [pair.ours["completion_us"]["due"][percentile] for pair in pairs]
    reference = [pair.reference["due_us"][percentile] for pair in pairs if pair.reference]
    title = f"completion {percentile} from due at {load.in_words}"
    saturated_runs = sum(pair.ours["status"] == "saturated" for pair in pairs)
    if saturated_runs:
        title += f" ({saturated_runs} runs saturated)"
    title += how + noisy_in_words(pairs)
    return Cost(title, AGAINST, "us", ours, reference, required, hoped_for)


def processor_time(load: OfferedLoad, pairs: list[RunPair]) -> BenchmarkRow:
    """Compare the CPU time of gateway and engine for each order, in us."""
    ours = []
    reference = []
    for pair in pairs:
        cpu_s = usage_of(pair.ours, "gateway", "cpu_s") + usage_of(pair.ours, "engine", "cpu_s")
        ours.append(cpu_s * 1e6 / load.orders)
        if pair.reference:
            cpu_s = pair.reference["gateway_cpu_s"] + pair.reference["engine_cpu_s"]
            reference.append(cpu_s * 1e6 / load.orders)
    title = f"CPU of gateway and engine at {load.in_words}{noisy_in_words(pairs)}"
    return Cost(title, AGAINST, "us an order", ours, reference, required=1.1, hoped_for=0.9)


def repeated(load: OfferedLoad, program: Path | None, repeats: int, place: Scheduling = USUAL) -> list[RunPair]:
    """Run both programs `repeats` times in turns, after one round that does not count.

    While a round is noisy, another round is measured and the noisiest is dropped, at most `repeats` times.
    """
    run_pair(load, program, place)
    pairs = [run_pair(load, program, place) for _ in range(repeats)]
    for _ in range(repeats):
        if not any(pair.is_noisy for pair in pairs):
            break
        pairs.append(run_pair(load, program, place))
        pairs.remove(max(pairs, key=lambda pair: pair.noise))
    return pairs


def noisy_in_words(pairs: list[RunPair]) -> str:
    """Return the clause on rounds that stayed noisy, for the title of a row; empty if none did."""
    noisy = sum(pair.is_noisy for pair in pairs)
    return f" ({noisy} of {len(pairs)} beside others' work)" if noisy else ""


def run_pair(load: OfferedLoad, program: Path | None, place: Scheduling) -> RunPair:
    """Run our exchange, then the reference. AssertionError if their answers differ."""
    ours = run(load, place)
    if program is None:
        return RunPair(ours, None)
    reference = run_reference(load, program, place)
    for name in COUNTS:
        if ours["counts"][name] != reference[name]:
            raise AssertionError(f"with {load}, the {name} of the reference differ from ours: {ours} {reference}")
    return RunPair(ours, reference)


def run(load: OfferedLoad, place: Scheduling = USUAL) -> Record:
    """Run our exchange; returns its run.json."""
    options = ("--rate", load.rate, "--orders", load.orders, "--seed", SEED)
    return record_of("run", "--no-spark", *options, *place.options)


def run_reference(load: OfferedLoad, program: Path, place: Scheduling) -> Record:
    """Run the reference; returns the record that it prints, with the noise during the run, as in run.json."""
    arguments = (load.orders, load.rate, SEED, load.window, *place.cpus)
    command = [str(program), *map(str, arguments)]
    before = MachineTimes.now()
    with at_priority(place.priority):
        finished = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_RUN_S, check=True)
    noise = noise_between(before, MachineTimes.now(), {os.getpid()})
    return {**json.loads(finished.stdout), "noise": noise.as_record(components={})}
