"""A signal ends every command that measures: what was measured is recorded, its page is there, nothing else is left."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import orjson
import psutil
import pytest

from tests.exchange_command import command
from tests.machine import PATIENCE_S, until

BENCH = ("bench", "de-spsc", "--transport", "zeromq", "--sizes", 8, "--count", 100_000)
RUN = ("run", "--rate", 1000, "--duration", 600, "--no-spark")
COMPARE = ("compare", "--transports", "tcp,zeromq", "--rates", 500, "--seconds", 0.3, "--repeats", 20, "--no-spark")
NAGLE = ("nagle", "--transports", "tcp", "--rates", 500, "--seconds", 0.3, "--repeats", 20, "--no-spark")
CAPACITY = ("capacity", "--transport", "zeromq", "--slo", "p99 <= 1ms", "--probes", 1000, "--precision", 0.005)
FAULTS = ("faults", "--quick", "--transports", "tcp,zeromq", "--faults", "engine-kill,gateway-kill,reporter-kill")
SUITE = ("bench", "suite", "--transport", "zeromq", "--quick", "--repeats", 100)
LONG = pytest.mark.long
COMMANDS = [
    pytest.param(RUN, "*/spool/*.jsonl", "run.json", "report.html", id="run"),
    pytest.param((*BENCH, "--repeats", 10_000), "*/bench.json", "bench.json", "bench.html", id="bench"),
    pytest.param(COMPARE, "*/01-*/run.json", "comparison.json", "comparison.html", id="compare", marks=LONG),
    pytest.param(NAGLE, "*/01-*/run.json", "comparison.json", "comparison.html", id="nagle", marks=LONG),
    pytest.param(CAPACITY, "*/002-*", "capacity.json", "capacity.html", id="capacity", marks=LONG),
    pytest.param(FAULTS, "*/faults.json", "faults.json", "faults.html", id="faults", marks=LONG),
    pytest.param(SUITE, "*/bench.json", "bench.json", "bench.html", id="suite", marks=LONG),
]
"""Each: the command, a file that is there once something was measured, the record, the page."""


class InTerminal:
    """A command in a terminal of its own, which can be closed."""

    def __init__(self, words: list[str], scratch: Path) -> None:
        self._terminal, theirs = pty.openpty()
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        os.close(theirs)
        os.set_blocking(self._terminal, False)

    def read(self) -> None:
        """Take what was printed, so that the command never waits for room."""
        try:
            os.read(self._terminal, 1 << 16)
        except OSError:
            return

    def close(self) -> None:
        os.close(self._terminal)


@pytest.mark.parametrize(("words", "begun", "record", "page"), COMMANDS)
def test_a_closed_terminal_ends_a_command_as_sigterm_does(
    words: tuple[object, ...], begun: str, record: str, page: str, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    results = tmp_path / "results"
    terminal = InTerminal(command(*words, "--results", results), scratch)

    def has_begun() -> bool:
        terminal.read()
        return bool(list(results.glob(begun)))

    until(has_begun, "something that was measured")
    family = psutil.Process(terminal.process.pid).children(recursive=True)
    terminal.close()
    assert terminal.process.wait(PATIENCE_S) == 128 + signal.SIGHUP
    (folder,) = results.iterdir()
    assert orjson.loads((folder / record).read_bytes())["status"] != "complete"
    assert (folder / page).exists()
    assert not list(folder.rglob("begun.json")), "a run was left without a record"
    assert psutil.wait_procs(family, PATIENCE_S)[1] == []
    until(lambda: list(scratch.iterdir()) == [], "the end of the scratch folder")


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "results"
    assert not list(tmp_path.glob("scratch/*"))


def interrupted_bench(hook: str, results: Path, repeats: int) -> subprocess.CompletedProcess[str]:
    """Run a benchmark in a Python that executes `hook` first, which sends SIGINT at a certain moment."""
    words = [*map(str, BENCH), "--repeats", str(repeats), "--results", str(results), "--keep-noisy"]
    script = textwrap.dedent(hook) + f"from exchange_simulation.cli.main import main\nmain({words!r})\n"
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_ctrl_c_inside_a_hook_of_fork_ends_a_benchmark(results: Path) -> None:
    """Python prints and drops an exception that is raised in a hook around fork."""
    done = interrupted_bench(
        """
        import os, signal
        forks = []
        def interrupt():
            forks.append(1)
            if len(forks) == 21:
                signal.raise_signal(signal.SIGINT)
        os.register_at_fork(before=interrupt)
        """,
        results,
        repeats=300,
    )
    assert done.returncode == 130, done.stderr
    assert "Exception ignored" not in done.stderr
    (folder,) = results.iterdir()
    record = orjson.loads((folder / "bench.json").read_bytes())
    assert (record["status"], record["reasons"][0]) == ("partial", "interrupted")
    assert (folder / "bench.html").exists()


def test_ctrl_c_after_the_last_cell_leaves_a_complete_record_and_its_page(results: Path) -> None:
    done = interrupted_bench(
        """
        import signal
        from exchange_simulation.launching.launch.brokers import Brokers
        leave = Brokers.__exit__
        def interrupted(self, *how):
            signal.raise_signal(signal.SIGINT)
            leave(self, *how)
        Brokers.__exit__ = interrupted
        """,
        results,
        repeats=2,
    )
    assert done.returncode == 130, done.stderr
    (folder,) = results.iterdir()
    assert orjson.loads((folder / "bench.json").read_bytes())["status"] == "complete"
    assert (folder / "bench.html").exists()


HANDLED_THEN_SIGNALLED = """
import contextlib, importlib, signal

module = importlib.import_module("exchange_simulation.cli.main")
handled = module.ended_as_by_ctrl_c

@contextlib.contextmanager
def handled_then_signalled():
    with handled() as noted:
        signal.raise_signal(signal.{name})
        yield noted

module.ended_as_by_ctrl_c = handled_then_signalled
module.main(["network", "list"])
"""
SIGNALLED_TWICE = """
import importlib, signal
import click
from exchange_simulation.launching import interrupts

interrupts.ONE_PRESS_S = -1.0
module = importlib.import_module("exchange_simulation.cli.main")
network = importlib.import_module("exchange_simulation.cli.network")
echo = click.echo

def echo_and_signal(*words, **options):
    signal.raise_signal(signal.{name})
    echo(*words, **options)

click.echo = echo_and_signal
module.main(["network", "list"])
"""


@pytest.mark.parametrize("program", [HANDLED_THEN_SIGNALLED, SIGNALLED_TWICE])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_exit_code_names_the_first_signal_from_the_first_handler_to_the_last_word(program: str, name: str) -> None:
    words = [sys.executable, "-c", program.format(name=name)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.Signals[name], done.stderr
    assert done.stderr == "interrupted\n"
