"""AMQP over InfiniBand: the paper whose stock exchange this project is."""

from __future__ import annotations

from collections.abc import Iterator

from exchange_simulation.experiments.capacity.search import SearchSettings
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.point import LOCAL
from exchange_simulation.papers.capacity_part import CapacityPart
from exchange_simulation.papers.claims import LEAST_STRAIGHT, MOST_STRAIGHT, Claim
from exchange_simulation.papers.compared_part import ComparedPart
from exchange_simulation.papers.paper import Absent, BenchPart, ExchangePart, Paper, PaperItem
from exchange_simulation.papers.statistics import (
    Read,
    constant,
    figure_at,
    largest_metric,
    metric_of,
    ratio,
    straightness,
)

SMALL = 64
LARGE = 1 << 20
OF_PAIRS = 64 << 10
"""The size of the messages by which the bandwidth of pairs is told: a few of them fill a link of 1 Gbit/s."""
GIGE = "gige"
NETWORKS = "lines for its 1 GigE, emulated, and for loopback; its IPoIB and SDP take InfiniBand"
"""How the lines of a figure differ. `--quick` has loopback alone, which needs no network of namespaces."""
RATES_PER_S = (1000.0, 2000.0, 4000.0, 6000.0, 8000.0)
QUICK_RATES_PER_S = (1000.0, 2000.0, 6000.0, 8000.0)
OVER_AMQP = "--transport amqp --network gige,local"
ONE_SIZE = "not drawn, since it has one size alone"
EQUAL = 0.05
"""Two rates are equal if they are within this share of each other."""


def _by_network(name: str, title: str, further: str = "", *, quick: str = "") -> PaperItem:
    """An item with a line for each network; `further`: how it differs otherwise; `quick`: what `--quick` leaves out."""
    return PaperItem(name, title, f"{further}; {NETWORKS}" if further else NETWORKS, quick)


def _at(figure: str, *, size: int = SMALL, **point: int) -> Read:
    return figure_at(figure, size_bytes=size, **point)


def _of_pairs(pairs: int, network: str = LOCAL) -> Read:
    """Bandwidth of this many pairs in all, of messages that are large enough to fill a link."""
    return figure_at("megabytes_per_s", size_bytes=OF_PAIRS, pairs=pairs, network=network)


def _nagle_on_over_off(metric: str, orders_per_s: float, network: str = "") -> tuple[Read, Read]:
    return (
        metric_of(metric, orders_per_s, nagle=True, network=network),
        metric_of(metric, orders_per_s, nagle=False, network=network),
    )


def _completion_with_nagle() -> Iterator[Claim]:
    """Figure 8c: what Nagle's algorithm does to completion at low rates."""
    for orders_per_s in (1000.0, 2000.0):
        yield Claim(
            "5.3, figure 8c",
            f"Nagle's algorithm at the broker increases completion drastically at {orders_per_s:,.0f} orders/s.",
            ratio(
                f"mean from handing over at {orders_per_s:,.0f} orders/s with Nagle over without",
                "exchange",
                *_nagle_on_over_off("handed_over_mean_us", orders_per_s),
            ),
            at_least=2.0,
        )


def _packets_with_nagle() -> Iterator[Claim]:
    """Table 1, whose caption names IPoIB and TCP: what Nagle's algorithm does to packets."""
    for orders_per_s in (1000.0, 8000.0):
        for sentence, words, metric, rises in (
            ("Nagle's algorithm leaves fewer packets", "packets an order", "packets_per_order", False),
            ("Packets are larger on average with Nagle's algorithm", "mean bytes of a packet", "packet_bytes", True),
            (
                "The time between packets is longer with Nagle's algorithm",
                "mean gap between packets",
                "packet_gap_us",
                True,
            ),
        ):
            yield Claim(
                "table 1",
                f"{sentence}, at {orders_per_s:,.0f} orders/s.",
                ratio(
                    f"{words} at {orders_per_s:,.0f} orders/s with Nagle over without",
                    "exchange",
                    *_nagle_on_over_off(metric, orders_per_s),
                ),
                at_least=1.0 if rises else None,
                at_most=None if rises else 1.0,
            )


