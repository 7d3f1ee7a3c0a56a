"""DE-PP: direct exchange, ping-pong.

    publisher  ── a message ──▶  [direct exchange ▸ queue]  ──▶  consumer
    publisher  ◀── [queue ◂ direct exchange]  ◀── a reply of the same size ──  consumer

Brokerless: PAIR to PAIR, one connection. The round trip ends with the reply, by the publisher's clock.
"""

from __future__ import annotations

from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Counts
from exchange_simulation.messaging.options import COUNT, SIZES
from exchange_simulation.messaging.paced import askers_fell_behind
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.requests import PingPong

PING_PONG = PingPong("publisher", "consumer", Counts(broker=2_000, brokerless=10_000, total_bytes=1 << 27))

BENCHMARK = BenchmarkDefinition(
    about="one message at a time through a direct exchange, and a reply of its size: round trip by size",
    paper="AMQP over InfiniBand, 3.3 and figures 4c, 4d",
    roles=PING_PONG.roles,
    judge=PING_PONG.judge,
    figures=PING_PONG.figures,
    flood_s=PING_PONG.counts.flood_s,
    takes_rate=True,
    saturation_reasons=askers_fell_behind,
    columns=(
        Column("round_trip_p50_us", "round trip us", with_interval=True),
        Column("round_trip_p99_us", "p99 us"),
        Column("round_trip_max_us", "max us"),
        Column("one_way_mean_us", "one way us", with_interval=True),
    ),
    plots=(
        Plot("Ping-pong latency, half of a round trip (figures 4c, 4d)", "one_way_mean_us", "µs", caption="Means."),
        Plot("Round trip, p50", "round_trip_p50_us", "µs"),
        Plot("Round trip, p99", "round_trip_p99_us", "µs"),
    ),
    options=(SIZES, COUNT),
    quick_values={"sizes": (1, 256, 4096, 65536, 1 << 20)},
)
