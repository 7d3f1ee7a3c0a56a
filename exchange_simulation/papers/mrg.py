"""Red Hat MRG Messaging: many clients that publish and subscribe at one broker."""

from __future__ import annotations

from exchange_simulation.messaging.paper import Published
from exchange_simulation.papers.claims import Claim
from exchange_simulation.papers.paper import Absent, BenchPart, Paper, PaperItem
from exchange_simulation.papers.statistics import constant, figure_at, ratio, sum_of

ONE_THREAD = "amqp?schedulers=1"
"""A broker with one scheduler, in place of one for each processor."""
OTHER_ALLOCATOR = "amqp?allocator=aobf"
"""Another strategy of Erlang's allocator: address order, best fit."""
QUEUES = 10
"""The report's number of shared queues; --quick has fewer, so its values do not stand beside the report's."""
RATES = {
    "transfers_per_s": "transfers/s",
    "publishes_per_s": "messages/s into the broker",
    "deliveries_per_s": "messages/s out of it",
}
IN_MEMORY = "amqp?delivery=confirmed"
ON_DISK = "amqp?delivery=durable"
LOW_RATE_PER_S = 50
HIGH_RATE_PER_S = 150
"""Messages a second of each client, by which the cost of a message is told.

60 clients on two processors are late by 10 ms and more, so 12 send at these rates.
"""
AT_RATES = f"--transport amqp --clients 12 --qt 2 --delivery confirmed --rate {LOW_RATE_PER_S},{HIGH_RATE_PER_S}"
FANOUT = "--transport amqp --mode fanout --npubs 1 --nsubs 4 --packing 16 --delivery confirmed"


def _transfers(allocator: str, value: str, transport: str) -> Published:
    """A rate of the report, beside ours over `transport`, of as many queues."""
    title = f"transfers/s, 60 clients, {allocator}"
    return Published(title, value, figure="transfers_per_s", where={"queues": QUEUES}, transport=transport)


