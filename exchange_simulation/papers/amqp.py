"""AMQP over InfiniBand: the paper whose stock exchange this project is."""

from __future__ import annotations

from collections.abc import Iterator

from exchange_simulation.experiments.capacity.search import SearchSettings
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.point import LOCAL
from exchange_simulation.papers.capacity_part import CapacityPart
from exchange_simulation.papers.claims import LEAST_STRAIGHT, MOST_STRAIGHT, Claim, Statistic
from exchange_simulation.papers.compared_part import ComparedPart
from exchange_simulation.papers.paper import Absent, BenchPart, ExchangePart, Paper, PaperItem
from exchange_simulation.papers.statistics import (
    Read,
    constant,
    figure_at,
    figure_of,
    largest,
    largest_metric,
    metric_of,
    quotient,
    ratio,
    straightness,
)
from exchange_simulation.reports.comparison.paper_values import TABLE_1

SMALL = 64
PAIRS_MESSAGE_BYTES = 64 << 10
"""Messages of this size show the bandwidth of pairs: a few of them fill a link of 1 Gbit/s."""
GIGE = "gige"
IPOIB = LOCAL
"""Loopback stands for IPoIB."""
NETWORKS = "gige is its 1 GigE, emulated, and local is loopback; its lines over InfiniBand cannot be had"
"""How the lines of a figure differ. `--quick` has loopback alone, which needs no network of namespaces."""
RATES_PER_S = (1000.0, 2000.0, 4000.0, 6000.0, 8000.0)
QUICK_RATES_PER_S = (1000.0, 2000.0, 6000.0, 8000.0)
OVER_AMQP = "--transport amqp --network gige,local"
ONE_SIZE = "not drawn, since it has one size alone"
COMPLETION = "mean from handing over"
"""What is divided in sentences on completion."""
EQUAL = 0.05
"""Two rates are equal if they are within this share of each other."""
COMPARABLE = 1.25
"""Two rates are comparable if neither is above this many times the other."""
DRASTICALLY = 2.0
"""A figure rises drastically if it rises to this many times, and drops drastically if it drops to one of as many."""
GIGE_MB_PER_S = 125.0 * 1448 / 1538
"""What a link of 1 Gbit/s carries of messages: 1,448 bytes in each TCP segment, whose frame takes 1,538 on the link."""


def _by_network(name: str, title: str, further: str = "", *, quick: str = "") -> PaperItem:
    """An item with a line for each network; `further`: how it differs otherwise; `quick`: what `--quick` leaves out."""
    return PaperItem(name, title, f"{further}; {NETWORKS}" if further else NETWORKS, quick)


def _at(figure: str, *, size: int = SMALL, **point: int) -> Read:
    return figure_at(figure, size_bytes=size, **point)


def _rate_with_consumers(consumers: int, network: str = "") -> Read:
    return figure_at("published_per_s", size_bytes=SMALL, consumers=consumers, network=network)


def _rate_with_patterns(patterns: int, network: str = "") -> Read:
    return figure_at("messages_per_s", size_bytes=SMALL, patterns=patterns, network=network)


def _bandwidth_of_pairs(pairs: int, network: str = "") -> Read:
    """Bandwidth of this many pairs in all, of messages that are large enough to fill a link."""
    return figure_at("megabytes_per_s", size_bytes=PAIRS_MESSAGE_BYTES, pairs=pairs, network=network)


def _on_over_off(metric: str, orders_per_s: float, network: str = "") -> Read:
    """The metric with Nagle's algorithm at the broker over that without, at one rate."""
    return quotient(
        metric_of(metric, orders_per_s, nagle=True, network=network),
        metric_of(metric, orders_per_s, nagle=False, network=network),
    )


def _nagle_on_over_off(words: str, metric: str, orders_per_s: float, network: str = "") -> Statistic:
    """The statistic of `_on_over_off`; `words` name the metric."""
    words = f"{words} at {orders_per_s:,.0f} orders/s with Nagle over without"
    if network:
        words += f", on {'loopback' if network == LOCAL else network}"
    return figure_of(words, "exchange", _on_over_off(metric, orders_per_s, network))


