"""tcpdump beside a run: its command line, its process and its counts. It makes the run's completion times longer."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import click

from exchange_simulation.launching.errors import UserError, last_line, writing
from exchange_simulation.launching.process_group import end
from transports.base import mask

SNAPLEN = 96
"""Bytes of a frame that are captured: the headers of link, IPv6 and TCP with its options."""
BUFFER_KIB = 1 << 16
OFTEN_NOT_IN_PATH = "/usr/sbin:/sbin"
FILE = "capture.pcap"
LOOPBACK = "lo"
EVERY_INTERFACE = "any"
LISTENING = re.compile(r"listening on .*\n")
COUNTS = re.compile(
    r"(\d+) packets? captured[,\n]\s*(\d+) packets? received by filter[,\n]\s*(\d+) packets? dropped by kernel.*\n"
)
FORBIDDEN = re.compile(r"permission|not permitted", re.IGNORECASE)
PATIENCE_S = 10.0
DRAIN_S = 5.0


@dataclass(frozen=True)
class Captured:
    """tcpdump's own counts of packets. `dropped` counts packets that were lost because tcpdump was too slow."""

    captured: int
    received: int
    dropped: int

    def missing(self, received: int, interface: str) -> int:
        """The number of packets among `received` that tcpdump has not captured."""
        # Loopback receives a packet twice, and captures it once.
        received_per_packet = 2 if interface == LOOPBACK else 1
        return received - self.dropped - self.captured * received_per_packet


def program() -> str:
    """Return the path of tcpdump. UserError if it is not installed."""
    if sys.platform != "linux":
        raise UserError(
            "packets are captured on Linux only; elsewhere, as on macOS, by hand: "
            "sudo tcpdump -i lo0 -s 96 -w FILE.pcap tcp port PORT"
        )
    tcpdump = shutil.which("tcpdump", path=f"{os.environ.get('PATH', '')}:{OFTEN_NOT_IN_PATH}")
    if not tcpdump:
        raise UserError("tcpdump is not installed: apt-get install tcpdump on Debian, dnf install tcpdump on Fedora")
    return tcpdump


def capture_of(urls: Iterable[str], folder: Path, process_group: int, prefix: Sequence[str] | None) -> Capture:
    """Return the capture of a run's packets, which is not started yet.

    `urls` are those of the engines, or of the broker; `prefix` runs a command in their network, None on this host.
    """
    ports: set[int] = set()
    for url in urls:
        ports_of_url = ports_of(url)
        if not ports_of_url:
            raise UserError(f"--capture needs the port in {mask(url)}: the port tells which packets are the run's")
        ports.update(ports_of_url)
    interface = LOOPBACK if prefix is None else EVERY_INTERFACE
    return Capture(sorted(ports), folder / FILE, process_group=process_group, prefix=prefix or (), interface=interface)


def ports_of(url: str) -> list[int]:
    """Return the listener's port, and the second port if each direction has its own."""
    parts = urlsplit(url)
    second = int(dict(parse_qsl(parts.query)).get("back", 0))
    return [port for port in (parts.port, second) if port]


