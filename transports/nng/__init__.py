"""NNG, nanomsg's successor, over TCP: no process in between. Its modules load when the first link is made.

`?hwm=` is how many messages a socket holds each way.
"""

from transports.base import Pattern
from transports.declaration import Transport, WholeNumberOption, later
from transports.guarantees import WITHOUT_SERVER

DROPS = "PUB drops what a slow subscriber has no room for, and SUB what its component has not taken yet"
MOST_MESSAGES = 8192
"""The most messages that NNG holds in a socket each way."""

TRANSPORT = Transport(
    places={"nng": "port"},
    listen=later("transports.nng.link:listen"),
    title="NNG",
    colour="gold",
    guarantees={"": WITHOUT_SERVER},
    connect=later("transports.nng.link:connect"),
    about={"nng": "libnng over TCP, PAIR0 to PAIR0"},
    lacks={
        "": {
            Pattern.QUEUE: "PUSH deals messages before it knows whether a consumer has the run's name",
            Pattern.FANOUT: DROPS,
            Pattern.TOPIC: DROPS,
            Pattern.REQUESTS: "REQ has one question at a time, and REP one answer",
        }
    },
    slow_subscriber={"": {"wait": ""}},
    needs={"pynng": "`pip install pynng`"},
    options={"hwm": WholeNumberOption("messages", 1, MOST_MESSAGES)},
    over_tcp=frozenset({"nng"}),
)