PARTS = (
    BenchPart(
        name="perftest",
        benchmark="perftest",
        items=(
            PaperItem(
                "figures 8, 9",
                "12,000,240 transfers, 256 bytes, 10 shared queues, 60 clients",
                "RabbitMQ (AMQP 0-9-1) in place of MRG's broker (Qpid, AMQP 0-10); clients in Python on the broker's "
                'own host, over loopback, in place of two client systems over four links of 1 GigE; "reliably" is read '
                "as confirms and acknowledgements, in memory; latency end to end, which the report leaves to later, "
                "stands beside",
                quick="6 clients and 2 queues, so the report's values do not stand beside ours",
            ),
            PaperItem(
                "section 5.2, OPRA",
                "16 messages in a frame of 256 bytes",
                "nothing is packed: as in the report, the rate is 16 times that of messages of 256 bytes",
            ),
            PaperItem(
                "figures 10 to 19",
                "CPU, context switches, interrupts, memory, packets and bytes over time",
                "of one host with all clients, of the last repeat, where the report shows its best run; over loopback "
                "a packet has up to 64 KiB, and is counted once",
            ),
        ),
        not_in_print=RATES,
        full="--transport amqp --clients 60 --packing 16 --delivery confirmed",
        quick="--transport amqp --clients 6 --qt 2 --count 50000 --packing 16 --delivery confirmed",
    ),
    BenchPart(
        name="fanout",
        benchmark="perftest",
        items=(
            PaperItem(
                "section 5.2, 1:4",
                "the rate with a fan-out to four subscribers",
                "the report computes it from its rate at 1:1, and does not measure it; ours has 10 publishers and 40 "
                "subscribers, a process each, where 1:1 has 60 clients that do both",
                quick="2 exchanges, so the report's values do not stand beside ours",
            ),
        ),
        drawn=(),
        not_in_print=RATES,
        full=FANOUT,
        quick=f"{FANOUT} --qt 2 --count 50000",
    ),
    BenchPart(
        name="worker-threads",
        benchmark="perftest",
        items=(
            PaperItem(
                "section 3.2, worker threads",
                "threads of the broker: one for each processor, or one alone",
                "schedulers of RabbitMQ in place of --worker-threads",
            ),
        ),
        published=(),
        drawn=(),
        not_in_print=RATES,
        full="--transport 'amqp,amqp?schedulers=1' --clients 60 --delivery confirmed",
        quick="--transport 'amqp,amqp?schedulers=1' --clients 6 --qt 2 --count 6000 --delivery confirmed",
    ),
    BenchPart(
        name="context-switches",
        benchmark="perftest",
        items=(
            PaperItem(
                "sections 8.1, 8.2",
                "context switches by throughput",
                "of the broker alone, at two rates below its highest, of 12 clients on 2 queues; the report looks at "
                "its best runs, and counts those of the host",
            ),
        ),
        published=(),
        drawn=(),
        not_in_print=RATES,
        full=f"{AT_RATES} --seconds 10",
        quick=f"{AT_RATES} --seconds 2",
    ),
    BenchPart(
        name="allocator",
        benchmark="perftest",
        items=(
            PaperItem(
                "section 5.1, figures 8, 9",
                "another memory allocator",
                "another strategy of Erlang's allocator (aobf: address order best fit, in place of RabbitMQ's "
                "ageffcbf); the report's is another malloc(), set by an environment variable",
            ),
        ),
        published=(
            _transfers("optimized malloc (ours: Erlang's aobf)", "762,000", OTHER_ALLOCATOR),
            _transfers("non-optimized (ours: RabbitMQ's choice)", "505,000", "amqp"),
        ),
        drawn=(),
        not_in_print=RATES,
        full="--transport 'amqp,amqp?allocator=aobf' --clients 60 --delivery confirmed",
        quick="--transport 'amqp,amqp?allocator=aobf' --clients 6 --qt 2 --count 6000 --delivery confirmed",
    ),
    BenchPart(
        name="persistence",
        benchmark="perftest",
        items=(
            PaperItem(
                "sections 2.2.3, 7",
                "messages on disk beside messages in memory",
                "the paper names no durability of its messages, and solid state disks as later work; both arms are "
                "confirmed here, and the "
                "page says what the disk is",
            ),
        ),
        published=(),
        drawn=(),
        not_in_print=RATES,
        full=f"--transport '{IN_MEMORY},{ON_DISK}' --clients 60",
        quick=f"--transport '{IN_MEMORY},{ON_DISK}' --clients 6 --qt 2 --count 6000",
    ),
)
CLAIMS = (
    Claim(
        "5.2",
        "If every message goes to one subscriber, the rate into the broker equals the rate out of it.",
        ratio(
            "messages/s into the broker over those out of it: the time until the last is delivered over that until the "
            "last is taken",
            "perftest",
            figure_at("publishes_per_s"),
            figure_at("deliveries_per_s"),
        ),
        at_most=1.05,
    ),
    Claim(
        "1.2, 5.2",
        "The broker takes up to about 380,000 messages of 256 bytes a second.",
        ratio("messages/s into the broker over 380,000", "perftest", figure_at("publishes_per_s"), constant(380_000.0)),
        at_least=0.95,
        of_hardware=True,
    ),
    Claim(
        "5.2",
        "With a fan-out to four the broker makes as many transfers a second as with one subscriber to a message, by "
        "which the report divides.",
        ratio(
            "transfers/s at 1:4 over those at 1:1",
            "fanout",
            figure_at("transfers_per_s"),
            figure_at("transfers_per_s"),
            part_below="perftest",
        ),
        at_least=0.8,
        at_most=1.25,
    ),
    Claim(
        "1.2, 5.1",
        "An optimized memory allocator raises the throughput by half.",
        ratio(
            "transfers/s with Erlang's aobf over RabbitMQ's ageffcbf",
            "allocator",
            figure_at("transfers_per_s", transport=OTHER_ALLOCATOR),
            figure_at("transfers_per_s", transport="amqp"),
        ),
        at_least=1.4,
        at_most=1.6,
        of_hardware=True,
    ),
    Claim(
        "3.2",
        "A worker thread for each processor, which the report recommends, brings more than one alone.",
        ratio(
            "transfers/s with a worker thread for each processor over one",
            "worker-threads",
            figure_at("transfers_per_s", transport="amqp"),
            figure_at("transfers_per_s", transport=ONE_THREAD),
        ),
        at_least=1.0,
    ),
    Claim(
        "8.1, 8.2, figures 10, 15",
        "The broker's host is close to saturation of its processors.",
        ratio(
            "user % and system % together over 100, of a host that clients share",
            "perftest",
            sum_of(figure_at("user_percent"), figure_at("system_percent")),
            constant(100.0),
        ),
        at_least=0.9,
    ),
    Claim(
        "8.1, 8.2",
        "Context switches are in proportion to messages/s.",
        ratio(
            "context switches of the broker for a message, at the higher of two rates over the lower",
            "context-switches",
            figure_at("broker_switches_per_message", rate_per_s=HIGH_RATE_PER_S),
            figure_at("broker_switches_per_message", rate_per_s=LOW_RATE_PER_S),
        ),
        at_least=0.8,
        at_most=1.25,
    ),
    Claim(
        "8.1, 8.2, figures 10, 15",
        "The broker's host spends over four times as long in user code as in the kernel: 78 and 18 %, 79 and 19 %.",
        ratio(
            "user % over system %, of a host that clients share",
            "perftest",
            figure_at("user_percent"),
            figure_at("system_percent"),
        ),
        at_least=3.4,
        at_most=5.2,
        of_hardware=True,
    ),
)

