"""NATS: a server in the middle that passes messages on by their subject. Its modules load when the first link is made.

    nats?delivery=lossy      the server keeps a message for a subscriber in memory only
    nats?delivery=durable    a stream of JetStream keeps each message in a file until it is acknowledged

    nats?client=nats-py      the client library nats-py handles each message, in place of our kernels, for comparison

It hangs up on a subscriber that reads too slowly; the link says so (PeerGone): a silent loss would look like a slow
engine.

`?pair=` names one of several pairs that share a server.
"""

from transports.base import BASIC_PATTERNS, MANY_LISTENER_PATTERNS, Pattern
from transports.declaration import BUFFERS, Transport, WholeNumberOption, later
from transports.guarantees import IN_MEMORY, Fate, Guarantee, Sync
from transports.nats.deliveries import CLIENTS, DELIVERIES, SYNCS

SHARED_PATTERNS = MANY_LISTENER_PATTERNS | {Pattern.REQUESTS}
"""Patterns in which an end has many others."""

NO_DURABLE_REQUESTS = (
    "a stream of delivery=durable takes the place of the asker as that to which a message is answered, so nobody "
    "could answer the asker: take delivery=lossy"
)

NO_BUFFERS = "nats-py opens its sockets itself: buffers need client compiled"

TRANSPORT = Transport(
    places={"nats": "broker"},
    listen=later("transports.nats.opening:listen"),
    title="NATS",
    colour="teal",
    connect=later("transports.nats.opening:connect"),
    guarantees={
        "": IN_MEMORY,
        "delivery=durable": Guarantee(Fate.KEPT, Fate.KEPT, Sync.EVERY_TWO_MINUTES),
        "delivery=durable&sync=always": Guarantee(Fate.KEPT, Fate.KEPT, Sync.BEFORE_CONFIRM),
    },
    about={"nats": "a NATS server between the two, over TCP: from its memory, or through a stream of JetStream"},
    options={
        "client": CLIENTS,
        "delivery": DELIVERIES,
        "sync": SYNCS,
        "max_pending": WholeNumberOption("bytes", 1 << 20, 1 << 30),
        "pair": (),
        **BUFFERS,
    },
    server_options=frozenset({"sync", "max_pending"}),
    variants=("", "client=nats-py", "delivery=durable"),
    over_tcp=frozenset({"nats"}),
    patterns=BASIC_PATTERNS | SHARED_PATTERNS,
    lacks={"delivery=durable": {Pattern.REQUESTS: NO_DURABLE_REQUESTS}},
    excludes={
        "client=nats-py": {
            "delivery=durable": "nats-py is measured as a client of core NATS: leave delivery out",
            "sndbuf": NO_BUFFERS,
            "rcvbuf": NO_BUFFERS,
        },
    },
    needs_by_options={"client=nats-py": {"nats": "`pip install nats-py`"}},
    slow_subscriber={"": {"drop": ""}, "delivery=durable": {"wait": ""}},
    broker=later("transports.nats.server:Nats"),
)
