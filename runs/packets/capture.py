"""tcpdump beside a run: what was on the wire, for whoever does not trust counters. It costs the run its latency."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import click

from runs.errors import cannot_write
from runs.packets.tcpdump import (
    COUNTS,
    LISTENING,
    LOOPBACK,
    SNAPLEN,
    Captured,
    command,
    last_words,
    program,
    refusal,
)

PATIENCE_S = 10.0
DRAIN_S = 5.0


class Capture:
    """A context: from entering to leaving it, the TCP packets of these ports on this interface go to a pcap file.

    `prefix` goes before tcpdump's command, so that it is in another network namespace.

    tcpdump joins the process group, which is to end with us whatever happens; `captured` is known after leaving.
    UserError where tcpdump is missing, not permitted or does not know the interface.
    """

    _never_coming: int
    """Packets that the kernel counted as received before the filter was in place.

    Of traffic that was under way by then, as many as tcpdump had not taken yet are not waited for at the end.
    """

    def __init__(
        self,
        ports: list[int],
        path: Path,
        *,
        process_group: int,
        prefix: Sequence[str] = (),
        interface: str = LOOPBACK,
        snaplen: int = SNAPLEN,
    ) -> None:
        self._ports, self._path, self._group = ports, path, process_group
        self._prefix, self._interface, self._snaplen = prefix, interface, snaplen
        self._said = ""
        self.captured: Captured | None = None

    def __enter__(self) -> Capture:
        tcpdump = program()
        self._process = self._start(tcpdump)
        try:
            if not self._hear(LISTENING):
                raise refusal(self._said, tcpdump, self._interface)
            before = self._counts(signal.SIGUSR1)
            self._never_coming = before.missing(before.received, self._interface)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """An error that is under way counts for more than tcpdump's."""
        with contextlib.suppress(*([click.ClickException] if kind else [])):
            try:
                self._drain()
                self.captured = self._counts(signal.SIGINT)
            finally:
                self._end()

    def _start(self, tcpdump: str) -> subprocess.Popen[bytes]:
        try:
            file = self._path.open("wb")
        except OSError as error:
            raise cannot_write(self._path, error) from error
        with file:
            return subprocess.Popen(
                [*self._prefix, *command(tcpdump, self._ports, self._interface, self._snaplen)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.PIPE,
                process_group=self._group,
            )

    def _drain(self) -> None:
        """Wait until tcpdump has taken what the kernel received by now; what is left when it ends would be lost."""
        now = self._counts(signal.SIGUSR1)
        received, end_s = now.received, time.monotonic() + DRAIN_S
        while now.missing(received, self._interface) > self._never_coming and time.monotonic() < end_s:
            now = self._counts(signal.SIGUSR1)

    def _counts(self, asked_by: signal.Signals) -> Captured:
        """tcpdump tells its counts on SIGUSR1, and on SIGINT ends with them."""
        self._process.send_signal(asked_by)
        if words := self._hear(COUNTS):
            return Captured.said(words)
        raise click.ClickException(f"the capture is not whole, tcpdump ended: {last_words(self._said)}")

    def _hear(self, expected: re.Pattern[str]) -> re.Match[str] | None:
        """The next such words on its stderr, which are then heard; None where it ended without them."""
        assert self._process.stderr
        end_s = time.monotonic() + PATIENCE_S
        while not (words := expected.search(self._said)):
            if not select.select([self._process.stderr], [], [], max(0.0, end_s - time.monotonic()))[0]:
                raise click.ClickException(f"tcpdump said nothing for {PATIENCE_S:g} s")
            if not (more := os.read(self._process.stderr.fileno(), 4096)):
                return None
            self._said += more.decode(errors="replace")
        self._said = self._said[words.end() :]
        return words

    def _end(self) -> None:
        """Having told its last counts it still writes what it has; any other time, at once."""
        if self.captured is None:
            self._process.kill()
        try:
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            self._process.wait()
            assert self._process.stderr
            self._process.stderr.close()
