"""latency: one message bounced back and forth, over ZeroMQ and over raw TCP beside it.

    here  ── a message ──▶  there        n times; PAIR to PAIR, or one plain TCP connection with a length before
    here  ◀── the same ──   there        each message; over AMQP through the broker both ways

One way is the time of all bounces over 2n, as ZeroMQ reckons it; percentiles are of single round trips.
"""

from __future__ import annotations

from collections.abc import Mapping

from messaging.answer import wrong_with_bounces
from messaging.benchmark import Asked, Benchmark, Cell, Column, Counts, Figures, Plot, Point, Published
from messaging.options import COUNT, sizes
from messaging.places import Places
from messaging.reckoning import bounce_figures
from messaging.roles import Role, Told

COUNTS = Counts(broker=5_000, brokerless=20_000, total_bytes=1 << 29)


def points(asked: Asked) -> list[Point]:
    return [{"size_bytes": size} for size in asked["sizes"]]


def roles(cell: Cell, places: Places) -> list[Role]:
    from messaging.bounce import Answer, Ask

    bounces, (listener, connector) = cell.count(COUNTS), places.pair(cell.size)
    return [
        Role("there", Answer(cell.size, bounces), (listener,)),
        Role("here", Ask(cell.size, bounces), (connector,), begins=True),
    ]


def judge(cell: Cell, told: Mapping[str, Told]) -> list[str]:
    return wrong_with_bounces(told["here"], told["there"], cell.count(COUNTS))


def figures(cell: Cell, told: Mapping[str, Told]) -> Figures:
    return bounce_figures(cell.size, told["here"])


BENCHMARK = Benchmark(
    name="latency",
    about="one message bounced, with raw TCP beside: one way by size",
    paper="ZeroMQ 0.2 tests (2007), latency",
    points=points,
    roles=roles,
    judge=judge,
    figures=figures,
    columns=(
        Column("one_way_mean_us", "one way us", with_interval=True),
        Column("round_trip_p50_us", "round trip p50", with_interval=True),
        Column("round_trip_p99_us", "p99"),
        Column("round_trip_max_us", "max"),
    ),
    plots=(
        Plot("Latency", "one_way_mean_us", "µs", caption="One way: all bounces over twice their number."),
        Plot(
            "Latency, linear", "one_way_mean_us", "µs", linear=True, caption="The same; the seed's lines are straight."
        ),
    ),
    published=(
        Published("one way, small messages, 10 GbE with I/OAT", "about 25 us"),
        Published("one way, under 4 KiB", "under 50 us"),
        Published("one way, 64 KiB", "0.3 ms"),
    ),
    options=(sizes("1B..64KiB"), COUNT),
    transports="zeromq,tcp",
    quick={"sizes": (1, 64, 4096, 65536)},
)
