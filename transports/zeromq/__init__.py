"""ZeroMQ, with no process in between: zeromq+tcp, zeromq+ipc, zeromq+inproc; plain zeromq is zeromq+tcp.

`?calls=plain` uses pyzmq's own calls, one a message, instead of the compiled ones. `?hwm=` is how many messages a
socket holds each way for each peer; `?sndbuf=` and `?rcvbuf=` are the bytes that the kernel holds. `?full=drop`
lets a publisher drop frames for subscribers without room, for which it waits otherwise. `?keys=DIR` encrypts
by CURVE, with the keys in a folder of `exchange keys`. The modules with zmq and numba load when the first link is made.
"""

from transports.base import Pattern
from transports.declaration import BUFFERS, Transport, WholeNumberOption, later
from transports.guarantees import WITHOUT_SERVER

TRANSPORT = Transport(
    places={"zeromq": "port", "zeromq+tcp": "port", "zeromq+ipc": "path", "zeromq+inproc": "name"},
    listen=later("transports.zeromq.endpoints:listen"),
    title="ZeroMQ",
    colour="blue",
    connect=later("transports.zeromq.endpoints:connect"),
    guarantees={"": WITHOUT_SERVER},
    about={
        "zeromq": "libzmq over TCP, PAIR to PAIR",
        "zeromq+tcp": "libzmq over TCP, PAIR to PAIR",
        "zeromq+ipc": "libzmq over a Unix socket",
        "zeromq+inproc": "libzmq between threads of one process; for tests",
    },
    needs={"zmq": "`pip install pyzmq`"},
    one_process=frozenset({"zeromq+inproc"}),
    variants=("", "calls=plain"),
    patterns=frozenset(Pattern) - {Pattern.SCAN, Pattern.ROUTED},
    options={
        "calls": ("compiled", "plain"),
        "back": (),
        "hwm": WholeNumberOption("messages", 1, 2**31 - 1),
        "keys": (),
        "full": ("wait", "drop"),
        **BUFFERS,
    },
    slow_subscriber={"": {"drop": "full=drop", "wait": "", "conflate": "full=drop"}},
    over_tcp=frozenset({"zeromq", "zeromq+tcp"}),
    simplex=frozenset({"zeromq", "zeromq+tcp"}),
)
