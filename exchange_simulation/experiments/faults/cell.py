"""One cell of the matrix: `exchange run` as a user types it, a fault at its moment, and what the run left."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import psutil

from exchange_simulation.experiments.faults.fate import FaultWindow, counts, orders_in_spool, service, timeline
from exchange_simulation.experiments.faults.injection import Fault, Target
from exchange_simulation.launching.command_line import exchange_command
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.lineup import READY_S
from exchange_simulation.launching.option_table import TABLE
from exchange_simulation.launching.typed_settings import was_typed
from transports.declaration import RunningBroker

LOOK_S = 0.05
ENDING_S = 30.0
"""The time that a run has to end, beyond its length and its timeouts; after that it counts as hung."""
COMMAND = exchange_command()
OF_THE_LOAD = {"orders_per_s": "rate_per_s", "duration_s": "seconds", "timeout_s": "timeout_s", "seed": "seed"}
"""Load's fields, by the parameters of `exchange run` that set them."""


@dataclass(frozen=True, kw_only=True)
class FaultLoad:
    """What every cell's run is offered, and when its fault comes."""

    rate_per_s: float = 1000.0
    seconds: float = 6.0
    timeout_s: float = 3.0
    """--timeout of the run: how long a component bears the silence of another."""
    fault_s: float = 2.0
    """Seconds from the first order to the fault."""
    lasts_s: float = 1.2
    """Seconds after which a fault is lifted, if it can be lifted. TCP sends again about 0.6, 1.4 and 3 s after a cut. A
    cut that lasts longer than 1.4 s is over after 3 s, at the end of the timeout: the run would end or go on by chance.
    """
    seed: int = 1

    @property
    def interval(self) -> int:
        """The number of orders from one sample to the next: 200 samples a second resolve 5 ms."""
        return max(1, round(self.rate_per_s / 200))

    def with_words(self, words: Sequence[str]) -> FaultLoad:
        """Return the load with what these words of `exchange run` change. UserError if no fault can be timed in it."""
        rows = [row for row in TABLE if "run" in row.commands and row.field in {*OF_THE_LOAD, "orders"}]
        other_words = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
        command = click.Command("run", params=[row.parameter for row in rows], context_settings=other_words)
        with command.make_context("run", list(words)) as context:
            typed = {name: value for name, value in context.params.items() if was_typed(name)}
        comes = f"the fault comes after {self.fault_s:g} s"
        if "orders" in typed:
            raise UserError(f"{comes}, and a run of --orders may end before that: give --duration in its place")
        if typed.get("orders_per_s", self.rate_per_s) is None:
            raise UserError(f"{comes} of a run at a rate, and --rate is max: give orders a second")
        duration_s = typed.get("duration_s", self.seconds)
        if duration_s <= self.fault_s:
            raise UserError(f"{comes}, and --duration is {duration_s:g}: give a longer --duration")
        return replace(self, **{OF_THE_LOAD[name]: value for name, value in typed.items()})


@dataclass(frozen=True, kw_only=True)
class FaultCell:
    """One fault over one transport, with one delivery guarantee if the transport has several."""

    transport: str
    delivery: str | None
    fault: Fault

    @property
    def over(self) -> str:
        """The name of its column. For example: zeromq, amqp confirmed."""
        return f"{self.transport} {self.delivery}" if self.delivery else self.transport

    @property
    def name(self) -> str:
        """The name of its run's folder."""
        return f"{self.fault.name}-{self.over.replace(' ', '-')}"

    @property
    def facts(self) -> dict[str, Any]:
        """The first fields of its entry in the record."""
        return {
            "fault": self.fault.name,
            "transport": self.transport,
            "delivery": self.delivery,
            "over": self.over,
            "run": self.name,
        }


