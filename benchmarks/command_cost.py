"""What a command costs, together with the processes that it starts: time, CPU time and memory."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CommandCost:
    """The cost of a command, and of those of its processes that ended before it."""

    elapsed_s: float
    cpu_s: float
    largest_mb: float
    """The most memory that one of the processes had."""
    output: str
    """What the command printed on stdout."""


def cost_of(*words: object) -> CommandCost:
    """Run a command and measure it. RuntimeError, with what it printed on stderr, if it failed."""
    command = [str(word) for word in words]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        begun_s = time.monotonic()
        process = subprocess.Popen(command, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        elapsed_s = time.monotonic() - begun_s
        process.returncode = os.waitstatus_to_exitcode(status)  # Popen did not wait itself
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{errors.read()}")
        return CommandCost(
            elapsed_s=elapsed_s,
            cpu_s=usage.ru_utime + usage.ru_stime,
            largest_mb=usage.ru_maxrss / 1e3,
            output=output.read(),
        )