def _completion_with_nagle() -> Iterator[Claim]:
    """Figure 8c: what Nagle's algorithm does to completion at low rates."""
    for orders_per_s in (1000.0, 2000.0):
        yield Claim(
            "5.3, figure 8c",
            f"Nagle's algorithm at the broker increases completion drastically at {orders_per_s:,.0f} orders/s.",
            _nagle_on_over_off(COMPLETION, "handed_over_mean_us", orders_per_s),
            at_least=DRASTICALLY,
        )


def _exchanges_over_gige() -> Iterator[Claim]:
    """Figures 5c and 6c, and section 7: fanout and topic exchanges over 1 GigE, alone and beside IPoIB."""
    for name, part, unit, numbers, read, figure in (
        ("fanout", "fe-spmc", "consumers", (32, 1), _rate_with_consumers, "figure 5c"),
        ("topic", "te-spsc", "patterns", (1024, 1), _rate_with_patterns, "figure 6c"),
    ):
        many, one = numbers
        yield Claim(
            f"1, {figure}",
            f"Over 1 GigE, too, the rate of a {name} exchange falls as {unit} are added.",
            ratio(
                f"messages/s with {many:,} {unit} over {one}, 64 B, on gige", part, read(many, GIGE), read(one, GIGE)
            ),
            at_most=1.0,
            network=GIGE,
        )
        yield Claim(
            "7",
            f"Through a {name} exchange IPoIB is comparable to 1 GigE (here: messages/s of 64 B).",
            ratio(
                f"messages/s with {many:,} {unit}, 64 B, loopback's over gige's",
                part,
                read(many, IPOIB),
                read(many, GIGE),
            ),
            at_least=1 / COMPARABLE,
            at_most=COMPARABLE,
            of_hardware=True,
            network=GIGE,
        )


def _packets_with_nagle() -> Iterator[Claim]:
    """Table 1, whose caption names IPoIB and TCP: what Nagle's algorithm does to packets.

    Its third column, the time between packets, is at each rate the time of an order over its packets.
    """
    off, on = ({row.orders_per_s: row for row in TABLE_1 if row.nagle == nagle} for nagle in ("off", "on"))
    for orders_per_s in (1000, 8000):
        at_rate = f"at {orders_per_s:,} orders/s"
        papers_packets = on[orders_per_s].packets / off[orders_per_s].packets
        yield Claim(
            "table 1",
            f"Nagle's algorithm leaves fewer packets, {at_rate} (the paper's ratio: {papers_packets:.2f}).",
            _nagle_on_over_off("packets an order", "packets_per_order", orders_per_s),
            at_most=1 - EQUAL,
        )
        papers_bytes = on[orders_per_s].mean_bytes / off[orders_per_s].mean_bytes
        yield Claim(
            "table 1",
            f"Packets are larger on average with Nagle's algorithm, {at_rate} (the paper's ratio: {papers_bytes:.2f}).",
            _nagle_on_over_off("mean bytes of a packet", "packet_bytes", orders_per_s),
            at_least=1 + EQUAL,
        )


def _nagle_by_rate() -> Claim:
    """What the paper says of Nagle's algorithm in its summary and its conclusion."""
    return Claim(
        "1, 5.3, 7",
        "Nagle's algorithm is of more use at high rates than at low ones.",
        ratio(
            "mean from handing over with Nagle over without, at 1,000 orders/s over 8,000",
            "exchange",
            _on_over_off("handed_over_mean_us", 1000.0),
            _on_over_off("handed_over_mean_us", 8000.0),
        ),
        at_least=1.0,
    )


