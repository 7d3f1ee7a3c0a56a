"""The folder of a session, for all that Spark writes on the side. It is removed whatever is killed.

    this process ──┐
                   ├── a pipe that both have open ──▶ sh, which removes the folder when neither has it open any more
    the JVM ───────┘

A JVM could register the folder itself, but only once it has started. Until then, a SIGKILL of this process would leave
the folder, and the JVM goes on for a while.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark.sessions.scratch_folder import scratch_folder

SESSION_PREFIX = "exchange-spark-"
REMOVE_AT_END_OF_STDIN = 'read -r _; rm -rf -- "$1"'


@dataclass(frozen=True)
class SessionFolder:
    """The folder stays as long as a process has `descriptor` open. Hand that on to a JVM, by pass_fds of Popen."""

    path: Path
    descriptor: int


@contextmanager
def session_folder() -> Iterator[SessionFolder]:
    """Make a folder for everything that Spark writes on the side, and remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix=SESSION_PREFIX, dir=scratch_folder()))
    try:
        reading_end, writing_end = os.pipe()
        command = ["/bin/sh", "-c", REMOVE_AT_END_OF_STDIN, "sh", str(folder)]
        # A session of its own: a Ctrl-C in the terminal ends the JVM's parent, and not what cleans up after it.
        remover = subprocess.Popen(
            command, stdin=reading_end, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        os.close(reading_end)
        try:
            yield SessionFolder(folder, writing_end)
        finally:
            os.close(writing_end)
            remover.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
