"""Ctrl-C, SIGTERM and a closed terminal at random moments of every command: each is heeded, and nothing is left.

A command is run once undisturbed, for its length. Then each case sends one signal at a seeded share of that length, as
a terminal does: Ctrl-C and a hang-up reach the whole foreground group. What was measured must be recorded, with a page.
Each case appends a line to build/interrupts.jsonl.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.exchange_command import command, processes_with_scratch
from tests.machine import PATIENCE_S, until

pytestmark = pytest.mark.long

MOMENTS = {"INT": 10, "TERM": 4, "HUP": 4}
"""The number of random moments by signal, for each command."""
LONGEST_S = 15.0
"""The latest moment; the suite takes minutes."""
EARLIEST_S = 0.3
"""The earliest moment of a Ctrl-C. Before it Python itself may be loading, which prints a traceback of its own."""
LATE_S = 5.0
"""If a command's work is finished when the signal comes, the command ends in order, within this time."""
HEEDED_WITHIN_S = 60.0
RESULTS_OF_CASES = Path("build", "interrupts.jsonl")
SERVED_S = 4.0
"""The usual latest moment for commands that a signal ends."""
TRIAL_WARM_UP = "00-"
CAPACITY_WARM_UP = "000-"
"""The beginnings of the names of warm-up runs."""
ENDED_AS_ASKED = 0
"""The exit code of `serve` and of `spark live` after Ctrl-C, which is how a user ends them."""


@dataclass(frozen=True)
class CommandCase:
    """A command that is interrupted. In its words DIR is a folder of the case."""

    words: tuple[str, ...]
    record: str = ""
    """The record in the command's results folder; empty if it leaves none."""
    page: str = ""
    output: str = ""
    """A file that is whole or absent after the command."""
    whole_end: bytes = b""
    """The last bytes of the whole output."""
    ends_by_signal: bool = False
    """True if a signal is the ordinary end."""
    served_s: float = SERVED_S
    """The latest moment for a command that a signal ends."""
    needs_run: bool = False
    """True if the command reads a run, DIR/results/run."""
    needs_tables: bool = False
    """True if the command reads Spark's tables of that run, DIR/results/tables."""


def measuring(words: str, record: str, page: str, *last_words: str) -> CommandCase:
    return CommandCase((*words.split(), *last_words, "--results", "DIR/results"), record, page)