class FaultRun:
    """`exchange run` in a process of its own. Its output is read when it has ended."""

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
        """Wait for the end; returns whether it came within the time."""
        try:
            self.out, self.err = self._process.communicate(timeout=max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        self._process.kill()
        self.out, self.err = self._process.communicate()


def measured_cell(
    cell: FaultCell, load: FaultLoad, folder: Path, broker: RunningBroker | None, further: list[str]
) -> dict[str, Any]:
    """Run the cell; returns its entry in the record. `further` are words of `exchange run` that ours override."""
    broker = broker or RunningBroker(cell.transport)
    words = [*further, "--transport", broker.url, *_words_of_cell(cell), *_words_of_load(load)]
    words += ["--results", str(folder), "--name", cell.name]
    run_folder = folder / cell.name
    run = FaultRun(words, broker.environment)
    entry = {**cell.facts, "command": f"exchange run {' '.join(words)}"}
    try:
        start_ns = _start_of(run, run_folder, load)
        if start_ns is None:
            record, _ = _record(run, run_folder)
            return {**entry, "skipped": f"the run did not start: {_words_of_run(record, run)}"}
        target = Target(run.launcher, broker.server)
        window, hangs, why_not = _with_fault(run, target, cell.fault, load, start_ns)
    finally:
        if run.code is None:
            run.kill()
    if why_not:
        return {**entry, "skipped": why_not}
    return entry | _outcome(run, run_folder, load, window, hangs)


def _words_of_cell(cell: FaultCell) -> list[str]:
    words = []
    if cell.delivery:
        words += ["--delivery", cell.delivery]
    if cell.fault.network:
        words += ["--network", cell.fault.network]
    return words


def _words_of_load(load: FaultLoad) -> list[str]:
    return [
        "--json",
        "--no-spark",
        "--no-page",
        "--record",
        "--rate",
        f"{load.rate_per_s:g}",
        "--duration",
        f"{load.seconds:g}",
        "--timeout",
        f"{load.timeout_s:g}",
        "--seed",
        str(load.seed),
        "--sampling-interval",
        str(load.interval),
    ]


def _start_of(run: FaultRun, folder: Path, load: FaultLoad) -> int | None:
    """Wait for the first sample in the spool, and return the first order's due time; the clock is CLOCK_MONOTONIC.

    None if the run ended before, or takes no order.
    """
    until_s = time.monotonic() + READY_S + ENDING_S
    while time.monotonic() < until_s:
        if samples := orders_in_spool(folder):
            return samples.start_ns(load.rate_per_s)
        if run.ends_within(LOOK_S):
            return None
    run.kill()
    return None


def _with_fault(
    run: FaultRun, target: Target, fault: Fault, load: FaultLoad, start_ns: int
) -> tuple[FaultWindow, bool, str]:
    """Inject the fault at its moment, and wait for the run's end.

    Returns (when the fault was there, whether the run hangs, why the fault could not be injected; empty if it was).
    """
    run.ends_within((start_ns - time.monotonic_ns()) / 1e9 + load.fault_s)
    began_ns = time.monotonic_ns()
    lifted_ns = None
    length_ns = int(load.seconds * 1e9)
    patience_s = (start_ns + length_ns - began_ns) / 1e9 + 2 * load.timeout_s + ENDING_S
    try:
        with fault.during(target):
            has_ended = run.ends_within(load.lasts_s if fault.is_lifted else patience_s)
    except (OSError, psutil.Error) as error:
        return FaultWindow(start_ns, began_ns, None, length_ns), False, f"{fault.name} cannot be injected here: {error}"
    if fault.is_lifted:
        lifted_ns = time.monotonic_ns()
        has_ended = has_ended or run.ends_within(patience_s)
    if not has_ended:
        run.kill()
    return FaultWindow(start_ns, began_ns, lifted_ns, length_ns), not has_ended, ""


def _outcome(run: FaultRun, folder: Path, load: FaultLoad, window: FaultWindow, hangs: bool) -> dict[str, Any]:
    """Return the part of a cell's entry that says how its run ended, and what became of its orders."""
    record, origin = _record(run, folder)
    samples = orders_in_spool(folder)
    moments_ns = [window.began_ns]
    if window.lifted_ns:
        moments_ns.append(window.lifted_ns)
    return {
        "exit_code": None if hangs else run.code,
        "hangs": hangs,
        "record_from": origin,
        "status": record["status"] if record else None,
        "said": "the run hung, and was killed" if hangs else _words_of_run(record, run),
        "orders": counts(record, folder, samples, window, load.rate_per_s),
        **service(samples, window),
        "fault_s": [round((moment_ns - window.start_ns) / 1e9, 3) for moment_ns in moments_ns],
        "timeline": timeline(samples, window, load.interval),
    }


def _record(run: FaultRun, folder: Path) -> tuple[dict[str, Any] | None, str | None]:
    """Return the run's record and where it is from: run.json, the run's output, or `exchange results repair`.

    (None, None) if there is no record.
    """
    with contextlib.suppress(OSError, ValueError):
        return json.loads((folder / "run.json").read_bytes()), "run.json"
    with contextlib.suppress(ValueError):
        if run.out:
            return json.loads(run.out), "output"
    subprocess.run([*COMMAND, "results", "repair", str(folder)], capture_output=True, check=False)
    with contextlib.suppress(OSError, ValueError):
        return json.loads((folder / "run.json").read_bytes()), "repair"
    return None, None


def _words_of_run(record: dict[str, Any] | None, run: FaultRun) -> str:
    """Return the run's first sentence about what happened. In a record it stands behind the numbers of orders."""
    if record is None:
        lines = [line for line in run.err.splitlines() if line.strip()]
        return lines[-1] if lines else "nothing"
    for reason in record.get("reasons", []):
        if not reason.startswith("orders sent "):
            return str(reason)
    return str(record["status"])