PARTS = (
    BenchPart(
        name="network-alone",
        benchmark="throughput",
        items=(
            PaperItem(
                "section 4.2",
                "bandwidth of the network alone",
                "one way, by sockets of a program that checks each message, which shows at some sizes; the paper's "
                "hosts sent and received at once",
                is_on_loopback_if_quick=True,
            ),
            PaperItem(
                "figure 3d",
                "message rate of MPI over IPoIB and RDMA",
                "sockets alone stand in for MPI over IPoIB; nothing here for RDMA, which takes InfiniBand",
            ),
        ),
        published=(
            Published(
                "maximum bandwidth of the network alone, MB/s, IPoIB, both ways through one host; ours one way, of the "
                "best size",
                "550",
                figure="megabytes_per_s",
                is_peak=True,
            ),
            Published("the same, SDP", "650", figure="megabytes_per_s", is_peak=True),
        ),
        full="--transport tcp --network gige,local --sizes 1B..1MiB",
        quick="--transport tcp --sizes 1MiB --count 2000",
    ),
    BenchPart(
        name="de-spsc",
        benchmark="de-spsc",
        items=(
            _by_network(
                "figures 3a to 3c",
                "speed and messages/s by size",
                "speed is the mean time from a message's making to its arrival, most of it in queues",
            ),
        ),
        full=f"{OVER_AMQP} --sizes 1B..1MiB",
        quick="--transport amqp --sizes 64,16KiB,1MiB",
    ),
    BenchPart(
        name="de-mpmc",
        benchmark="de-mpmc",
        items=(
            _by_network("figure 4a", "bandwidth of 1 to 8 pairs"),
            PaperItem(
                "figure 4b",
                "CPU of broker, publishers and consumers by pairs",
                "in cores; the paper's is normalized, to what it does not say, and over IPoIB alone",
            ),
        ),
        full=f"{OVER_AMQP} --pairs 1,2,4,8 --sizes 1B..1MiB",
        quick="--transport amqp --pairs 1,4,8 --sizes 64,64KiB --count 2000",
    ),
    BenchPart(
        name="several-brokers",
        benchmark="de-mpmc",
        items=(
            PaperItem(
                "section 7",
                "a distributed broker in place of one",
                "a wish of the paper: private brokers that share nothing, each with its part of the pairs; where one "
                "broker and its clients keep all processors busy, another has nothing to add",
            ),
        ),
        not_in_print={"messages_per_s": "messages/s"},
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
            _by_network("figure 5a", "bandwidth by size, to all of 32 consumers", quick=ONE_SIZE),
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
                "RabbitMQ keeps patterns in a tree, and does not try one after another. Each pattern's consumer shares "
                "the broker's host, and 1,023 of 1,024 only wake for their turn, which takes processors as well",
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
                "of orders and answers, without the two kinds of samples; our sizes are 10, 9, 5 and 5 bytes, so "
                "their mix is what is measured",
            ),
            _by_network(
                "figure 8a",
                "rates of orders and of answers",
                "of whole runs, a line each; the means of the sampled meters as rings",
                quick="4,000 orders/s are left out here and below; a run has 0.8 s of orders, 800 to 6,400, of which "
                "one in 100 is sampled, where the paper has 1,000,000 and one in 10,000. That many reports delay some "
                "orders",
            ),
            _by_network(
                "figures 8b, 8c",
                "completion time without and with Nagle's algorithm",
                "of all orders; the mean of the sampled ones as rings",
            ),
            _by_network(
                "figures 9a to 9c",
                "CPU of broker, gateway and engine",
                "in % of one core; the paper does not say of what",
            ),
            PaperItem(
                "table 1",
                "packets with and without Nagle's algorithm",
                "of the connections of gateway and engine, as their systems count them, with pure acknowledgements, "
                "and bytes of payload; the paper captured all traffic of the broker. On loopback a packet carries up "
                "to 64 KiB, and with Nagle's algorithm an answer waits until the next order brings the acknowledgement",
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
                "the rate at which half of the probes fail, each of 2 s: they lose messages, or their unanswered "
                "orders grow; the paper's runs took 125 s at 8,000, and failed ones did not record a full set of "
                "figures",
                quick="probes of half a second each",
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
                "the paper prints no figure: it says that ZeroMQ's own measurement, with two network cards in each "
                "host and direct cables, had higher ones",
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
        "Over IPoIB a basic direct exchange reaches 350 MB/s (here: one publisher and one consumer).",
        ratio(
            "largest MB/s of any size over the paper's 350, on loopback",
            "de-spsc",
            largest("megabytes_per_s", network=IPOIB),
            constant(350.0),
        ),
        at_least=1.0,
        of_hardware=True,
    ),
    Claim(
        "4.3.2, figure 4a",
        "Over IPoIB up to four pairs keep the bandwidth of one pair.",
        ratio(
            "MB/s in all of 4 pairs over 1, 64 KiB, on loopback",
            "de-mpmc",
            _bandwidth_of_pairs(4, IPOIB),
            _bandwidth_of_pairs(1, IPOIB),
        ),
        at_least=1 - EQUAL,
        of_hardware=True,
    ),
    Claim(
        "4.3.2, figure 4a",
        "Over IPoIB bandwidth drops drastically from four pairs to eight.",
        ratio(
            "MB/s in all of 8 pairs over 4, 64 KiB, on loopback",
            "de-mpmc",
            _bandwidth_of_pairs(8, IPOIB),
            _bandwidth_of_pairs(4, IPOIB),
        ),
        at_most=1 / DRASTICALLY,
        of_hardware=True,
    ),
    Claim(
        "4.3.2, figure 4a",
        "Over 1 GigE one pair fills the link.",
        ratio(
            "MB/s of 1 pair over 117.7, 64 KiB, on gige",
            "de-mpmc",
            _bandwidth_of_pairs(1, GIGE),
            constant(GIGE_MB_PER_S),
        ),
        at_least=0.9,
        network=GIGE,
    ),
    Claim(
        "4.3.2, figure 4a",
        "Over 1 GigE more pairs change nothing.",
        ratio(
            "MB/s in all of 8 pairs over 1, 64 KiB, on gige",
            "de-mpmc",
            _bandwidth_of_pairs(8, GIGE),
            _bandwidth_of_pairs(1, GIGE),
        ),
        at_least=1 - EQUAL,
        at_most=1 + EQUAL,
        network=GIGE,
    ),
    Claim(
        "1",
        "With more consumers a direct exchange takes fewer messages a second.",
        ratio(
            "messages/s in all of 8 pairs over 1, 64 B",
            "de-mpmc",
            _at("messages_per_s", pairs=8),
            _at("messages_per_s", pairs=1),
        ),
        at_most=1.0,
    ),
    Claim(
        "7",
        "Through a direct exchange more publishers and consumers have less performance (here: bandwidth).",
        ratio("MB/s in all of 8 pairs over 1, 64 KiB", "de-mpmc", _bandwidth_of_pairs(8), _bandwidth_of_pairs(1)),
        at_most=1.0,
    ),
    Claim(
        "4.3.2, figure 4b",
        "The broker's CPU rises with the number of pairs.",
        ratio(
            "cores of the broker with 8 pairs over 1, 64 KiB",
            "de-mpmc",
            _at("broker_cores", size=PAIRS_MESSAGE_BYTES, pairs=8),
            _at("broker_cores", size=PAIRS_MESSAGE_BYTES, pairs=1),
        ),
        at_least=1.0,
        of_hardware=True,
    ),
    Claim(
        "4.3.2, figure 4b",
        "The broker's CPU follows a straight line with the number of pairs (a flat one would, too).",
        straightness(
            "cores of the broker with 4 pairs over the line from those with 1 to those with 8, 64 KiB",
            "de-mpmc",
            "broker_cores",
            "pairs",
            (1, 4, 8),
            size_bytes=PAIRS_MESSAGE_BYTES,
        ),
        at_least=LEAST_STRAIGHT,
        at_most=MOST_STRAIGHT,
        of_hardware=True,
    ),
    Claim(
        "1, 4.3.2, 7",
        "A distributed broker, which the paper wishes for, relieves the bottleneck of a central one.",
        ratio(
            "messages/s of 4 pairs at 2 brokers over 1, 64 B",
            "several-brokers",
            _at("messages_per_s", brokers=2),
            _at("messages_per_s", brokers=1),
        ),
        at_least=1.0,
        of_hardware=True,
    ),
    Claim(
        "1, figures 5b to 5d",
        "With more consumers a fanout exchange takes fewer messages a second.",
        ratio(
            "messages/s published to 32 consumers over 1, 64 B",
            "fe-spmc",
            _rate_with_consumers(32),
            _rate_with_consumers(1),
        ),
        at_most=1.0,
    ),
    Claim(
        "4.3.4",
        "The broker's CPU rises with the number of a fanout exchange's consumers, as it does with pairs.",
        ratio(
            "cores of the broker with 32 consumers over 1, 64 B",
            "fe-spmc",
            _at("broker_cores", consumers=32),
            _at("broker_cores", consumers=1),
        ),
        at_least=1.0,
        of_hardware=True,
    ),
    Claim(
        "4.3.5, figures 6b to 6d",
        "The rate of a topic exchange falls as bindings are added.",
        ratio(
            "messages/s with 1,024 patterns over 1, 64 B",
            "te-spsc",
            _rate_with_patterns(1024),
            _rate_with_patterns(1),
        ),
        at_most=1.0,
    ),
    *_exchanges_over_gige(),
    Claim(
        "5.3, figure 8a",
        "The engine reads orders as fast as the gateway makes them, in the samples, up to 8,000/s.",
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
        "The gateway reads confirmations and quotes as fast as the engine makes them, in the samples, up to 8,000/s.",
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
            "mean from handing over at 8,000 orders/s over 6,000, on loopback",
            "exchange",
            metric_of("handed_over_mean_us", 8000.0, nagle=False, network=IPOIB),
            metric_of("handed_over_mean_us", 6000.0, nagle=False, network=IPOIB),
        ),
        at_least=DRASTICALLY,
        of_hardware=True,
    ),
    Claim(
        "5.3, figure 9",
        "Over IPoIB no component ever uses more than 35 % (here: of one core).",
        ratio(
            "% of a core of the busiest component at any rate over 35, on loopback",
            "exchange",
            largest_metric(
                ("broker_cpu_percent", "gateway_cpu_percent", "engine_cpu_percent"), nagle=False, network=IPOIB
            ),
            constant(35.0),
        ),
        at_most=1.0,
        of_hardware=True,
    ),
    Claim(
        "5.3, figure 8c",
        "Over IPoIB Nagle's algorithm at the broker shortens completion at 8,000 orders/s (the paper's ratio: 0.75).",
        _nagle_on_over_off(COMPLETION, "handed_over_mean_us", 8000.0, IPOIB),
        at_most=1 - EQUAL,
        of_hardware=True,
    ),
    Claim(
        "7",
        "Over 1 GigE Nagle's algorithm slightly worsens completion (here: at 8,000 orders/s).",
        _nagle_on_over_off(COMPLETION, "handed_over_mean_us", 8000.0, GIGE),
        at_least=1.0,
        at_most=1.5,
        network=GIGE,
    ),
    *_completion_with_nagle(),
    _nagle_by_rate(),
    *_packets_with_nagle(),
    Claim(
        "6",
        "The exchange over ZeroMQ has higher performance than over AMQP (here: completion).",
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
            PaperItem("Apache Qpid M3 Alpha", "the paper's broker, and its client in C++"),
            "RabbitMQ, which speaks AMQP 0-9-1, and clients in Python stand for both",
        ),
        Absent(
            PaperItem("figures 3 to 6, 8, 9", "curves over IPoIB and SDP, and sentences on SDP and RDMA"),
            "they take InfiniBand: SDP is slower than IPoIB for small messages, since its connections take longer to "
            "set up, and faster for large ones, keeps its "
            "bandwidth with more pairs, completes orders soonest at every rate with the most CPU at the broker, and "
            "gains little from Nagle's algorithm; MPI over RDMA has ten times the message rate of IPoIB",
        ),
        Absent(
            PaperItem(
                "sections 4.3.3, 5.3, 7",
                "sentences on which of IPoIB and 1 GigE is faster, in ping-pong and by completion",
            ),
            "loopback stands for IPoIB, and the emulated 1 GigE adds 50 us to each link and takes processors, which "
            "decides them; figures 4c, 8b and 8c have a line for each",
        ),
        Absent(
            PaperItem("section 4.1", "hosts of eight cores; a broker whose queues end at 4,294,967,295 bytes"),
            "the machine is the one below; RabbitMQ's queues have no such end, and its sockets have TCP no delay, as "
            "the paper's",
        ),
        Absent(
            PaperItem("section 5.3", "Nagle's algorithm does not change the number of the application's messages"),
            "that follows here: both arms of a repeat have the same orders, so they have the same answers",
        ),
        Absent(
            PaperItem("section 5.3, table 1", "sentences on the time between packets"),
            "at a given rate it is the time of an order over its packets, so those on packets say the same",
        ),
        Absent(
            PaperItem("sections 1, 4.3.2, 7", "the broker's CPU is the cause of falling rates"),
            "the figures show what broker and clients take of the processors that they share; what the broker would do "
            "alone on a host of its own they cannot",
        ),
    ),
    claims=CLAIMS,
    open_questions=(
        "All roles and the broker share this machine's processors, also on the emulated network; the paper has a host "
        "of eight cores for each.",
        "Nothing here ran over IPoIB: sentences over it are tested on loopback, those over 1 GigE on the emulated "
        "one, which --quick without --network leaves out.",
        "The emulated network is a program that carries some 150,000 frames a second and takes up to one processor. A "
        "message of a pair crosses two of its links, so pairs fill neither; a fanout to many fills the broker's.",
        "Where clients and broker keep all processors busy, the broker's CPU is what the clients leave: it can fall "
        "while the CPU of each message rises.",
        "The publisher's time for a message, with one reply at the end, can only be the time of all over their number, "
        "which is one over the rate; our speed is by two clocks, and most of it is the queue.",
        "That one pair fills a link is our reading of: saturates the link early on.",
        "Bounds are our readings: drastically is twice or half, slightly up to half more, around within a tenth, "
        "comparable within a quarter, the same, or no change, within 5 %; fewer, larger and shorter by more than that.",
        "The publisher's clock runs until the replies have come, as in the paper; the receivers' rates stand beside. "
        "How a publisher that gets one reply at the end knows the speed of a message is not said.",
        "The number of messages and the sizes of figures 4a, 4b, 5b to 5d and 6b to 6d are not printed. Ours, in the "
        "full form: up to 100,000, fewer of large ones, at most 2,000 of ping-pong; 64 KiB for pairs, 64 B for the "
        "others.",
        "Whether ping-pong's latency is the round trip or half of it is not said: ours is half. Whether figure 5a "
        "counts a message once, or once for each consumer, is not said: ours counts each copy.",
        "The paper names no mode of acknowledgement. Ours has none, and a lost message makes a run invalid.",
        "The paper turned Nagle's algorithm on at the broker, and speaks of all transmissions. Here clients never "
        "have it. The sentence on 1,000 and 2,000 orders/s names no network; it follows one on IPoIB.",
        "Whether table 1's sizes include headers is not said. The paper's packets times their size are 811 to 815 "
        "bytes an order in all four rows, which headers would make unequal, so ours leave headers out, too. Its "
        "caption names IPoIB and TCP, and it has one set of rows.",
        "Figure 9 does not say of what its per cent are. Of one core is our reading, since 4.3.2 expects more than "
        "100 % on eight cores; of a host of eight cores, 35 % would be 280 % of one.",
        "Sentences on completion are tested by the mean of all orders. The paper's is that of one order in 10,000, "
        "which stands beside ours in figures and tables: the sampled orders are slower here, and a hundred of them "
        "can turn a ratio around.",
        "Orders match at an exact price, as in the paper; elsewhere in this project price and time is the default. Its "
        "range of prices and volumes is not printed: ours are 450 to 549 and 1 to 100, and orders may be filled in "
        "part. Ours quotes the highest bid and the lowest ask at each change; the paper has the maximum of either, due "
        "to trading.",
        "The heading of 4.3.4 and section 7 say FE-SPSC where FE-SPMC is meant.",
    ),
)