HOSTS = f"""
[gateway]
before = "env"
address = "127.0.0.1"
exchange = "{Path(sys.executable).with_name("exchange")}"

[engine]
before = "env PLACE=other"
address = "127.0.0.1"
exchange = "{Path(sys.executable).with_name("exchange")}"

[reporter]
address = "127.0.0.1"
"""
"""The hosts of a run: gateway and engine, each behind a command that reaches this machine."""
GATE = "p50 of tcp over 1000x zeromq"
TRIAL = "--repeats 2 --seconds 0.3 --no-spark --keep-noisy"
CASES = {
    "run": measuring("run --rate 1000 --duration 1", "run.json", "report.html"),
    "run-recover": measuring("run --rate 1000 --duration 1 --recover", "run.json", "report.html"),
    "run-soak": measuring("run --rate 500 --duration 3600", "run.json", "report.html"),
    "run-subscribers": measuring("run --rate 1000 --duration 1 --subscribers 2", "run.json", "report.html"),
    "run-network": measuring("run --rate 1000 --duration 1 --network veth", "run.json", "report.html"),
    "run-wan": measuring("run --rate 1000 --duration 1 --network wan10", "run.json", "report.html"),
    "run-hosts": measuring("run --rate 1000 --duration 1 --hosts DIR/hosts.toml --insecure", "run.json", "report.html"),
    "run-nats": measuring("run --rate 1000 --duration 1 --transport nats", "run.json", "report.html"),
    "run-amqp": measuring("run --rate 1000 --duration 1 --transport amqp", "run.json", "report.html"),
    "sweep": measuring(
        "sweep --transports tcp,zeromq --rates 500 --orders 150 --repeats 2 --pause 0 --no-spark --keep-noisy",
        "comparison.json",
        "comparison.html",
    ),
    "compare": measuring(f"compare --transports tcp,zeromq --rates 500 {TRIAL}", "comparison.json", "comparison.html"),
    "compare-gate": measuring(
        f"compare --transports tcp,zeromq --rates 500 {TRIAL} --fail-if", "comparison.json", "comparison.html", GATE
    ),
    "nagle": measuring(f"nagle --transports tcp --rates 500 {TRIAL}", "comparison.json", "comparison.html"),
    "capacity": measuring(
        "capacity --transport zeromq --seconds 0.6 --longest 0.6 --probes 4 --pause 0 --keep-noisy",
        "capacity.json",
        "capacity.html",
    ),
    "faults": measuring(
        "faults --quick --transports tcp --faults engine-kill,gateway-kill", "faults.json", "faults.html"
    ),
    "bench": measuring(
        "bench de-spsc --transport zeromq --sizes 8 --count 1000 --repeats 100 --keep-noisy", "bench.json", "bench.html"
    ),
    "bench-network": measuring(
        "bench de-spsc --transport zeromq --sizes 8 --count 1000 --repeats 100 --keep-noisy --network veth",
        "bench.json",
        "bench.html",
    ),
    "bench-hosts": measuring(
        "bench de-spsc --transport tcp --sizes 8 --count 1000 --repeats 100 --keep-noisy --hosts DIR/hosts.toml",
        "bench.json",
        "bench.html",
    ),
    "faults-hosts": measuring(
        "faults --quick --transports tcp --faults engine-kill,gateway-stop --hosts DIR/hosts.toml",
        "faults.json",
        "faults.html",
    ),
    "hosts-check": CommandCase(("hosts", "check", "DIR/hosts.toml")),
    "network-list": CommandCase(("network", "list")),
    "keys": CommandCase(("keys", "DIR/keys")),
    "paper": measuring("paper zeromq --quick", "paper.json", "paper.html"),
    "suite": measuring("bench suite --transport zeromq --quick --keep-noisy", "bench.json", "bench.html"),
    "simulate": measuring("simulate --instruments 200 --orders 2e7 --master none", "simulation.json", ""),
    "simulate-spark": measuring("simulate --instruments 64 --orders 4e6", "simulation.json", ""),
    "match": CommandCase(("match", "DIR/tape.bin", "--answers", "DIR/answers.bin"), output="answers.bin"),
    "tape": CommandCase(("tape", "--orders", "20M", "--output", "DIR/made.bin"), output="made.bin"),
    "report": CommandCase(
        ("report", "DIR/results/run", "--figures"),
        output="results/run/report.html",
        whole_end=b"</html>",
        needs_run=True,
    ),
    "serve": CommandCase(("serve", "--results", "DIR/results"), ends_by_signal=True, needs_run=True),
    "doctor": CommandCase(("doctor", "--seconds", "1")),
    "broker": CommandCase(("broker", "start")),
    "spark-ingest": CommandCase(("spark", "ingest", "DIR/results"), needs_run=True),
    "spark-summary": CommandCase(("spark", "summary", "DIR/results"), needs_run=True, needs_tables=True),
    "spark-server": CommandCase(
        ("spark", "server", "DIR/results"), ends_by_signal=True, served_s=20.0, needs_run=True, needs_tables=True
    ),
    "results-rerun": CommandCase(("results", "rerun", "run", "--results", "DIR/results"), needs_run=True),
    "results-export": CommandCase(("results", "export", "--prometheus", "--results", "DIR/results"), needs_run=True),
    "spark-live": CommandCase(("spark", "live", "DIR/results"), ends_by_signal=True, needs_run=True),
    "run-live-spark": measuring("run --rate 1000 --duration 1 --live-spark", "run.json", "report.html"),
    "run-spark": CommandCase(
        ("run", "--rate", "1000", "--duration", "1", "--spark", "--results", "DIR/results"), "run.json", "report.html"
    ),
}
SIGNALS = []
for case_name in CASES:
    for signal_name, moments in MOMENTS.items():
        for number in range(moments):
            group = pytest.mark.xdist_group(f"interrupts of {case_name}")  # one process measures a command's length
            SIGNALS.append(pytest.param(case_name, signal_name, number, marks=group))


