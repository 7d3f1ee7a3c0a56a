"""One cell of the matrix: `exchange run` as a user types it, a fault at its moment, and what became of the orders."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from exchange_simulation.experiments.faults.fate import FaultWindow, answered_samples, counts, service, timeline
from exchange_simulation.experiments.faults.hosts import ClockAhead
from exchange_simulation.experiments.faults.injection import Fault, Target
from exchange_simulation.experiments.faults.load import FaultLoad
from exchange_simulation.experiments.faults.run import FaultRun, reason_of_end, record_of
from exchange_simulation.launching.lineup import READY_S
from transports.declaration import RunningBroker

NO_WORD = re.compile(r"[^A-Za-z0-9+_.]+")
"""What names of folders have a hyphen for: the signs of a URL's options, and spaces."""
LOOK_S = 0.05
"""The time between two looks for the first sample of a run."""
ENDING_S = 30.0
"""The time that a run has to end, beyond its length and its timeouts; after that it counts as hung."""


@dataclass(frozen=True, kw_only=True)
class FaultCell:
    """One fault over one transport, with one delivery guarantee if the transport has several."""

    transport: str
    delivery: str | None
    fault: Fault

    @property
    def over(self) -> str:
        """The name of the cell's column. For example: zeromq, amqp confirmed."""
        return f"{self.transport} {self.delivery}" if self.delivery else self.transport

    @property
    def name(self) -> str:
        """The name of the folder of the cell's run. For example: engine-kill-redis-kind-stream"""
        return f"{self.fault.name}-{NO_WORD.sub('-', self.over)}"

    @property
    def facts(self) -> dict[str, Any]:
        """The first fields of the cell's entry in the record."""
        return {
            "fault": self.fault.name,
            "transport": self.transport,
            "delivery": self.delivery,
            "over": self.over,
            "run": self.name,
        }


def measured_cell(
    cell: FaultCell,
    load: FaultLoad,
    folder: Path,
    broker: RunningBroker | None,
    further: list[str],
    clock_ahead: ClockAhead,
) -> dict[str, Any]:
    """Run the cell, and return its entry in the record.

    `further` are options of `exchange run`; the options of the cell and the load override them. `clock_ahead` reads how
    far the gateway's clock is ahead of ours.
    """
    if broker is None:
        broker = RunningBroker(cell.transport)
    words = [*further, "--transport", broker.url, *_options_of_cell(cell), *_options_of_load(load)]
    words += ["--results", str(folder), "--name", cell.name]
    run_folder = folder / cell.name
    slow_clients = _slow_clients(broker)
    run = FaultRun(words, broker.environment)
    entry = {**cell.facts, "command": f"exchange run {' '.join(words)}"}
    try:
        start_ns = _start_of(run, run_folder, load)
        if start_ns is None:
            reason = reason_of_end(record_of(run, run_folder).content, run)
            return {**entry, "skipped": f"the run did not start: {reason}"}
        ahead_ns = clock_ahead()
        target = Target(run.launcher, broker.server)
        try:
            course = _run_with_fault(run, target, cell.fault, load, start_ns - ahead_ns)
        except (OSError, psutil.Error) as error:
            return {**entry, "skipped": f"{cell.fault.name} cannot be injected here: {error}"}
    except KeyboardInterrupt:
        run.end()
        raise
    finally:
        if run.code is None:
            run.kill()
    window = course.window.on_clock_ahead(ahead_ns)
    return {
        **entry,
        **_outcome(run, run_folder, load, window, course.hangs),
        **_slow_clients_since(broker, slow_clients),
    }


def _slow_clients(broker: RunningBroker) -> int | None:
    """The number of clients on which the broker has hung up because they read too slowly; None if it does not tell."""
    try:
        return broker.server.facts().get("slow_clients") if broker.server else None
    except OSError:
        return None


def _slow_clients_since(broker: RunningBroker, before: int | None) -> dict[str, int]:
    """The field `slow_clients` of a cell's entry: on how many clients the broker has hung up in this run."""
    now = _slow_clients(broker)
    if now is None or before is None:
        return {}
    return {"slow_clients": now - before}


def _options_of_cell(cell: FaultCell) -> list[str]:
    options = []
    if cell.delivery:
        options += ["--delivery", cell.delivery]
    if cell.fault.network:
        options += ["--network", cell.fault.network]
    return options


def _options_of_load(load: FaultLoad) -> list[str]:
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
        str(load.sampling_interval),
    ]


def _start_of(run: FaultRun, folder: Path, load: FaultLoad) -> int | None:
    """Wait for the first sample in the spool, and return the first order's due time by the gateway's CLOCK_MONOTONIC.

    None if the run ends before, or answers no order within READY_S + ENDING_S; the run is then killed.
    """
    until_s = time.monotonic() + READY_S + ENDING_S
    while time.monotonic() < until_s:
        samples = answered_samples(folder)
        if samples:
            return samples.start_ns(load.rate_per_s)
        if run.ends_within(LOOK_S):
            return None
    run.kill()
    return None


@dataclass(frozen=True)
class FaultCourse:
    """The times of a fault, and whether the run hung after it."""

    window: FaultWindow
    hangs: bool


def _run_with_fault(run: FaultRun, target: Target, fault: Fault, load: FaultLoad, start_ns: int) -> FaultCourse:
    """Inject the fault at its moment, and wait for the run's end. OSError, psutil.Error if it cannot be injected."""
    run.ends_within((start_ns - time.monotonic_ns()) / 1e9 + load.fault_s)
    began_ns = time.monotonic_ns()
    lifted_ns = None
    length_ns = int(load.seconds * 1e9)
    patience_s = (start_ns + length_ns - began_ns) / 1e9 + 2 * load.timeout_s + ENDING_S
    with fault.injection(target):
        has_ended = run.ends_within(load.lasts_s if fault.is_lifted else patience_s)
    if fault.is_lifted:
        lifted_ns = time.monotonic_ns()
        has_ended = has_ended or run.ends_within(patience_s)
    if not has_ended:
        run.kill()
    window = FaultWindow(
        run_start_ns=start_ns, run_length_ns=length_ns, fault_start_ns=began_ns, fault_end_ns=lifted_ns
    )
    return FaultCourse(window, hangs=not has_ended)


def _outcome(run: FaultRun, folder: Path, load: FaultLoad, window: FaultWindow, hangs: bool) -> dict[str, Any]:
    """Return the fields of a cell's entry about the end of its run and the fate of its orders.

    The window has the gateway's times, as the samples of the run have.
    """
    found_record = record_of(run, folder)
    record = found_record.content
    samples = answered_samples(folder)
    moments_ns = [window.fault_start_ns]
    if window.fault_end_ns:
        moments_ns.append(window.fault_end_ns)
    return {
        "exit_code": None if hangs else run.code,
        "hangs": hangs,
        "record_from": found_record.origin,
        "status": record["status"] if record else None,
        "said": "the run hung, and was killed" if hangs else reason_of_end(record, run),
        "orders": counts(record, folder, samples, window, load.rate_per_s),
        **service(samples, window),
        "fault_s": [round((moment_ns - window.run_start_ns) / 1e9, 3) for moment_ns in moments_ns],
        "timeline": timeline(samples, window, load.sampling_interval),
    }
