"""Shared memory: two rings, each written by one process and read by the other. No network.

Its modules load when the first link is made.

`?pace=spin` makes an end that waits look at its ring again and again; with `sleep`, the default, it sleeps, and the
other end wakes it.
"""

from transports.declaration import Transport, later
from transports.guarantees import WITHOUT_SERVER

TRANSPORT = Transport(
    places={"shm": "path"},
    listen=later("transports.shm.link:listen"),
    title="shared memory",
    colour="navy",
    connect=later("transports.shm.link:connect"),
    guarantees={"": WITHOUT_SERVER},
    about={"shm": "two rings in memory that processes of one host share: no network, the floor of every figure"},
    cautions={
        "shm": "There is no network: the components shared memory of one host. These figures are the floor, the part "
        "of every other transport's figures that is not the transport's."
    },
    remarks={"shm": "no network"},
    options={"pace": ("sleep", "spin")},
    slow_subscriber={"": {"wait": ""}},
    variants=("", "pace=spin"),
)
