"""Redis: a server in the middle. Its modules load when the first link is made.

    redis?kind=pubsub    messages go through channels; the guarantee is that of a connection: nothing is kept
    redis?kind=stream    messages are entries of streams, read by consumer groups and acknowledged (XACK)

Channels have the patterns fanout, topic and requests too; streams have queue and fanout.
`?pair=` names one of several pairs that share a server.
"""

from transports.base import BASIC_PATTERNS, MANY_LISTENER_PATTERNS, Pattern
from transports.declaration import BUFFERS, Transport, later
from transports.guarantees import IN_MEMORY, Fate, Guarantee, Sync
from transports.redis.kinds import KINDS, SYNCS

SHARED_PATTERNS = MANY_LISTENER_PATTERNS | {Pattern.REQUESTS}
"""Patterns in which an end has many others."""
NO_QUEUE = "a channel gives each message to every subscriber: redis?kind=stream has it"
NO_TOPIC = "a stream gives every entry to each group, whatever its key: redis?kind=pubsub has it"
NO_REQUESTS = "an entry of a stream does not say who asked: redis?kind=pubsub has it"

TRANSPORT = Transport(
    places={"redis": "broker"},
    listen=later("transports.redis.opening:listen"),
    title="Redis",
    colour="red",
    connect=later("transports.redis.opening:connect"),
    guarantees={
        "": IN_MEMORY,
        "kind=stream": Guarantee(Fate.KEPT, Fate.KEPT, Sync.ONCE_A_SECOND),
        "kind=stream&sync=always": Guarantee(Fate.KEPT, Fate.KEPT, Sync.BEFORE_CONFIRM),
        "kind=stream&sync=no": Guarantee(Fate.KEPT, Fate.KEPT, Sync.BY_SYSTEM),
    },
    about={"redis": "a Redis server between the two, over TCP: channels, or streams"},
    options={"kind": KINDS, "sync": SYNCS, "pair": (), **BUFFERS},
    server_options=frozenset({"sync"}),
    patterns=BASIC_PATTERNS | SHARED_PATTERNS,
    lacks={
        "": {Pattern.QUEUE: NO_QUEUE},
        "kind=stream": {Pattern.TOPIC: NO_TOPIC, Pattern.REQUESTS: NO_REQUESTS},
    },
    slow_subscriber={"": {"drop": ""}, "kind=stream": {"wait": ""}},
    variants=("", "kind=stream"),
    over_tcp=frozenset({"redis"}),
    broker=later("transports.redis.server:Redis"),
)
