"""What the kernel counts on a TCP connection, from its own descriptor: struct tcp_info of linux/tcp.h.

The same counters that inet_diag reads from outside; asking one's own descriptor costs a call and needs no privilege.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

TCP_INFO = getattr(socket, "TCP_INFO", 11)
_OFFSETS = {
    "retransmits": (100, "I"),
    "bytes_in": (128, "Q"),
    "segments_out": (136, "I"),
    "segments_in": (140, "I"),
    "bytes_out": (200, "Q"),
}
"""Where each counter stands in the struct, and how wide it is."""
LENGTH = 232
COUNTERS = tuple(_OFFSETS)


def counters(sock: socket.socket) -> dict[str, int]:
    """segments_out, segments_in (pure acknowledgements among them), bytes_out, bytes_in (payload), retransmits.

    Since the connection was made; a counter that this kernel does not know is left out.
    """
    try:
        found = sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, LENGTH)
    except OSError:
        return {}
    return parse(found)


def parse(info: bytes) -> dict[str, int]:
    """The counters of a struct tcp_info, as far as it goes."""
    return {
        name: struct.unpack_from(f"={kind}", info, offset)[0]
        for name, (offset, kind) in _OFFSETS.items()
        if offset + struct.calcsize(f"={kind}") <= len(info)
    }


def since(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What was counted between two readings of one connection; facts that are no counters stay."""
    return {name: value - before.get(name, 0) if name in COUNTERS else value for name, value in now.items()}
