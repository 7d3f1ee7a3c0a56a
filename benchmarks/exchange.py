"""The whole exchange against one in C++ on the same libzmq: `reference/exchange_zeromq.cpp`.

    ours    exchange run  ─▶  gateway ══zeromq══ engine, and a reporter
    C++     one program   ─▶  gateway ══libzmq══ engine

Both run the same orders with the same window, high-water marks and waits, and must count the same answers. Each run of
ours is followed by one of the reference. Both have real-time priority where the system permits it, and a processor for
each side: where the scheduler places the four threads of either, its throughput varies twofold. Rows that say so are of
both as a command without options runs them. A round is made again if others took over 5 % of the processors beside
either of its runs; a row says how many rounds stayed so. Memory is ours alone, and has a limit.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, NamedTuple

import zmq

from benchmarks.comparison import BenchmarkRow, permitted_priority, record_of
from benchmarks.cpp import built
from exchange.settings import DEFAULT_WINDOW
from exchange_simulation.launching.priority import going_first
from exchange_simulation.launching.record.noise import MOST_SHARE, MachineTimes, noise_between, noise_share

SEED = 1
LONGEST_RUN_S = 120.0
FEW = 3
"""Repeats for figures that hardly vary."""
TIMES_SLOW = 3
"""Times as many repeats at the lower rate: pairs of 4,000 orders scatter by 12 %, so seven miss a target by chance."""
COUNTS = ("trades", "confirmations", "quotes", "rejections")
AGAINST = "C++ on libzmq"

Figures = dict[str, Any]


@dataclass(frozen=True)
class Cost(BenchmarkRow):
    """A comparison in which less is better."""

    bound: ClassVar[str] = "<="

    @property
    def is_reached(self) -> bool | None:
        if self.reach is None or not self.reference:
            return None
        return median(self.ratios) <= self.reach


@dataclass(frozen=True)
class Limit(BenchmarkRow):
    """Less is better, and the targets are for our figure itself."""

    bound: ClassVar[str] = "<="

    @property
    def is_reached(self) -> bool | None:
        return None if self.reach is None else median(self.ours) <= self.reach


class OfferedLoad(NamedTuple):
    """The load that a run offers."""

    rate: str  # orders a second, or max
    orders: int

    @property
    def spoken(self) -> str:
        return f"{int(self.rate):,} orders/s"

    @property
    def window(self) -> int:
        """Most unanswered orders; 0 for no bound, the default of `exchange run` with a rate."""
        return DEFAULT_WINDOW if self.rate == "max" else 0


class Place(NamedTuple):
    """How both are scheduled: their priority, and the processors of gateway and engine, if each has one."""

    priority: str = "normal"
    cpus: tuple[int, ...] = ()

    @property
    def words(self) -> list[str]:
        pinned = ["--cpus", "gateway={},engine={}".format(*self.cpus)] if self.cpus else []
        return ["--priority", self.priority, *pinned]


USUAL, IN_WORDS = Place(), ", scheduled as usual"


class RunPair(NamedTuple):
    """One run of each, back to back; the reference is None where it could not be built."""

    ours: Figures
    reference: Figures | None

    @property
    def noise(self) -> float:
        """The larger share of the processors that others took beside one of the two; 0 if it is unknown of both."""
        return max(noise_share(each) or 0.0 for each in (self.ours, self.reference or {}))

    @property
    def is_noisy(self) -> bool:
        return self.noise > MOST_SHARE


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Throughput, completion time, CPU time and memory of a run."""
    program, slow, fast = built("exchange_zeromq", *libzmq()), OfferedLoad("1000", 4_000), OfferedLoad("8000", 24_000)
    full, place = OfferedLoad("max", 4_000_000), best_place()
    yield throughput(repeated(full, program, repeats, place))
    for load in (slow, fast):
        paced = repeated(load, program, repeats * (TIMES_SLOW if load is slow else 1), place)
        yield completion("p50", load, paced, reach=1.15, aim=1.0)
        if load is fast:
            yield completion("p99", load, paced, reach=1.3, aim=1.0)
        yield processor_time(load, paced)
    if place != USUAL:
        yield throughput(repeated(full, program, repeats), IN_WORDS)
        yield completion("p99", fast, repeated(fast, program, repeats), 1.3, 1.0, IN_WORDS)
    long = [run(OfferedLoad("max", 1_000_000)) for _ in range(min(repeats, FEW))]
    for role in ("engine", "gateway"):
        megabytes = [used(record, role, "max_rss_bytes") / 1e6 for record in long]
        yield Limit(f"{role}'s memory, 1,000,000 orders", "", "MB", megabytes, [], reach=300, aim=200)