@dataclass(frozen=True)
class Prepared:
    """A run and a tape that commands read."""

    run: Path
    tape: Path
    tables: Path


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("prepared")
    run = ("run", "--rate", 1000, "--duration", 1, "--record", "--results", folder, "--name", "run")
    subprocess.run(command(*run), check=True, capture_output=True)
    tape = folder / "tape.bin"
    subprocess.run(command("tape", "--orders", "5M", "--output", tape), check=True, capture_output=True)
    subprocess.run(command("spark", "ingest", folder), check=True, capture_output=True)
    return Prepared(folder / "run", tape, folder / "tables")


class Interrupted:
    """A command under way in a session of its own, with its own scratch folder."""

    def __init__(self, case: CommandCase, folder: Path, prepared: Prepared) -> None:
        self.case = case
        self.folder = folder
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.results = folder / "results"
        if case.needs_run:
            shutil.copytree(prepared.run, self.results / "run")
        if case.needs_tables:
            shutil.copytree(prepared.tables, self.results / "tables")
        (folder / "tape.bin").symlink_to(prepared.tape)
        (folder / "hosts.toml").write_text(HOSTS)
        words = [word.replace("DIR", str(folder)) for word in case.words]
        environment = {**os.environ, "TMPDIR": str(self.scratch), "EXCHANGE_BROKER_DIR": str(folder / "broker")}
        self._out = (folder / "out").open("wb")
        self._err = (folder / "err").open("wb")
        self.began_s = time.monotonic()
        self.process = subprocess.Popen(
            command(*words),
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )

    def send(self, name: str) -> bool:
        """Send the signal as a terminal or `kill` does; return whether the command was still there."""
        if self.process.poll() is not None:
            return False
        number = signal.Signals[f"SIG{name}"]
        with contextlib.suppress(ProcessLookupError):
            if name == "TERM":
                self.process.send_signal(number)
            else:
                os.killpg(self.process.pid, number)
        return True

    def wait(self) -> int:
        """Wait for the end; return the exit code as a shell has it."""
        code = self.process.wait(PATIENCE_S)
        self._out.close()
        self._err.close()
        return code if code >= 0 else 128 - code

    @property
    def said(self) -> str:
        return (self.folder / "err").read_text(errors="replace")

    def record(self) -> dict[str, Any] | None:
        """The record of the command's own results folder; None if there is no folder."""
        folder = self.results_folder
        if folder is None:
            return None
        record: dict[str, Any] = orjson.loads((folder / self.case.record).read_bytes())
        return record

    @property
    def results_folder(self) -> Path | None:
        folders = list(self.results.iterdir()) if self.case.record and self.results.exists() else []
        assert len(folders) <= 1
        return folders[0] if folders else None


@pytest.fixture(scope="module")
def length_of(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], float]:
    """A function that returns a command's length in seconds, which is measured once."""
    lengths: dict[str, float] = {}

    def length(name: str) -> float:
        if name not in lengths:
            lengths[name] = measured_length(CASES[name], tmp_path_factory.mktemp(name), prepared)
        return lengths[name]

    return length


def measured_length(case: CommandCase, folder: Path, prepared: Prepared) -> float:
    if case.ends_by_signal:
        return case.served_s
    run = Interrupted(case, folder, prepared)
    with contextlib.suppress(subprocess.TimeoutExpired):
        run.process.wait(LONGEST_S)
    length_s = time.monotonic() - run.began_s
    run.send("TERM")
    run.wait()
    stop_broker(folder)
    return min(length_s, LONGEST_S)


def stop_broker(folder: Path) -> None:
    if (folder / "broker").exists():
        environment = {**os.environ, "EXCHANGE_BROKER_DIR": str(folder / "broker"), "TMPDIR": str(folder / "scratch")}
        subprocess.run(command("broker", "stop"), env=environment, check=True, capture_output=True)


@pytest.fixture
def interrupted(prepared: Prepared, tmp_path: Path) -> Iterator[Callable[[CommandCase], Interrupted]]:
    started: list[Interrupted] = []

    def start(case: CommandCase) -> Interrupted:
        started.append(Interrupted(case, tmp_path, prepared))
        return started[-1]

    yield start
    for run in started:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait()
        stop_broker(run.folder)


