"""Opens a TCP socket where it runs, and hands it over: a socket stays in the namespace in which it was opened.

`python -I -S lend.py FD`, a Unix socket to the one who asks.
"""

from __future__ import annotations

import socket
import sys

if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as asker, socket.socket() as lent:
        socket.send_fds(asker, [b"."], [lent.fileno()])
