"""Runs the `exchange` command as a user does: a process, its output, its exit code, what it leaves behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from tests.machine import PATIENCE_S, until


@dataclass(frozen=True)
class FinishedCommand:
    """The exit code and output of a command that has ended."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> dict[str, Any]:
        """The JSON object on stdout."""
        return json.loads(self.out)


READERS = {"results", "report", "tape", "match"}
"""Commands that start no process of their own; `results rerun` does."""


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "exchange_simulation.cli", *map(str, words)]


def exchange(*words: object, **env: str) -> FinishedCommand:
    """Run a command to its end in a process of its own; commands in READERS run in this process."""
    if words[0] in READERS and "rerun" not in words and not env:
        return exchange_in_process(*words)
    done = subprocess.run(
        command(*words), capture_output=True, text=True, timeout=PATIENCE_S, env={**os.environ, **env}, check=False
    )
    return FinishedCommand(done.returncode, done.stdout, done.stderr)


def run_exchange(results: Path, *words: object) -> FinishedCommand:
    """Run `exchange run --json` without a page and without Spark's tables."""
    return exchange("run", "--json", "--no-spark", "--no-page", "--results", results, *words)


def run_exchange_in_process(results: Path, *words: object) -> FinishedCommand:
    """Run `exchange run --json` in this process, by default over memory, whose components are threads.

    Use it for a transport whose components are threads of one process.
    """
    transport = () if "--transport" in words else ("--transport", "memory")
    return exchange_in_process("run", "--json", "--no-spark", "--no-page", "--results", results, *transport, *words)


def match_in_process(tape: Path, answers: Path) -> dict[str, Any]:
    """Run `exchange match` in this process; return its record."""
    return exchange_in_process("match", tape, "--answers", answers, "--json").record


def exchange_in_process(*words: object, **env: str) -> FinishedCommand:
    """Run a command in this process. Use it for commands that are refused, or that run all components as threads."""
    done = CliRunner().invoke(main, list(map(str, words)), env=env)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return FinishedCommand(done.exit_code, done.stdout, done.stderr)


VALID_STATUSES = {"complete", "saturated"}
"""Statuses that a test accepts: on a busy machine a run may be saturated without losing anything."""

ORDERS = 10_000
ORDER_STREAM = ("--orders", ORDERS, "--seed", 7)
REFERENCE_RUN = ("--rate", "max", *ORDER_STREAM)
"""Options of the run whose checksums are in the fixture `match_record`."""


@pytest.fixture(scope="session")
def match_record(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The record that `exchange match` prints about a tape of ORDER_STREAM."""
    tape = tmp_path_factory.mktemp("tape") / "tape.bin"
    assert exchange_in_process("tape", *ORDER_STREAM, "--output", tape).code == 0
    return match_in_process(tape, tape.with_name("answers.bin"))


class Running:
    """An `exchange run --json --no-spark` under way."""

    def __init__(self, results: Path, *words: object) -> None:
        self.results = results
        self.scratch = results.parent / "scratch"
        self.scratch.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            command("run", "--json", "--no-spark", "--results", results, *words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(self.scratch)},
        )

    def wait_until_under_way(self) -> Running:
        """Wait for the first file in the spool; orders flow by then. Returns the run."""
        until(lambda: list(self.results.glob("*/spool/*.jsonl")), "a spool file")
        return self

    @property
    def folder(self) -> Path:
        """The run's folder, which it makes at its start."""
        return next(self.results.glob("*"))

    def component(self, role: str) -> psutil.Process:
        """Wait for the process of the component; return it."""
        return until(lambda: self._find(role), f"the {role}'s process")

    def _find(self, role: str) -> psutil.Process | None:
        for child in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended meanwhile
                if role in child.cmdline():
                    return child
        return None

    def family(self) -> list[psutil.Process]:
        """Return the run's child processes: the watchdog and the components."""
        return psutil.Process(self._process.pid).children(recursive=True)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def finish(self) -> FinishedCommand:
        out, err = self._process.communicate(timeout=PATIENCE_S)
        return FinishedCommand(self._process.returncode, out, err)

    def clear_up(self) -> None:
        """Kill the run if its test has not ended it."""
        if self._process.poll() is None:
            self._process.kill()
            self.finish()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Yield a function that starts a run. Every run ends with its test."""
    started: list[Running] = []

    def start(*words: object) -> Running:
        started.append(Running(tmp_path / "results", *words))
        return started[-1]

    yield start
    for run in started:
        run.clear_up()


def listening_port(process: psutil.Process) -> int:
    """Return the TCP port that a component listens on; 0 if there is none."""
    ports = [c.laddr.port for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    return ports[0] if ports else 0