class Capture:
    """A context that writes the TCP packets of some ports on an interface to a pcap file.

    `prefix`: the words before tcpdump's command that run it in another network namespace. tcpdump joins the process
    group, which ends with this process. After the context, `captured` has the counts, or `problem` a sentence.

    UserError if tcpdump is missing, has no permission or does not know the interface. ClickException if it is silent.
    """

    _never_coming: int
    """The number of packets that the kernel received before the filter was set. `_drain` does not wait for them."""

    def __init__(
        self, ports: list[int], path: Path, *, process_group: int, prefix: Sequence[str] = (), interface: str = LOOPBACK
    ) -> None:
        self._ports = ports
        self._path = path
        self._group = process_group
        self._prefix = prefix
        self._interface = interface
        self._stderr = ""
        self.captured: Captured | None = None
        self.problem = ""

    def __enter__(self) -> Capture:
        tcpdump = program()
        self._process = self._start(tcpdump)
        try:
            if not self._read(LISTENING):
                raise self._refusal(tcpdump)
            before = self._counts(signal.SIGUSR1)
            self._never_coming = before.missing(before.received, self._interface)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._drain()
            self.captured = self._counts(signal.SIGINT)
        except click.ClickException as error:
            self.problem = error.message
        finally:
            self._end()

    def _start(self, tcpdump: str) -> subprocess.Popen[bytes]:
        """Start tcpdump, which writes to our file.

        tcpdump writes to stdout: started by root, it becomes another user, who may not open our files. Without
        --immediate-mode the kernel hands packets over by the buffer, and the packets of the last buffer are lost.
        """
        interface = ["-i", self._interface, "--immediate-mode", "-p", "-n"]
        sizes = ["-s", str(SNAPLEN), "-B", str(BUFFER_KIB)]
        ports = " or ".join(f"tcp port {port}" for port in self._ports)
        with writing(self._path):
            file = self._path.open("wb")
        with file:
            return subprocess.Popen(
                [*self._prefix, tcpdump, *interface, *sizes, "-w", "-", ports],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.PIPE,
                process_group=self._group,
            )

    def _refusal(self, tcpdump: str) -> UserError:
        """Return the error for a tcpdump that ended before it listened."""
        if FORBIDDEN.search(self._stderr):
            return UserError(
                f"tcpdump may not capture on {self._interface}: run this as root, or give tcpdump the right, "
                f"sudo setcap cap_net_raw=ep {tcpdump}"
            )
        return UserError(f"tcpdump cannot capture on {self._interface}: {self._last_words()}")

    def _last_words(self) -> str:
        """tcpdump's latest error message, or its latest line if there is no error message."""
        messages = re.findall("^tcpdump: (.*)", self._stderr, re.MULTILINE)
        return messages[-1] if messages else last_line(self._stderr)

    def _drain(self) -> None:
        """Wait until tcpdump has captured all packets that the kernel has received: it would lose them at its end."""
        counts = self._counts(signal.SIGUSR1)
        received = counts.received
        end_s = time.monotonic() + DRAIN_S
        while counts.missing(received, self._interface) > self._never_coming and time.monotonic() < end_s:
            counts = self._counts(signal.SIGUSR1)

    def _counts(self, request: signal.Signals) -> Captured:
        """Ask tcpdump for its counts: on SIGUSR1 it prints them, on SIGINT it prints them and ends."""
        self._process.send_signal(request)
        counts = self._read(COUNTS)
        if counts is None:
            raise click.ClickException(f"the capture is not whole, tcpdump ended: {self._last_words()}")
        captured, received, dropped = map(int, counts.groups())
        return Captured(captured=captured, received=received, dropped=dropped)

    def _read(self, expected: re.Pattern[str]) -> re.Match[str] | None:
        """Read stderr up to the next match; None if tcpdump ended without one. ClickException if it is silent."""
        assert self._process.stderr
        deadline_s = time.monotonic() + PATIENCE_S
        match = expected.search(self._stderr)
        while match is None:
            left_s = max(0.0, deadline_s - time.monotonic())
            readable, _, _ = select.select([self._process.stderr], [], [], left_s)
            if not readable:
                raise click.ClickException(f"tcpdump said nothing for {PATIENCE_S:g} s")
            chunk = os.read(self._process.stderr.fileno(), 4096)
            if not chunk:
                return None
            self._stderr += chunk.decode(errors="replace")
            match = expected.search(self._stderr)
        self._stderr = self._stderr[match.end() :]
        return match

    def _end(self) -> None:
        """Let tcpdump write its remaining packets if it has printed its last counts, else kill it at once."""
        if self.captured is None:
            self._process.kill()
        end(self._process, PATIENCE_S)
