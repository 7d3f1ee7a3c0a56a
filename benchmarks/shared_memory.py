"""Shared memory: how little the harness itself takes, when the transport costs next to nothing.

    gateway ══ two rings in shared memory ══ engine, with `pace=spin`: both ends stay awake

The first row is the floor of every transport's p50 from handing over. It is a limit, since there is nothing below it to
compare with. The second row runs the exchange flat out, in turns with ZeroMQ. Gateway and engine have a processor each
where there are two.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.comparison import BenchmarkRow, Limit, in_turns, record_of
from benchmarks.exchange import FAST, FLAT_OUT, SEED, OfferedLoad, best_place

SPINNING = "shm?pace=spin"


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure p50 from handing over, and compare the rate flat out with ZeroMQ's."""
    p50s, _ = in_turns(p50_us, None, repeats)
    yield Limit(
        title=f"{SPINNING}, p50 from handing over at {FAST.in_words}", unit="us", ours=p50s, required=5, hoped_for=1
    )
    ours, zeromq = in_turns(partial(orders_per_s, SPINNING), partial(orders_per_s, "zeromq"), repeats)
    yield BenchmarkRow(f"{SPINNING}, flat out", "zeromq", "orders/s", ours, zeromq, required=3, hoped_for=6)
    ours, zeromq = in_turns(partial(orders_per_s, "shm"), partial(orders_per_s, "zeromq"), repeats)
    yield BenchmarkRow("shm, flat out", "zeromq", "orders/s", ours, zeromq)


def p50_us() -> float:
    """Run at a fixed rate, with a gateway that stays awake too; returns p50 from handing over, in us."""
    record = record_of(*run_words(SPINNING, FAST), "--pace", "spin:100")
    return float(record["completion_us"]["handed_over"]["p50"])


def orders_per_s(transport: str) -> float:
    """Run flat out over a transport; returns the orders answered in a second."""
    return float(record_of(*run_words(transport, FLAT_OUT))["rates"]["orders_per_s"])


def run_words(transport: str, load: OfferedLoad) -> tuple[object, ...]:
    """Return the words of the `exchange` command for a run over a transport, in the best place that is permitted."""
    words = ("run", "--no-spark", "--no-page", "--transport", transport, "--rate", load.rate, "--orders", load.orders)
    return *words, "--seed", SEED, *best_place().options
