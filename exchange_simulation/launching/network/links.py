"""Network namespaces as descriptors, and their interfaces, by the programs ip and tc, and by system calls.

A namespace exists as long as a process has it open or is in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

# CLONE_NEWNET and CLONE_NEWUSER of linux/sched.h; Python 3.11 has neither os.unshare nor os.setns.
_NEWNET = 0x40000000
_NEWUSER = 0x10000000
_libc = ctypes.CDLL(None, use_errno=True)
_SIOCETHTOOL = 0x8946
"""linux/sockios.h."""
_ETHTOOL_STXCSUM = 0x17
"""linux/ethtool.h."""
ENVIRONMENT = {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
"""The environment of ip and tc, whose folders are not always on a user's PATH."""
_QUEUE = 100_000
"""The most frames that netem holds: more than arrive within a delay, so that netem loses none."""


def new_namespace() -> int:
    """Return a descriptor of a new, empty namespace. The caller stays in its own namespace."""
    with _back_afterwards():
        _checked(_libc.unshare(_NEWNET))
        return os.open("/proc/self/ns/net", os.O_RDONLY)


def move_into(user: str | None, net: str) -> None:
    """Move this process, which has one thread, into the user namespace and the network namespace of these files.

    `user` is None if the user namespace stays.
    """
    with contextlib.ExitStack() as opened:
        # Open both files first: entering the user namespace changes our rights.
        user_file = opened.enter_context(open(user)) if user else None
        net_file = opened.enter_context(open(net))
        if user_file is not None:
            _checked(_libc.setns(user_file.fileno(), _NEWUSER))
        _checked(_libc.setns(net_file.fileno(), _NEWNET))


@contextlib.contextmanager
def inside(namespace: int) -> Iterator[None]:
    """Enter a namespace for the context. Sockets opened and processes started in the context are in that namespace."""
    with _back_afterwards():
        _checked(_libc.setns(namespace, _NEWNET))
        yield


@contextlib.contextmanager
def _back_afterwards() -> Iterator[None]:
    """Return to the current namespace at the end of the context."""
    current = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        yield
    finally:
        try:
            _checked(_libc.setns(current, _NEWNET))
        finally:
            os.close(current)


def _checked(result: int) -> None:
    """Raise the OSError of a C call that failed."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def ip(lines: Iterable[str], fds: Iterable[int] = ()) -> None:
    """Run lines of `ip -batch` in a process that inherits `fds`. OSError, with ip's message, at the first failure."""
    _run(["ip", "-batch", "-"], "".join(f"{line}\n" for line in lines), fds)


def netem(interface: str, rate_bit_per_s: int, delay_us: float) -> None:
    """Let frames that leave the interface pass a link of this rate, and then wait for the delay."""
    shape = ["delay", f"{delay_us:g}us", "rate", f"{rate_bit_per_s}bit", "limit", str(_QUEUE)]
    _run(["tc", "qdisc", "replace", "dev", interface, "root", "netem", *shape])


def send_whole_frames(interface: str) -> None:
    """Turn checksum offload off. The kernel then sends frames as on a cable, and none is larger than the MTU."""
    value = ctypes.create_string_buffer(struct.pack("II", _ETHTOOL_STXCSUM, 0))
    request = struct.pack("16sQ16x", interface.encode(), ctypes.addressof(value))  # struct ifreq: name, address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCETHTOOL, request)


def turn_ipv6_off() -> None:
    """Turn IPv6 off. Its router solicitations and neighbour discovery would use the measured links."""
    for scope in ("all", "default"):
        with contextlib.suppress(OSError):
            Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")


def _run(command: list[str], stdin: str = "", fds: Iterable[int] = ()) -> None:
    """Run a command. OSError, with its message, if it fails."""
    finished = subprocess.run(
        command, input=stdin, capture_output=True, text=True, pass_fds=tuple(fds), env=ENVIRONMENT, check=False
    )
    if finished.returncode:
        raise OSError(f"{' '.join(command)}: {finished.stderr.strip()}")