def best_place() -> Place:
    """Before other work, and each side on a processor of its own, as far as this machine lets us."""
    cpus = tuple(sorted(os.sched_getaffinity(0))[:2])
    return Place(permitted_priority(), cpus if len(cpus) > 1 else ())


def throughput(taken: list[RunPair], how: str = "") -> BenchmarkRow:
    """Orders/s from the first order's hand-over to the last answer."""
    ours = [each.ours["rates"]["orders_per_s"] for each in taken]
    reference = [each.reference["orders_per_s"] for each in taken if each.reference]
    return BenchmarkRow(f"whole exchange, flat out{how}", AGAINST, "orders/s", ours, reference, reach=1.0, aim=1.3)


def completion(
    percentile: str, load: OfferedLoad, taken: list[RunPair], reach: float, aim: float, how: str = ""
) -> BenchmarkRow:
    """Completion time from due to the first answer; the row says how many runs fell behind."""
    ours = [each.ours["completion_us"]["due"][percentile] for each in taken]
    reference = [each.reference["due_us"][percentile] for each in taken if each.reference]
    behind = sum(each.ours["status"] == "saturated" for each in taken)
    what = f"completion {percentile} from due at {load.spoken}" + f" ({behind} runs saturated)" * (behind > 0)
    what += how + noisy(taken)
    return Cost(what, AGAINST, "us", ours, reference, reach, aim)


def processor_time(load: OfferedLoad, taken: list[RunPair]) -> BenchmarkRow:
    """CPU time of gateway and engine for each order."""
    ours = [sum(used(each.ours, role, "cpu_s") for role in ("gateway", "engine")) for each in taken]
    reference = [each.reference["gateway_cpu_s"] + each.reference["engine_cpu_s"] for each in taken if each.reference]
    an_order = 1e6 / load.orders
    what, unit = f"CPU of gateway and engine at {load.spoken}" + noisy(taken), "us an order"
    return Cost(
        what, AGAINST, unit, [cpu_s * an_order for cpu_s in ours], [cpu_s * an_order for cpu_s in reference], 1.1, 0.9
    )


def used(record: Figures, role: str, what: str) -> float:
    """A figure of a component's usage."""
    return float(record["components"][role][what])


def libzmq() -> list[str]:
    """Flags that link the libzmq of pyzmq, which a wheel has beside the package, or else the system's."""
    bundled = sorted((Path(zmq.__file__).parent.parent / "pyzmq.libs").glob("libzmq*.so*"))
    return [str(bundled[0]), f"-Wl,-rpath,{bundled[0].parent}"] if bundled else ["-lzmq"]


def repeated(load: OfferedLoad, program: Path | None, repeats: int, place: Place = USUAL) -> list[RunPair]:
    """Repeated runs of both, after one round that does not count.

    Noisy rounds are made again, as many as there are repeats at most; the quietest count.
    """
    runs_of(load, program, place)
    taken = [runs_of(load, program, place) for _ in range(repeats)]
    for _ in range(repeats):
        if not any(each.is_noisy for each in taken):
            break
        taken.append(runs_of(load, program, place))
        taken.remove(max(taken, key=lambda each: each.noise))
    return taken


def noisy(taken: list[RunPair]) -> str:
    """How many of the rounds stayed noisy, for a row's name."""
    count = sum(each.is_noisy for each in taken)
    return f" ({count} of {len(taken)} beside others' work)" * (count > 0)


def runs_of(load: OfferedLoad, program: Path | None, place: Place) -> RunPair:
    """A run of ours, then one of the reference. AssertionError where their answers differ."""
    both = RunPair(run(load, place), run_reference(load, program, place) if program else None)
    if both.reference and any(both.ours["counts"][name] != both.reference[name] for name in COUNTS):
        raise AssertionError(f"the reference's answers to {load} are not ours: {both}")
    return both


def run(load: OfferedLoad, place: Place = USUAL) -> Figures:
    """The run.json of one run."""
    words = ("--rate", load.rate, "--orders", load.orders, "--seed", SEED)
    return record_of("run", "--no-spark", *words, *place.words)


def run_reference(load: OfferedLoad, program: Path, place: Place) -> Figures:
    """What it prints, and the noise beside it."""
    command = [str(program), *map(str, (load.orders, load.rate, SEED, load.window, *place.cpus))]
    before = MachineTimes.now()
    with going_first(place.priority):
        finished = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_RUN_S, check=True)
    noise = noise_between(before, MachineTimes.now(), {os.getpid()})
    return {**json.loads(finished.stdout), "noise": noise.beside({})}
