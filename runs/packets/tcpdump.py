"""tcpdump's command line, and what it says on stderr, in its words and in ours."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass

from runs.errors import UserError

SNAPLEN = 96  # bytes of a frame: the headers of link, IPv6 and TCP with its options
BUFFER_KIB = 1 << 16
OFTEN_NOT_IN_PATH = "/usr/sbin:/sbin"
LOOPBACK = "lo"
LISTENING = re.compile(r"listening on .*\n")
COUNTS = re.compile(
    r"(\d+) packets? captured[,\n]\s*(\d+) packets? received by filter[,\n]\s*(\d+) packets? dropped by kernel.*\n"
)
FORBIDDEN = re.compile(r"permission|not permitted", re.IGNORECASE)


@dataclass(frozen=True)
class Captured:
    """tcpdump's own counts of packets. `dropped` were lost, since it was too slow for them."""

    captured: int
    received: int
    dropped: int

    @classmethod
    def said(cls, words: re.Match[str]) -> Captured:
        return cls(*map(int, words.groups()))

    def missing(self, received: int, interface: str) -> int:
        """How many of these are not captured: of loopback, a packet is received twice and taken once."""
        return received - self.dropped - self.captured * (2 if interface == LOOPBACK else 1)


def program() -> str:
    """Where tcpdump is; or a sentence."""
    if sys.platform != "linux":
        raise UserError(
            "packets are captured on Linux only; elsewhere, as on macOS, by hand: "
            "sudo tcpdump -i lo0 -s 96 -w FILE.pcap tcp port PORT"
        )
    found = shutil.which("tcpdump", path=f"{os.environ.get('PATH', '')}:{OFTEN_NOT_IN_PATH}")
    if not found:
        raise UserError("tcpdump is not installed: apt-get install tcpdump on Debian, dnf install tcpdump on Fedora")
    return found


def command(tcpdump: str, ports: list[int], interface: str, snaplen: int) -> list[str]:
    """To stdout: started by root, tcpdump becomes another user, who may not open our files.

    --immediate-mode: else the kernel hands packets over by the buffer, and what is in the last buffer is lost.
    """
    words = [tcpdump, "-i", interface, "--immediate-mode", "-p", "-n", "-s", str(snaplen), "-B", str(BUFFER_KIB)]
    return [*words, "-w", "-", " or ".join(f"tcp port {port}" for port in ports)]


def refusal(said: str, tcpdump: str, interface: str) -> UserError:
    """Why it did not begin."""
    if FORBIDDEN.search(said):
        return UserError(
            f"tcpdump may not capture on {interface}: run this as root, or give tcpdump the right, "
            f"sudo setcap cap_net_raw=ep {tcpdump}"
        )
    return UserError(f"tcpdump cannot capture on {interface}: {last_words(said)}")


def last_words(said: str) -> str:
    """Its latest complaint, or else its latest line."""
    lines = said.strip().splitlines() or ["it said nothing"]
    complaints = [line.removeprefix("tcpdump: ") for line in lines if line.startswith("tcpdump: ")]
    return (complaints or lines)[-1]
