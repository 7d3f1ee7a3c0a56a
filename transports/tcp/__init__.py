"""Plain TCP sockets, one write a frame: the baseline for middleware. Its modules load when the first link is made.

`?quickack=on` makes the kernel acknowledge at once what is read (Linux): the counter-proof of docs/nagle.md.
`?sndbuf=` and `?rcvbuf=` are the bytes that the kernel holds each way. `?keys=DIR` puts the connections under TLS, by
the keys in a folder of `exchange keys`.
"""

from transports.declaration import BUFFERS, Transport, later
from transports.guarantees import WITHOUT_SERVER

TRANSPORT = Transport(
    places={"tcp": "port"},
    listen=later("transports.tcp.link:listen"),
    title="TCP",
    colour="green",
    connect=later("transports.tcp.link:connect"),
    guarantees={"": WITHOUT_SERVER},
    about={"tcp": "plain sockets, a length and a frame per write: the raw baseline"},
    options={"quickack": ("off", "on"), "keys": (), **BUFFERS},
    over_tcp=frozenset({"tcp"}),
    simplex=frozenset({"tcp"}),
)