PARTS = (
    BenchPart(
        name="network-alone",
        benchmark="throughput",
        items=(
            PaperItem(
                "section 4.2", "bandwidth of the network alone", "one way; the paper's hosts sent and received at once"
            ),
            PaperItem(
                "figure 3d",
                "message rate of MPI over IPoIB and RDMA",
                "sockets alone stand in for MPI over IPoIB; nothing here for RDMA, which takes InfiniBand",
            ),
        ),
        published=(
            Published(
                "MB/s of the network alone at 1 MiB, IPoIB, both ways through one host",
                "550",
                figure="megabytes_per_s",
                where={"size_bytes": LARGE},
            ),
            Published("the same, SDP", "650", figure="megabytes_per_s", where={"size_bytes": LARGE}),
        ),
        full="--transport tcp --sizes 1B..1MiB",
        quick="--transport tcp --sizes 1MiB --count 2000",
    ),
    BenchPart(
        name="de-spsc",
        benchmark="de-spsc",
        items=(_by_network("figures 3a to 3c", "speed and messages/s by size"),),
        full=f"{OVER_AMQP} --sizes 1B..1MiB",
        quick="--transport amqp --sizes 64,16KiB,1MiB",
    ),
    BenchPart(
        name="de-mpmc",
        benchmark="de-mpmc",
        items=(
            _by_network("figure 4a", "bandwidth of 1 to 8 pairs"),
            PaperItem("figure 4b", "CPU of broker, publishers and consumers by pairs"),
        ),
        full=f"{OVER_AMQP} --pairs 1,2,4,8 --sizes 1B..1MiB",
        quick="--transport amqp --pairs 1,4,8 --sizes 64KiB --count 2000",
    ),
    BenchPart(
        name="several-brokers",
        benchmark="de-mpmc",
        items=(
            PaperItem(
                "section 7",
                "a distributed broker in place of one",
                "a wish of the paper: private brokers that share nothing, each with its part of the pairs",
            ),
        ),
        in_words={"messages_per_s": "messages/s"},
        full=f"{OVER_AMQP} --pairs 4 --brokers 1,2,4 --sizes 64,16KiB",
        quick="--transport amqp --pairs 4 --brokers 1,2 --sizes 64 --count 10000",
    ),
    BenchPart(
        name="de-pp",
        benchmark="de-pp",
        items=(_by_network("figures 4c, 4d", "latency of small and of large messages"),),
        full=f"{OVER_AMQP} --sizes 1B..1MiB",
        quick="--transport amqp --sizes 64,16KiB,1MiB",
    ),
    BenchPart(
        name="fe-spmc",
        benchmark="fe-spmc",
        items=(
            _by_network("figure 5a", "bandwidth by size, 32 consumers", quick=ONE_SIZE),
            _by_network("figures 5b to 5d", "messages/s by number of consumers"),
        ),
        full=f"{OVER_AMQP} --consumers 1,2,4,8,16,32 --sizes 1B..1MiB",
        quick="--transport amqp --consumers 1,8,32 --sizes 64 --count 5000",
    ),
    BenchPart(
        name="te-spsc",
        benchmark="te-spsc",
        items=(
            _by_network("figure 6a", "bandwidth by size, 1,024 patterns", quick=ONE_SIZE),
            _by_network(
                "figures 6b to 6d",
                "messages/s by number of patterns",
                quick="one consumer of all queues, where the paper and the full form have one for each",
            ),
        ),
        full=f"{OVER_AMQP} --consumers each --patterns 1,4,16,64,256,1024 --sizes 1B..1MiB",
        quick="--transport amqp --patterns 1,32,1024 --sizes 64",
    ),
    ExchangePart(
        name="exchange",
        items=(
            PaperItem(
                "section 5.2",
                "weighted average size of the exchange's messages",
                "of orders and answers, without samples",
            ),
            _by_network(
                "figure 8a",
                "rates of orders and of answers",
                "of whole runs, a line each; the means of the sampled meters as rings",
                quick="4,000 orders/s are left out here and below",
            ),
            _by_network(
                "figures 8b, 8c",
                "completion time without and with Nagle's algorithm",
                "of all orders; the mean of the sampled ones as rings",
            ),
            _by_network(
                "figures 9a to 9c", "CPU of broker, gateway and engine", "in % of one core; the paper gives no unit"
            ),
            PaperItem(
                "table 1",
                "packets with and without Nagle's algorithm",
                "of the connections of gateway and engine, with pure acknowledgements, and bytes of payload; the paper "
                "captured all traffic of the broker",
            ),
        ),
        orders_per_s=RATES_PER_S,
        quick_orders_per_s=QUICK_RATES_PER_S,
        full_orders=1_000_000,
        full_sampling_interval=10_000,
        full_networks=("gige", "local"),
        quick_seconds=0.8,
        quick_sampling_interval=100,
    ),
    CapacityPart(
        name="beyond-8000",
        items=(
            PaperItem(
                "section 5.2, beyond 8,000",
                "the rate beyond which the exchange fails",
                "a failed run lost messages or did not keep its rate; the paper's did not record a full set of figures",
                quick="probes of half a second",
            ),
        ),
        transport="amqp",
        policy="exact-price",
        papers_rate="8,000",
        full_search=SearchSettings(start_per_s=8000.0),
        quick_search=SearchSettings(start_per_s=8000.0, seconds=0.5, most_probes=10),
    ),
    ComparedPart(
        name="over-zeromq",
        items=(
            PaperItem(
                "section 6",
                "the exchange over ZeroMQ, beside AMQP",
                "the paper cites figures of ZeroMQ's own measurement, on other hosts and other networks",
            ),
        ),
        transports=("amqp", "zeromq"),
        orders_per_s=8000.0,
        full_seconds=10.0,
        quick_seconds=0.8,
        policy="exact-price",
    ),
)

