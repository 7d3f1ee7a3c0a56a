"""latency: one message bounced back and forth, over ZeroMQ and over raw TCP beside it.

    here  ── a message ──▶  there        n times; PAIR to PAIR, or one plain TCP connection with a length before
    here  ◀── the same ──   there        each message; over AMQP through the broker both ways

One way is the time of all bounces divided by 2n, as ZeroMQ computes it; percentiles are of single round trips.
"""

from __future__ import annotations

from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Counts
from exchange_simulation.messaging.options import COUNT, sizes
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.requests import PingPong

PING_PONG = PingPong("here", "there", Counts(broker=5_000, brokerless=20_000, total_bytes=1 << 29))

BENCHMARK = BenchmarkDefinition(
    about="one message bounced, with raw TCP beside: one way by size",
    paper="ZeroMQ 0.2 tests, latency",
    roles=PING_PONG.roles,
    judge=PING_PONG.judge,
    figures=PING_PONG.figures,
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
    quick_values={"sizes": (1, 64, 4096, 65536)},
)