PAPER = Paper(
    name="mrg",
    title="Intel and Red Hat: MRG Messaging on Xeon, throughput of many clients",
    citation=(
        "Intel and Red Hat: a white paper on the performance of Red Hat Enterprise MRG Messaging V1.0 on Intel Xeon "
        "systems."
    ),
    contents=(
        *PARTS,
        Absent(
            PaperItem("figures 1 to 7", "drawings of brokers, exchanges, queues and hosts"),
            "nothing is measured in them",
        ),
        Absent(
            PaperItem(
                "section 5.1, processors",
                "two generations of Xeon: the 5482 brings about 48 % over the 5365, and 36.6 % with the allocator",
            ),
            "they take that hardware",
        ),
        Absent(
            PaperItem("sections 1.2, 5.1, MSI-X", "MSI-X in place of CLVT brings about 1 %"),
            "a setting of network cards, of which CLVT is not explained; all runs on loopback",
        ),
        Absent(
            PaperItem("section 3.2, IOAT", "acceleration in the network card and the chipset"), "it takes such a card"
        ),
        Absent(
            PaperItem("section 3.4, sockets and interfaces", "the number of sockets, traffic by interface, oprofile"),
            "there is one interface, loopback, and the number of sockets follows from that of clients; the report "
            "prints nothing of oprofile",
        ),
        Absent(
            PaperItem(
                "section 3.2, IRQ, taskset, authentication", "interrupts and processes on chosen cores, --auth no"
            ),
            "interrupts are of network cards; the broker runs on all processors, as there, and has no management "
            "plugin, as with --mgmt-enable no; clients log in once",
        ),
    ),
    claims=CLAIMS,
    open_questions=(
        "380,000, OPRA's rates and the conclusion come from optimized runs with further memory management. The text "
        "below figure 8 says that V1.0 will be closer to the non-optimized 505K, half of which is 252,500.",
        "OPRA's 6,080,000 and 2,432,000 messages/s are 16 times a rate of messages, there and here; neither packs any.",
        "The summary and 5.1 have 558 messages/s where 558K is meant: the run of figure 10 lasts about 22 s. Both "
        "print 505K, where 48 % over 344K and 49.7 % below 762K both give 509K.",
        "49.7 % are of the 5482 (762K over 509K); 558K over 344K, of the 5365, are 62 %.",
        "Options say 6 publishers and subscribers a client, and 6 a network card. With 10 queues only 6 a queue give "
        "its 60 clients and 12,000,240 transfers. --count 100000 is rounded up to a multiple of 6: 100,002.",
        "Section 3 returns each message to the client that sent it; in 3.3 six clients share a queue. Ours deals each "
        "message to any of the six.",
        "The report's clock runs from its controller's start to its last signal, ours from the first publisher's start "
        "to the last delivery. A client here that can neither send nor receive rests for up to 60 ms.",
        "The report has two queues more than its 8 cores, 10; here --qt is 10 on any number of cores.",
        "Figures 13, 14, 18 and 19 begin with a peak whose height is not printed; ours are drawn without a verdict. "
        "The 8 GB that it calls needed are of its host; ours is drawn.",
        "How many runs an average has is not printed; ours are medians of the repeats that this page names. Both RHEL "
        "5.1 and a realtime kernel are listed, and cards of 1 and of 10 GigE; two sections are numbered 4.2.",
        "Bounds are our readings: as many and in proportion within a fifth, close to saturation from 90 %, over four "
        "times from 3.4 to 5.2, by half from 40 to 60 %.",
    ),
)