CLAIMS = (
    Claim(
        "1",
        "Over IPoIB one publisher and one consumer reach 350 MB/s through the direct exchange.",
        ratio("MB/s of 1 MiB over the paper's 350", "de-spsc", _at("megabytes_per_s", size=LARGE), constant(350.0)),
        at_least=1.0,
        of_hardware=True,
    ),
    Claim(
        "4.3.2, figure 4a",
        "Over IPoIB up to four pairs keep the bandwidth of one pair.",
        ratio("MB/s in all of 4 pairs over 1, 64 KiB", "de-mpmc", _of_pairs(4), _of_pairs(1)),
        at_least=1 - EQUAL,
        of_hardware=True,
    ),
    Claim(
        "4.3.2, figure 4a",
        "Over IPoIB eight pairs have less bandwidth than four.",
        ratio("MB/s in all of 8 pairs over 4, 64 KiB", "de-mpmc", _of_pairs(8), _of_pairs(4)),
        at_most=1.0,
        of_hardware=True,
    ),
    Claim(
        "4.3.2, figure 4a",
        "Over 1 GigE one pair fills the link, so more pairs change nothing.",
        ratio("MB/s in all of 8 pairs over 1, 64 KiB", "de-mpmc", _of_pairs(8, GIGE), _of_pairs(1, GIGE)),
        at_least=0.9,
        at_most=1.1,
        network=GIGE,
    ),
    Claim(
        "4.3.2, figure 4b",
        "The broker's CPU rises with the number of pairs, on eight cores.",
        ratio(
            "cores of the broker with 8 pairs over 1",
            "de-mpmc",
            _at("broker_cores", size=OF_PAIRS, pairs=8),
            _at("broker_cores", size=OF_PAIRS, pairs=1),
        ),
        at_least=4.0,
        of_hardware=True,
    ),
    Claim(
        "4.3.2, figure 4b",
        "The broker's CPU rises linearly with the number of pairs.",
        straightness(
            "cores of the broker with 4 pairs over the line from those with 1 to those with 8",
            "de-mpmc",
            "broker_cores",
            "pairs",
            (1, 4, 8),
            size_bytes=OF_PAIRS,
        ),
        at_least=LEAST_STRAIGHT,
        at_most=MOST_STRAIGHT,
        of_hardware=True,
    ),
    Claim(
        "7",
        "A distributed broker relieves the bottleneck of a central one.",
        ratio(
            "messages/s of 4 pairs at 2 brokers over 1",
            "several-brokers",
            _at("messages_per_s", brokers=2),
            _at("messages_per_s", brokers=1),
        ),
        at_least=1.0,
    ),
    Claim(
        "1, figures 5b to 5d",
        "With more consumers a fanout exchange takes fewer messages a second.",
        ratio(
            "messages/s published to 32 consumers over 1",
            "fe-spmc",
            _at("published_per_s", consumers=32),
            _at("published_per_s", consumers=1),
        ),
        at_most=1.0,
    ),
    Claim(
        "4.3.4",
        "The broker's CPU rises with the number of a fanout exchange's consumers.",
        ratio(
            "cores of the broker with 32 consumers over 1",
            "fe-spmc",
            _at("broker_cores", consumers=32),
            _at("broker_cores", consumers=1),
        ),
        at_least=1.0,
        of_hardware=True,
    ),
    Claim(
        "1, 4.3.5, figures 6b to 6d",
        "The rate of a topic exchange falls as bindings are added.",
        ratio(
            "messages/s with 1,024 patterns over 1",
            "te-spsc",
            _at("messages_per_s", patterns=1024),
            _at("messages_per_s", patterns=1),
        ),
        at_most=1.0,
    ),
    Claim(
        "5.3, figure 8a",
        "The engine reads orders as fast as the gateway makes them, up to 8,000/s.",
        ratio(
            "orders/s that the engine read over those that the gateway sent, of the sampled meters, at 8,000",
            "exchange",
            metric_of("sampled_orders_received_per_s", 8000.0, nagle=False),
            metric_of("sampled_orders_sent_per_s", 8000.0, nagle=False),
        ),
        at_least=1 - EQUAL,
        at_most=1 + EQUAL,
    ),
    Claim(
        "5.3, figure 8a",
        "The gateway reads confirmations and quotes as fast as the engine makes them.",
        ratio(
            "messages/s that the gateway read over those that the engine sent, of the sampled meters, at 8,000",
            "exchange",
            metric_of("sampled_messages_received_per_s", 8000.0, nagle=False),
            metric_of("sampled_messages_sent_per_s", 8000.0, nagle=False),
        ),
        at_least=1 - EQUAL,
        at_most=1 + EQUAL,
    ),
    Claim(
        "5.2",
        "The weighted average size of a message is around 9 bytes.",
        ratio(
            "mean bytes of a message over 9",
            "exchange",
            metric_of("mean_message_bytes", 8000.0, nagle=False),
            constant(9.0),
        ),
        at_least=0.9,
        at_most=1.1,
    ),
    Claim(
        "5.3, figure 8b",
        "Over IPoIB completion rises drastically at 8,000 orders/s.",
        ratio(
            "mean from handing over at 8,000 orders/s over 6,000",
            "exchange",
            metric_of("handed_over_mean_us", 8000.0, nagle=False),
            metric_of("handed_over_mean_us", 6000.0, nagle=False),
        ),
        at_least=2.0,
        of_hardware=True,
    ),
    Claim(
        "5.3, figure 9",
        "Over IPoIB no component ever uses more than 35 %.",
        ratio(
            "% of a core of the busiest component at any rate over 35",
            "exchange",
            largest_metric(("broker_cpu_percent", "gateway_cpu_percent", "engine_cpu_percent"), nagle=False),
            constant(35.0),
        ),
        at_most=1.0,
        of_hardware=True,
    ),
    Claim(
        "5.3, figure 8c",
        "Over IPoIB Nagle's algorithm at the broker shortens completion at 8,000 orders/s.",
        ratio(
            "mean from handing over at 8,000 orders/s with Nagle over without",
            "exchange",
            *_nagle_on_over_off("handed_over_mean_us", 8000.0),
        ),
        at_most=1.0,
        of_hardware=True,
    ),
    Claim(
        "7",
        "Over 1 GigE Nagle's algorithm slightly worsens completion at 8,000 orders/s.",
        ratio(
            "mean from handing over at 8,000 orders/s with Nagle over without",
            "exchange",
            *_nagle_on_over_off("handed_over_mean_us", 8000.0, GIGE),
        ),
        at_least=1.0,
        at_most=1.5,
        network=GIGE,
    ),
    *_completion_with_nagle(),
    Claim(
        "5.3",
        "Nagle's algorithm does not change the number of messages of the application.",
        ratio(
            "answers/s at 8,000 orders/s with Nagle over without",
            "exchange",
            *_nagle_on_over_off("answers_per_s", 8000.0),
        ),
        at_least=0.99,
        at_most=1.01,
    ),
    *_packets_with_nagle(),
    Claim(
        "6",
        "The exchange over ZeroMQ has higher performance than over AMQP: its orders complete sooner.",
        ratio(
            "mean from handing over at 8,000 orders/s over zeromq over that over amqp",
            "over-zeromq",
            metric_of("handed_over_mean_us", 8000.0, nagle=False, transport="zeromq"),
            metric_of("handed_over_mean_us", 8000.0, nagle=False, transport="amqp"),
        ),
        at_most=1.0,
    ),
)

