"""`exchange run` in a process of its own, and the record that it left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from exchange_simulation.launching.command_line import exchange_command

COMMAND = exchange_command()
PATIENCE_S = 15.0
"""How long a run may take to write its record after it was asked to end."""


class FaultRun:
    """`exchange run` in a process of its own. `out` and `err` are its output, read at its end."""

    def __init__(self, words: list[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, "run", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.launcher = psutil.Process(self._process.pid)
        self.out = ""
        self.err = ""

    @property
    def code(self) -> int | None:
        """The exit code, None while the run goes on."""
        return self._process.returncode

    def ends_within(self, seconds: float) -> bool:
        """Wait for the end of the run, at most `seconds`. Returns whether the run has ended."""
        try:
            self.out, self.err = self._process.communicate(timeout=max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        """Ask the run to end, which writes its record, as after Ctrl-C; kill it if it takes too long."""
        self._process.send_signal(signal.SIGTERM)
        if not self.ends_within(PATIENCE_S):
            self.kill()

    def kill(self) -> None:
        """Kill the launcher, and read the output."""
        self._process.kill()
        self.out, self.err = self._process.communicate()


@dataclass(frozen=True)
class FoundRecord:
    """The record of an ended run."""

    content: dict[str, Any] | None
    """None if there is no record."""
    origin: str | None
    """run.json, output (of the run), or repair (exchange results repair); None if there is no record."""


def record_of(run: FaultRun, folder: Path) -> FoundRecord:
    """Return the record of an ended run from its folder or its output; if neither has one, repair the folder."""
    path = folder / "run.json"
    with contextlib.suppress(OSError, ValueError):
        return FoundRecord(json.loads(path.read_bytes()), "run.json")
    with contextlib.suppress(ValueError):
        if run.out:
            return FoundRecord(json.loads(run.out), "output")
    subprocess.run([*COMMAND, "results", "repair", str(folder)], capture_output=True, check=False)
    with contextlib.suppress(OSError, ValueError):
        return FoundRecord(json.loads(path.read_bytes()), "repair")
    return FoundRecord(None, None)


def reason_of_end(record: dict[str, Any] | None, run: FaultRun) -> str:
    """Return the first reason in the run's record for its end; without a record, the last line of the run's stderr."""
    if record is None:
        lines = [line for line in run.err.splitlines() if line.strip()]
        return lines[-1] if lines else "nothing"
    for reason in record.get("reasons", []):
        if not reason.startswith("orders sent "):  # the numbers of orders come before the reasons proper
            return str(reason)
    return str(record["status"])
