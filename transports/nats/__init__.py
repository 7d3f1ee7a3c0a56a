"""NATS: a server in the middle that passes messages on by their subject. Its modules load when the first link is made.

The guarantee is `lossy`: the server keeps a message for a subscriber in memory only, and drops a subscriber that reads
too slowly; the link says so (PeerGone), since a loss without a word would look like a slow engine.
`?pair=` names one of several pairs that share a server.
"""

from transports.base import BASIC_PATTERNS, MANY_LISTENER_PATTERNS, Pattern
from transports.declaration import BUFFERS, Transport, later
from transports.guarantees import IN_MEMORY

TRANSPORT = Transport(
    places={"nats": "broker"},
    listen=later("transports.nats.opening:listen"),
    title="NATS",
    connect=later("transports.nats.opening:connect"),
    guarantees={"": IN_MEMORY},
    about={"nats": "a NATS server between the two, over TCP; messages are in its memory only"},
    options={"pair": (), **BUFFERS},
    over_tcp=frozenset({"nats"}),
    patterns=BASIC_PATTERNS | MANY_LISTENER_PATTERNS | {Pattern.REQUESTS},
    broker=later("transports.nats.server:Nats"),
)
