"""The processes of a run, and what they leave: kept together, ended together, whatever happens to us."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from exchange.instances import role_of
from runs.launch import watchdog

WAIT_S = 3.0


class Household:
    """A context: a scratch folder, and children in one process group under a watchdog."""

    def __enter__(self) -> Household:
        self.folder = Path(tempfile.mkdtemp(prefix="exchange-"))
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        self._tell(f"remove {self.folder}")
        return self

    def _tell(self, line: str) -> None:
        assert self._watchdog.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._watchdog.stdin.write(line.encode() + b"\n")
            self._watchdog.stdin.flush()

    @property
    def process_group(self) -> int:
        """Whoever is in it ends with us, whatever becomes of us."""
        return self._watchdog.pid

    def start(
        self, name: str, arguments: list[str], log: Path | None, environment: Mapping[str, str],
        prefix: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Run `exchange ROLE ...`, its events on a pipe, its complaints in a file; with `environment` beside ours.

        `name` is the role, or one of several, as gateway.2. Without a file complaints go where ours go. `prefix` goes
        before the command.
        """
        with log.open("wb") if log else contextlib.nullcontext() as complaints:
            self.children[name] = subprocess.Popen(
                [*prefix, sys.executable, "-m", "cli", *role_of(name).split(), "--launched", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                process_group=self.process_group,
                env={**os.environ, **environment},
            )

    def say_start(self) -> None:
        """Every component is ready: let them go."""
        for child in self.children.values():
            assert child.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write(b"start\n")
                child.stdin.flush()

    def signal(self, role: str, number: int = signal.SIGTERM) -> None:
        """Who was stopped wakes, or he could not hear it."""
        if self.children[role].poll() is None:
            self.children[role].send_signal(number)
            self.children[role].send_signal(signal.SIGCONT)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for role in self.children:
            self.signal(role)
        for role, child in self.children.items():
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(WAIT_S)
            self.signal(role, signal.SIGKILL)
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe:
                    pipe.close()
        self._tell("done")
        self._watchdog.communicate()
