"""What is done to interfaces: ip, tc, and what neither of them can."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path

_SIOCETHTOOL, _ETHTOOL_STXCSUM = 0x8946, 0x17
"""linux/sockios.h, linux/ethtool.h."""
ENVIRONMENT = {**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
"""Where ip and tc are is not always on a user's PATH."""
_QUEUE = 100_000
"""Frames that netem holds at most: more than a delay's worth, so that none is lost here."""


def ip(lines: Iterable[str], fds: Iterable[int] = ()) -> None:
    """Run them all; OSError with ip's own words at the first that fails. The process is given `fds`."""
    _run(["ip", "-batch", "-"], "".join(f"{line}\n" for line in lines), fds)


def netem(interface: str, rate_bit_per_s: int, delay_us: float) -> None:
    """What leaves the interface passes a link of that rate, then waits."""
    shape = ["delay", f"{delay_us:g}us", "rate", f"{rate_bit_per_s}bit", "limit", str(_QUEUE)]
    _run(["tc", "qdisc", "add", "dev", interface, "root", "netem", *shape])


def whole_frames(interface: str) -> None:
    """No checksum offload: the kernel then sends frames as they would be on a cable, none larger than the MTU."""
    asked = ctypes.create_string_buffer(struct.pack("II", _ETHTOOL_STXCSUM, 0))
    request = struct.pack("16sQ16x", interface.encode(), ctypes.addressof(asked))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCETHTOOL, request)


def without_ipv6() -> None:
    """Neither router solicitations nor neighbour discovery on links that are measured."""
    for scope in ("all", "default"):
        with contextlib.suppress(OSError):
            Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")


def _run(command: list[str], given: str = "", fds: Iterable[int] = ()) -> None:
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, pass_fds=tuple(fds), env=ENVIRONMENT, check=False
    )
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
