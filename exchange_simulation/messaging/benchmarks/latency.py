"""latency: one message bounced back and forth, over ZeroMQ and over raw TCP beside it.

    here  ── a message ──▶  there        n times; PAIR to PAIR, or one plain TCP connection with a length before
    here  ◀── the same ──   there        each message; over AMQP through the broker both ways

One way is the time of all bounces divided by 2n, as ZeroMQ computes it; percentiles are of single round trips.
"""

from __future__ import annotations

from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Counts
from exchange_simulation.messaging.options import COUNT, sizes_option
from exchange_simulation.messaging.paced import askers_fell_behind
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.requests import PingPong

PING_PONG = PingPong("here", "there", Counts(broker=5_000, brokerless=20_000, total_bytes=1 << 29))


def _one_way(title: str, value: str, *, size: int) -> Published:
    return Published(
        f"one way, {title}", value, figure="one_way_mean_us", where={"size_bytes": size}, transport="zeromq"
    )


BENCHMARK = BenchmarkDefinition(
    about="one message bounced, with raw TCP beside: one way by size",
    paper="ZeroMQ 0.2 tests, latency",
    roles=PING_PONG.roles,
    judge=PING_PONG.judge,
    figures=PING_PONG.figures,
    flood_s=PING_PONG.counts.flood_s,
    takes_rate=True,
    saturation_reasons=askers_fell_behind,
    columns=(
        Column("one_way_mean_us", "one way us", with_interval=True),
        Column("round_trip_p50_us", "round trip p50", with_interval=True),
        Column("round_trip_p99_us", "p99"),
        Column("round_trip_max_us", "max"),
    ),
    plots=(
        Plot("Latency", "one_way_mean_us", "µs", caption="One way: all bounces over twice their number."),
        Plot(
            "Latency, linear", "one_way_mean_us", "µs", linear=True, caption="The same; the paper's lines are straight."
        ),
    ),
    published=(
        _one_way("small messages, 10 GbE with I/OAT, ours of 64 B: us", "about 25", size=64),
        _one_way("below 4 KiB, ours of 2 KiB: us", "below 50", size=2048),
        _one_way("64 KiB: us", "about 300", size=65536),
    ),
    options=(sizes_option("1B..64KiB"), COUNT),
    transports="zeromq,tcp",
    quick_values={"sizes": (1, 64, 4096, 65536)},
)
