"""A process on a host that the launcher speaks to by lines on its stdin and stdout, as an agent."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exchange.words import printable
from exchange_simulation.launching.errors import telling_lines
from exchange_simulation.launching.hosts.hosts_file import Host
from exchange_simulation.launching.hosts.lines import LineReader
from exchange_simulation.launching.process_group import end

END_S = 3.0
"""How long the process may take to end."""


class HostProcess:
    """A command of exchange that runs on a host. It ends when its stdin does, or with the launcher's process group."""

    def __init__(self, host: Host, words: tuple[str, ...], process_group: int, log: Path) -> None:
        """Start the process, with stderr in a log file. OSError if the host's prefix is no program."""
        self.host = host
        self._log = log
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                host.command(*words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                process_group=process_group,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin.fileno()
        self._stdout = self._process.stdout.fileno()
        self._reader = LineReader(self._stdout)

    def close(self) -> None:
        """End the process: its stdin ends."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        end(self._process, END_S)

    def _last_words(self, error: Exception) -> str:
        """Return the error, and the telling lines that the prefix or the process printed to stderr, if any."""
        lines = telling_lines(self._log.read_text(errors="backslashreplace"), otherwise="")
        return printable(f"{error}; it said: {lines}" if lines else str(error))


def host_record(
    host: Host, components: list[str], address_by_component: Mapping[str, str | None], *, is_launchers_machine: bool
) -> dict[str, Any]:
    """Return what run.json and bench.json say of a host in any case: what runs there, and how it is reached."""
    return {
        "host": host.name,
        "components": components,
        "before": list(host.before),
        "address": {name: address for name, address in address_by_component.items() if address is not None},
        "is_launchers_machine": is_launchers_machine,
    }
