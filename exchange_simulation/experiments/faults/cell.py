"""One cell of the matrix: `exchange run` as a user types it, a fault at its moment, and what the run left."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import psutil

from exchange_simulation.experiments.faults.fate import FaultWindow, counts, orders_in_spool, service, timeline
from exchange_simulation.experiments.faults.injection import Fault, Target
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.lineup import READY_S
from exchange_simulation.launching.options import TABLE, was_typed
from transports.declaration import RunningBroker

LOOK_S = 0.05
ENDING_S = 30.0
"""The time that a run has to end, beyond its length and its timeouts; after that it counts as hung."""
COMMAND = [sys.executable, "-m", "exchange_simulation.cli"]
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
    """Seconds until a fault is lifted that can be lifted. TCP sends again 0.6, 1.4 and 3 s after a cut, about: a cut
    that lasts longer than 1.4 s is over after 3 s, at the end of the timeout, and the run ends or goes on by chance."""
    seed: int = 1

    @property
    def interval(self) -> int:
        """The number of orders from one sample to the next: 200 samples a second resolve 5 ms."""
        return max(1, round(self.rate_per_s / 200))

    def with_words(self, words: Sequence[str]) -> FaultLoad:
        """The load with what these words of `exchange run` change. UserError if no fault can be timed in it."""
        rows = [row for row in TABLE if "run" in row.commands and row.field in {*OF_THE_LOAD, "orders"}]
        others = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
        command = click.Command("run", params=[row.parameter for row in rows], context_settings=others)
        with command.make_context("run", list(words)) as context:
            typed = {name: value for name, value in context.params.items() if was_typed(name)}
        is_too_short = typed.get("duration_s", self.seconds) <= self.fault_s
        if is_too_short or "orders" in typed or typed.get("orders_per_s", self.rate_per_s) is None:
            raise UserError(
                f"the fault comes after {self.fault_s:g} s: give a --rate, a longer --duration, no --orders"
            )
        return replace(self, **{OF_THE_LOAD[name]: value for name, value in typed.items()})


@dataclass(frozen=True, kw_only=True)
class FaultCell:
    transport: str
    delivery: str | None
    fault: Fault

    @property
    def over(self) -> str:
        """The column: zeromq, amqp confirmed."""
        return f"{self.transport} {self.delivery}" if self.delivery else self.transport

    @property
    def name(self) -> str:
        """The folder of its run."""
        return f"{self.fault.name}-{self.over.replace(' ', '-')}"

    @property
    def facts(self) -> dict[str, Any]:
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
        self.out = self.err = ""

    @property
    def code(self) -> int | None:
        return self._process.returncode

    def ends_within(self, seconds: float) -> bool:
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
    words = [
        *further,
        "--transport",
        broker.url,
        *(["--delivery", cell.delivery] if cell.delivery else []),
        *(["--network", cell.fault.network] if cell.fault.network else []),
        *_words(load),
        "--results",
        str(folder),
        "--name",
        cell.name,
    ]
    run, at = FaultRun(words, broker.environment), folder / cell.name
    known = {**cell.facts, "command": f"exchange run {' '.join(words)}"}
    try:
        start_ns = _under_way(run, at, load)
        if start_ns is None:
            return {**known, "skipped": f"the run did not start: {_own_words(_record(run, at)[0], run)}"}
        window, hangs, why = _with_fault(run, Target(run.launcher, broker.server), cell.fault, load, start_ns)
    finally:
        if run.code is None:
            run.kill()
    if why:
        return {**known, "skipped": why}
    return known | _found(run, at, load, window, hangs)


def _words(load: FaultLoad) -> list[str]:
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


def _under_way(run: FaultRun, folder: Path, load: FaultLoad) -> int | None:
    """The first order's due time, once the spool has it; None if the run ended before, or takes no order."""
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
    """Inject the fault; returns (when it was there, whether the run hangs, why it could not be injected)."""
    run.ends_within((start_ns - time.monotonic_ns()) / 1e9 + load.fault_s)
    began_ns, lifted_ns = time.monotonic_ns(), None
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


def _found(run: FaultRun, folder: Path, load: FaultLoad, window: FaultWindow, hangs: bool) -> dict[str, Any]:
    record, origin = _record(run, folder)
    samples = orders_in_spool(folder)
    fault_s = [(ns - window.start_ns) / 1e9 for ns in (window.began_ns, window.lifted_ns) if ns]
    return {
        "exit_code": None if hangs else run.code,
        "hangs": hangs,
        "record_from": origin,
        "status": record["status"] if record else None,
        "said": "the run hung, and was killed" if hangs else _own_words(record, run),
        "orders": counts(record, folder, samples, window, load.rate_per_s),
        **service(samples, window),
        "fault_s": [round(each, 3) for each in fault_s],
        "timeline": timeline(samples, window, load.interval),
    }


def _record(run: FaultRun, folder: Path) -> tuple[dict[str, Any] | None, str | None]:
    """The run's record and where it is from: run.json, the run's output, or `exchange results repair`."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads((folder / "run.json").read_bytes()), "run.json"
    with contextlib.suppress(ValueError):
        if run.out:
            return json.loads(run.out), "output"
    subprocess.run([*COMMAND, "results", "repair", str(folder)], capture_output=True, check=False)
    with contextlib.suppress(OSError, ValueError):
        return json.loads((folder / "run.json").read_bytes()), "repair"
    return None, None


def _own_words(record: dict[str, Any] | None, run: FaultRun) -> str:
    """The run's first sentence about what happened. In a record it stands behind the numbers of orders."""
    reasons = [each for each in (record or {}).get("reasons", []) if not each.startswith("orders sent ")]
    if reasons:
        return str(reasons[0])
    if record:
        return str(record["status"])
    return next((line for line in reversed(run.err.splitlines()) if line.strip()), "nothing")
