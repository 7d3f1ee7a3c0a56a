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
                quick="6 clients and 2 queues, so the report's values do not stand beside ours",
            ),
            PaperItem(
                "section 5.2, OPRA",
                "16 messages in a frame of 256 bytes",
                "frames are numbered and checked, not what is in them",
            ),
            PaperItem(
                "figures 10 to 19", "CPU, context switches, memory, packets over time", "of one host, with all clients"
            ),
        ),
        in_words=RATES,
        full="--transport amqp --clients 60 --packing 16 --delivery confirmed",
        quick="--transport amqp --clients 6 --qt 2 --count 6000 --packing 16 --delivery confirmed",
    ),
    BenchPart(
        name="fanout",
        benchmark="perftest",
        items=(
            PaperItem(
                "section 5.2, 1:4",
                "the rate with a fan-out to four subscribers",
                "the report computes it from its rate at 1:1, and does not measure it",
                quick="2 exchanges, so the report's values do not stand beside ours",
            ),
        ),
        drawn=(),
        in_words=RATES,
        full=FANOUT,
        quick=f"{FANOUT} --qt 2 --count 6000",
    ),
    BenchPart(
        name="worker-threads",
        benchmark="perftest",
        items=(
            PaperItem(
                "section 3.2, worker threads",
                "threads of the broker: one for each processor, or one alone",
                "schedulers of RabbitMQ in place of --worker-threads; --cpus broker=0 keeps a broker on a processor",
            ),
        ),
        published=(),
        drawn=(),
        in_words=RATES,
        full="--transport 'amqp,amqp?schedulers=1' --clients 60 --delivery confirmed",
        quick="--transport 'amqp,amqp?schedulers=1' --clients 6 --qt 2 --count 6000 --delivery confirmed",
    ),
    BenchPart(
        name="allocator",
        benchmark="perftest",
        items=(
            PaperItem(
                "section 5.1, figures 8, 9",
                "another memory allocator",
                "another strategy of Erlang's allocator (aobf: address order best fit) in place of another malloc",
            ),
        ),
        published=(
            _transfers("its best allocator", "762,000", OTHER_ALLOCATOR),
            _transfers("as released", "505,000", "amqp"),
        ),
        drawn=(),
        in_words=RATES,
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
                "the paper measures memory alone, and names disks as later work; both arms are confirmed here, and the "
                "page says what the disk is",
            ),
        ),
        published=(),
        drawn=(),
        in_words=RATES,
        full=f"--transport '{IN_MEMORY},{ON_DISK}' --clients 60",
        quick=f"--transport '{IN_MEMORY},{ON_DISK}' --clients 6 --qt 2 --count 6000",
    ),
)
CLAIMS = (
    Claim(
        "5.2",
        "If each message goes to one subscriber, as many leave the broker as enter it.",
        ratio(
            "messages/s into the broker over those out of it",
            "perftest",
            figure_at("publishes_per_s"),
            figure_at("deliveries_per_s"),
        ),
        at_least=0.95,
        at_most=1.05,
    ),
    Claim(
        "5.2",
        "The broker takes 380,000 messages of 256 bytes a second.",
        ratio("messages/s into the broker over 380,000", "perftest", figure_at("publishes_per_s"), constant(380_000.0)),
        at_least=1.0,
        of_hardware=True,
    ),
    Claim(
        "5.2",
        "With a fan-out to four the broker makes as many transfers a second as with one subscriber to a message.",
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
        "5.1",
        "Another memory allocator raises the throughput by half.",
        ratio(
            "transfers/s with Erlang's aobf over its own choice",
            "allocator",
            figure_at("transfers_per_s", transport=OTHER_ALLOCATOR),
            figure_at("transfers_per_s", transport="amqp"),
        ),
        at_least=1.25,
        of_hardware=True,
    ),
    Claim(
        "8",
        "The broker's host is close to saturation of its processors.",
        ratio(
            "user % and system % together over 100",
            "perftest",
            sum_of(figure_at("user_percent"), figure_at("system_percent")),
            constant(100.0),
        ),
        at_least=0.9,
    ),
    Claim(
        "8.1, 8.2, figures 11, 16",
        "Context switches scale in proportion to messages/s.",
        ratio(
            "context switches of the broker for a message, with one worker thread over one for each processor",
            "worker-threads",
            figure_at("broker_switches_per_message", transport=ONE_THREAD),
            figure_at("broker_switches_per_message", transport="amqp"),
        ),
        at_least=0.8,
        at_most=1.25,
    ),
    Claim(
        "8.1, 8.2, figures 10, 15",
        "The broker's host, on which no client runs, spends 78 or 79 % in user code and 18 or 19 % in the kernel.",
        ratio("user % over system %", "perftest", figure_at("user_percent"), figure_at("system_percent")),
        at_least=3.0,
        at_most=5.0,
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
            PaperItem("section 5.1, processors", "two generations of Xeon, beside each other"),
            "they take that hardware",
        ),
        Absent(
            PaperItem("section 1.2, MSI-X", "interrupts by message or by line"),
            "a setting of network cards; all runs on loopback",
        ),
        Absent(
            PaperItem("section 3.2, IOAT", "acceleration in the network card and the chipset"), "it takes such a card"
        ),
        Absent(
            PaperItem("section 3.4, sockets and interfaces", "the number of sockets, traffic by interface, oprofile"),
            "all runs on one host over loopback, where the number of sockets is twice that of connections",
        ),
        Absent(
            PaperItem(
                "section 3.2, IRQ, taskset, authentication", "interrupts and processes on chosen cores, --auth no"
            ),
            "interrupts are of network cards; --cpus broker=0 keeps a broker on a processor; clients log in once",
        ),
    ),
    claims=CLAIMS,
    open_questions=(
        "The executive summary has 558 messages/s where 558K is meant, and 505K where its own percentages give 509K.",
        "The options list says 6 publishers and subscribers a client; only 6 a queue give its 12,000,240 transfers.",
        "Another allocator brings 49.7 % on the 5482 (762K over 509K); the summary's 558K over 344K are 62 %.",
        "It takes two queues more than its 8 cores, 10; here --qt is 10 on any number of cores.",
        "OPRA's 6,080,000 messages/s are computed there, 16 times 380,000, and not measured.",
    ),
)
