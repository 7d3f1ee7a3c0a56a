"""Redis: a server in the middle. Its modules load when the first link is made.

    redis?kind=pubsub    messages go through channels; the guarantee is that of a connection: nothing is kept
    redis?kind=stream    messages are entries of streams, read by consumer groups and acknowledged (XACK)

`?pair=` names one of several pairs that share a server.
"""

from transports.declaration import BUFFERS, Transport, later
from transports.guarantees import IN_MEMORY, Fate, Guarantee, Sync
from transports.redis.kinds import KINDS, SYNCS

TRANSPORT = Transport(
    places={"redis": "broker"},
    listen=later("transports.redis.link:listen"),
    title="Redis",
    connect=later("transports.redis.link:connect"),
    guarantees={
        "": IN_MEMORY,
        "kind=stream": Guarantee(Fate.KEPT, Fate.KEPT, Sync.ONCE_A_SECOND),
        "kind=stream&sync=always": Guarantee(Fate.KEPT, Fate.KEPT, Sync.BEFORE_CONFIRM),
        "kind=stream&sync=no": Guarantee(Fate.KEPT, Fate.KEPT, Sync.BY_SYSTEM),
    },
    about={"redis": "a Redis server between the two, over TCP: channels, or streams"},
    options={"kind": KINDS, "sync": SYNCS, "pair": (), **BUFFERS},
    server_options=frozenset({"sync"}),
    variants=("", "kind=stream"),
    over_tcp=frozenset({"redis"}),
    broker=later("transports.redis.server:Redis"),
)