@pytest.mark.parametrize(("name", "signal_name", "number"), SIGNALS)
def test_a_signal_at_a_random_moment_is_heeded_and_leaves_nothing(
    name: str,
    signal_name: str,
    number: int,
    length_of: Callable[[str], float],
    interrupted: Callable[[CommandCase], Interrupted],
) -> None:
    share = random.Random(f"{name}-{signal_name}-{number}").random()
    moment_s = share * length_of(name)
    if signal_name == "INT":
        moment_s = max(moment_s, EARLIEST_S)
    case = CASES[name]
    run = interrupted(case)
    with contextlib.suppress(subprocess.TimeoutExpired):
        run.process.wait(moment_s)
    was_sent = run.send(signal_name)
    sent_s = time.monotonic()
    code = run.wait()
    took_s = time.monotonic() - sent_s
    note(name, signal_name, share, moment_s, was_sent, code, took_s, run)
    if was_sent:
        check_code(case, code, signal.Signals[f"SIG{signal_name}"], took_s, run)
    check_records(case, run)
    assert "Exception ignored" not in run.said
    assert "Traceback" not in run.said, run.said
    if name == "broker":
        stop_broker(run.folder)
    until(lambda: processes_with_scratch(run.scratch) == [], "the end of all processes")
    until(lambda: list(run.scratch.iterdir()) == [], "an empty scratch folder")
    assert list(run.folder.rglob("*.part")) == []


def check_code(case: CommandCase, code: int, number: signal.Signals, took_s: float, run: Interrupted) -> None:
    """The exit code is the signal's, unless the command had finished its work."""
    assert took_s < HEEDED_WITHIN_S
    if code == 128 + number:
        return
    if case.ends_by_signal:
        assert code == ENDED_AS_ASKED, run.said
        return
    assert took_s < LATE_S, f"the command went on for {took_s:.1f} s and ended with {code}"
    assert code in {0, 1}, run.said
    if case.record:
        record = run.record()
        assert record is not None
        assert record["status"] != "partial", record


def check_records(case: CommandCase, run: Interrupted) -> None:
    """What was measured has its record and its page; an output is whole or absent."""
    if case.output:
        output = run.folder / case.output
        assert not output.exists() or output.read_bytes().rstrip().endswith(case.whole_end)
    folder = run.results_folder
    if folder is None:
        return
    record = run.record()
    assert record is not None
    assert not list(folder.rglob("begun.json"))
    assert record["status"] != "running"
    if case.page:
        assert (folder / case.page).exists()
    measured = [path for path in folder.glob("*/run.json") if is_used(path)]
    if case.record == "comparison.json":
        recorded = sum(len(arm["runs"]) for arm in record["arms"])
        assert recorded >= len(measured), (recorded, [path.parent.name for path in measured])
    if case.record == "capacity.json":
        probes = [path for path in measured if not path.parent.name.startswith(CAPACITY_WARM_UP)]
        assert len(record["probes"]) + len(record.get("set_aside", [])) >= len(probes)


def is_used(path: Path) -> bool:
    """True for a run that ended in order, and is no warm-up."""
    is_warm_up = path.parent.name.startswith(TRIAL_WARM_UP)
    return not is_warm_up and orjson.loads(path.read_bytes())["status"] == "complete"


def note(
    name: str,
    signal_name: str,
    share: float,
    moment_s: float,
    was_sent: bool,
    code: int,
    took_s: float,
    run: Interrupted,
) -> None:
    """Append a line about the case to RESULTS_OF_CASES."""
    folder = run.results_folder
    record = None
    if folder is not None and (folder / run.case.record).exists():
        record = orjson.loads((folder / run.case.record).read_bytes())
    line = {
        "command": name,
        "signal": signal_name,
        "share": round(share, 4),
        "moment_s": round(moment_s, 3),
        "was_sent": was_sent,
        "code": code,
        "took_s": round(took_s, 3),
        "status": record["status"] if record else None,
        "said": run.said.splitlines()[-3:],
    }
    RESULTS_OF_CASES.parent.mkdir(exist_ok=True)
    with RESULTS_OF_CASES.open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n")
        os.fsync(file.fileno())