PAPER = Paper(
    name="amqp",
    title="Subramoni, Marsh, Narravula, Lai and Panda: AMQP over InfiniBand, and a stock exchange",
    citation=(
        "Hari Subramoni, Gregory Marsh, Sundeep Narravula, Ping Lai, Dhabaleswar K. Panda: Design and Evaluation of "
        "Benchmarks for Financial Applications using Advanced Message Queuing Protocol (AMQP) over InfiniBand. "
        "Workshop on High Performance Computational Finance, 2008. doi:10.1109/WHPCF.2008.4745404"
    ),
    contents=(
        *PARTS,
        Absent(
            PaperItem("figures 1, 2, 7", "drawings of broker, hosts and application"), "nothing is measured in them"
        ),
        Absent(
            PaperItem("figures 3 to 6, 8, 9", "curves over IPoIB and SDP, and what the text says of them"),
            "they take InfiniBand: that SDP is the best, IPoIB better than 1 GigE, RDMA ten times IPoIB",
        ),
    ),
    claims=CLAIMS,
    open_questions=(
        "Figure 9 has no unit: % of one core is our reading, since 4.3.2 expects more than 100 % on eight cores.",
        "Table 1's caption names IPoIB and TCP, and the table has one set of rows.",
        "Sentences over IPoIB are tested on loopback, those over 1 GigE on the emulated one, which --quick leaves out.",
        "The paper's orders match at an exact price; elsewhere in this project price and time is the default.",
        "The heading of 4.3.4 and section 7 say FE-SPSC where FE-SPMC is meant.",
        "The publisher's clock runs until the replies have come, as in the paper; the receivers' rates stand beside.",
    ),
)
