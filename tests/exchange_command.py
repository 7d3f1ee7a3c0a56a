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
class Said:
    """The exit code and output of a finished command."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> dict[str, Any]:
        return json.loads(self.out)


READERS = {"results", "report", "tape", "match"}
"""Commands that start no process."""


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "exchange_simulation.cli", *map(str, words)]


def exchange(*words: object, **env: str) -> Said:
    """Run it to its end; one that only reads what is there, in this process."""
    if words[0] in READERS and "rerun" not in words and not env:
        return exchange_here(*words)
    done = subprocess.run(
        command(*words), capture_output=True, text=True, timeout=PATIENCE_S, env={**os.environ, **env}, check=False
    )
    return Said(done.returncode, done.stdout, done.stderr)


def measured(results: Path, *words: object) -> Said:
    """`exchange run`, with nothing but its record."""
    return exchange("run", "--json", "--no-spark", "--no-page", "--results", results, *words)


def measured_here(results: Path, *words: object) -> Said:
    """The same in this process, for what runs in threads of one: `--transport memory`."""
    given = () if "--transport" in words else ("--transport", "memory")
    return exchange_here("run", "--json", "--no-spark", "--no-page", "--results", results, *given, *words)


def matched_here(tape: Path, answers: Path) -> dict[str, Any]:
    """The record of `exchange match`, in this process."""
    return exchange_here("match", tape, "--answers", answers, "--json").record


def exchange_here(*words: object, **env: str) -> Said:
    """Run it in this process: for what is refused, or runs in threads of one, where a new process adds nothing."""
    done = CliRunner().invoke(main, list(map(str, words)), env=env)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Said(done.exit_code, done.stdout, done.stderr)


VALID = {"complete", "saturated"}
"""A busy machine falls behind a rate, and loses nothing."""

ORDERS = 10_000
STREAM = ("--rate", "max", "--orders", ORDERS, "--seed", 7)
"""The run whose checksums `matched` knows."""


@pytest.fixture(scope="session")
def matched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The record that `exchange match` prints about STREAM's tape."""
    tape = tmp_path_factory.mktemp("tape") / "tape.bin"
    assert exchange_here("tape", *STREAM[2:], "--output", tape).code == 0
    return matched_here(tape, tape.with_name("answers.bin"))


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

    def under_way(self) -> Running:
        """Once orders flow: the first second is in the spool."""
        until(lambda: list(self.results.glob("*/spool/*.jsonl")), "a spool file")
        return self

    @property
    def folder(self) -> Path:
        """The run's folder, which it makes at its start."""
        return next(self.results.glob("*"))

    def component(self, role: str) -> psutil.Process:
        return until(lambda: self._find(role), f"the {role}'s process")

    def _find(self, role: str) -> psutil.Process | None:
        for child in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended meanwhile
                if role in child.cmdline():
                    return child
        return None

    def family(self) -> list[psutil.Process]:
        """Its children: the watchdog and the components."""
        return psutil.Process(self._process.pid).children(recursive=True)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def finish(self) -> Said:
        out, err = self._process.communicate(timeout=PATIENCE_S)
        return Said(self._process.returncode, out, err)

    def clear_up(self) -> None:
        """End it, where its test did not."""
        if self._process.poll() is None:
            self._process.kill()
            self.finish()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start runs; none outlives its test."""
    started: list[Running] = []

    def start(*words: object) -> Running:
        started.append(Running(tmp_path / "results", *words))
        return started[-1]

    yield start
    for run in started:
        run.clear_up()


def listening_port(process: psutil.Process) -> int:
    """The TCP port that a component listens on."""
    ports = [c.laddr.port for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    return ports[0] if ports else 0
