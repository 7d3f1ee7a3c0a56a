"""The kernel's counters of TCP connections, whoever's they are, without privilege: Linux's sock_diag(7).

A dump of linux/inet_diag.h over a netlink socket: one request for each address family, with a filter that the kernel
runs. It sees this network namespace, and connections that are established. A look takes about half a
millisecond on an otherwise idle host: the kernel walks its whole table.

segments_out of the end that accepted leaves out its SYN-ACK; segments_in of the end that connected has it.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from transports import tcp_info
from transports.base import TransportError

_SOCK_DIAG, _BY_FAMILY = 4, 20  # NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY
_ERROR, _DONE = 2, 3  # NLMSG_ERROR, NLMSG_DONE
_REQUEST_DUMP, _INTERRUPTED = 0x301, 0x10  # NLM_F_REQUEST | NLM_F_DUMP, NLM_F_DUMP_INTR
_BYTECODE, _INFO = 1, 2  # INET_DIAG_REQ_BYTECODE, INET_DIAG_INFO
_JUMP, _LOCAL_PORT_IS, _PEER_PORT_IS = 1, 11, 12  # INET_DIAG_BC_JMP, _S_EQ, _D_EQ
_ESTABLISHED = 1 << 1  # of TCP's states, by their numbers

_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_ATTRIBUTE = struct.Struct("=HH")  # rtattr: length, type
_REQUEST = struct.Struct("=BBBxI48x")  # inet_diag_req_v2: family, protocol, extensions, states, any address
_SOCKET = struct.Struct("=Bxxx2s2s16s16s32x")  # inet_diag_msg: family, ports and addresses in network order
_STEP = struct.Struct("=BBH")  # inet_diag_bc_op: code, how far on where it holds, and where not; or an operand

LONGEST_ANSWER = 1 << 16  # bytes: the kernel sends no more than 32 KiB at once
PATIENCE_S = 5.0
ATTEMPTS = 5
_MAPPED = bytes(10) + b"\xff\xff"


@dataclass(frozen=True)
class Connection:
    """One end of it, as transports/sockets.py writes addresses; counters are tcp_info's, since it was made."""

    local: str
    peer: str
    counters: dict[str, int]


class _Interrupted(Exception):
    """The kernel's table changed under the dump: some connections may be missing."""


def connections(port: int) -> list[Connection]:
    """Every established connection, IPv4 and IPv6, one of whose ends is this port. OSError where the kernel refuses.

    Both ends, where both are on this host. A port that a client was given may be that of other connections too,
    to other peers; who means one of them compares both addresses.
    """
    if sys.platform != "linux":
        raise TransportError("the counters of another process's connections are known on Linux only")
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as netlink:
        netlink.settimeout(PATIENCE_S)
        both = [found for family in (socket.AF_INET, socket.AF_INET6) for found in dump(netlink, family, port)]
    return list({(found.local, found.peer): found for found in both}.values())


def address_name(address: bytes, port: int) -> str:
    """127.0.0.1:4711 or [::1]:4711, from bytes in network order; IPv4 inside IPv6 is written as what it is.

    A link-local address goes without its zone (%eth0), which is not in the bytes.
    """
    if len(address) == 16 and address.startswith(_MAPPED):
        address = address[12:]
    if len(address) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, address)}:{port}"
    return f"[{socket.inet_ntop(socket.AF_INET6, address)}]:{port}"


def dump(netlink: socket.socket, family: int, port: int) -> list[Connection]:
    """One address family's, asked once more where the kernel was interrupted."""
    for attempt in range(ATTEMPTS):
        number = family * ATTEMPTS + attempt
        netlink.send(_request(family, port, number))
        try:
            return [_connection(payload) for payload in _answers(netlink, number)]
        except _Interrupted:
            continue
    raise OSError(errno.EAGAIN, "the kernel's table of connections changed under every look at it")


def _request(family: int, port: int, number: int) -> bytes:
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INFO - 1), _ESTABLISHED)
    program = _either_port(port)
    body += _ATTRIBUTE.pack(_ATTRIBUTE.size + len(program), _BYTECODE) + program
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST_DUMP, number, 0) + body


def _either_port(port: int) -> bytes:
    """Five steps of four bytes for the kernel: taken where they lead to their end exactly, left out where beyond."""
    steps = ((_LOCAL_PORT_IS, 8, 12), (0, 0, port), (_JUMP, 4, 12), (_PEER_PORT_IS, 8, 12), (0, 0, port))
    return b"".join(_STEP.pack(*step) for step in steps)


def _answers(netlink: socket.socket, number: int) -> Iterator[bytes]:
    """The payloads of a dump's messages, read to the dump's end also where it was interrupted."""
    interrupted = False
    while True:
        received, _, flags, _ = netlink.recvmsg(LONGEST_ANSWER)
        if flags & socket.MSG_TRUNC or not received:
            raise _malformed("is empty, or longer than what was read of it")
        for kind, told, answered, payload in messages(received):
            if answered != number:
                continue
            interrupted = interrupted or bool(told & _INTERRUPTED)
            if kind == _BY_FAMILY:
                yield payload
            elif kind in {_DONE, _ERROR}:
                _raise_error(payload)
                if interrupted:
                    raise _Interrupted
                return


def _raise_error(payload: bytes) -> None:
    """A done or error message says a negative errno, or 0."""
    if len(payload) < 4:
        raise _malformed("ends without saying how it went")
    code: int = struct.unpack_from("=i", payload)[0]
    if code:
        raise OSError(abs(code), os.strerror(abs(code)))


def messages(received: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Type, flags, sequence number and payload of each message; OSError where they do not fill what was received."""
    at = 0
    while at < len(received):
        if len(received) - at < _HEADER.size:
            raise _malformed("ends inside a header")
        length, kind, flags, number, _ = _HEADER.unpack_from(received, at)
        if not _HEADER.size <= length <= len(received) - at:
            raise _malformed(f"has a message of {length} bytes at {at} of {len(received)}")
        yield kind, flags, number, received[at + _HEADER.size : at + length]
        at += _aligned(length)


def _connection(payload: bytes) -> Connection:
    if len(payload) < _SOCKET.size:
        raise _malformed(f"describes a connection in {len(payload)} bytes")
    family, own_port, peer_port, own, peer = _SOCKET.unpack_from(payload)
    width = 4 if family == socket.AF_INET else 16
    return Connection(
        local=address_name(own[:width], int.from_bytes(own_port, "big")),
        peer=address_name(peer[:width], int.from_bytes(peer_port, "big")),
        counters=tcp_info.parse(dict(_attributes(payload[_SOCKET.size :])).get(_INFO, b"")),
    )


def _attributes(block: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while len(block) - at >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(block, at)
        if not _ATTRIBUTE.size <= length <= len(block) - at:
            raise _malformed(f"has an attribute of {length} bytes at {at} of {len(block)}")
        yield kind, block[at + _ATTRIBUTE.size : at + length]
        at += _aligned(length)


def _aligned(length: int) -> int:
    """Messages and attributes begin at multiples of four."""
    return (length + 3) & ~3


def _malformed(how: str) -> OSError:
    return OSError(errno.EBADMSG, f"the kernel's answer {how}")
