"""Every signal to every process of a run, at three moments, over every transport: nothing is lost, nothing is left.

The recorded streams are counted here, from their bytes, by code that imports nothing of ours. Each case appends a line
to build/signals.jsonl: what was sent to whom, and how the record's numbers compare with the streams.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.exchange_command import Running, exchange
from tests.machine import until

pytestmark = pytest.mark.long

BROKERS = {"amqp": ("beam.smp",), "nats": ("nats-server",)}
"""The names of the broker's process, by transport."""
TRANSPORTS = ("zeromq", "tcp", "amqp", "nats")
ROLES = ("launcher", "gateway", "engine", "reporter", "broker")
STOP_AND_CONT = "STOP+CONT"
SIGNALS = ("INT", "TERM", "HUP", "KILL", STOP_AND_CONT)
MOMENTS = ("start", "middle", "end")
STOPPED_S = 0.5
WORDS = ("--rate", 1000, "--duration", 2, "--timeout", 3, "--record", "--no-page")
RESULTS = Path("build", "signals.jsonl")
ORDER_BYTES = 10
ANSWER_BYTES = {2: 5, 3: 9, 4: 5, 8: 6}
"""Sizes of answers by their first byte: confirmation, trade, quote, rejection."""
WITH_ORDER_NUMBER = (2, 3, 8)

CASES = []
for transport in TRANSPORTS:
    for role in ROLES:
        if role == "broker" and transport not in BROKERS:
            continue
        for name in SIGNALS:
            for moment in MOMENTS:
                CASES.append((transport, role, name, moment))


def recounted(folder: Path) -> dict[str, int]:
    """Count the orders and the answered orders in the recorded streams; a record cut off at the end does not count."""
    orders = (folder / "orders.bin").stat().st_size // ORDER_BYTES if (folder / "orders.bin").exists() else 0
    answers = (folder / "answers.bin").read_bytes() if (folder / "answers.bin").exists() else b""
    place = 0
    answered = 0
    while place < len(answers):
        kind = answers[place]
        size = ANSWER_BYTES[kind]
        if place + size > len(answers):
            break
        if kind in WITH_ORDER_NUMBER:
            answered = max(answered, int.from_bytes(answers[place + 1 : place + 5], "little"))
        place += size
    return {"orders_sent": orders, "orders_answered": answered}


class Watched:
    """A run, all processes that it ever had, and the ports on which they listened."""

    def __init__(self, run: Running, transport: str) -> None:
        self._run = run
        self._transport = transport
        self._launcher = psutil.Process(run._process.pid)
        self.processes: dict[int, psutil.Process] = {}
        self.ports: set[int] = set()

    def look(self) -> None:
        """Note processes and ports."""
        try:
            family = [self._launcher, *self._launcher.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in family:
            self.processes.setdefault(process.pid, process)
            try:
                connections = process.net_connections("tcp")
            except psutil.Error:
                continue
            self.ports |= {entry.laddr.port for entry in connections if entry.status == psutil.CONN_LISTEN}

    def of_role(self, role: str) -> psutil.Process | None:
        """Return the process of a role; None if there is none now."""
        self.look()
        if role == "launcher":
            return self._launcher if is_alive(self._launcher) else None
        for process in self.processes.values():
            try:
                is_role = (
                    process.name() in BROKERS[self._transport] if role == "broker" else is_component(process, role)
                )
                if is_role and is_alive(process):
                    return process
            except psutil.Error:
                continue
        return None

    def has_ended(self) -> bool:
        return self._run._process.poll() is not None

    def has_begun(self) -> bool:
        return bool(list(self._run.results.glob("*/spool/*.jsonl")))

    def is_ending(self) -> bool:
        """True once the last order was recorded."""
        return any(path.stat().st_size >= 2000 * ORDER_BYTES for path in self._run.results.glob("*/orders.bin"))


def is_component(process: psutil.Process, role: str) -> bool:
    return role in process.cmdline() and "--launched" in process.cmdline()


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def send(process: psutil.Process, name: str) -> None:
    """Send the signal; a process that is stopped goes on after a while."""
    if name != STOP_AND_CONT:
        process.send_signal(signal.Signals[f"SIG{name}"])
        return
    process.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    with contextlib.suppress(psutil.NoSuchProcess):  # a launcher wakes a process, too
        process.send_signal(signal.SIGCONT)


def at_its_moment(watched: Watched, role: str, moment: str) -> psutil.Process | None:
    """Wait for the moment, and return the role's process; None if it has ended by then."""
    conditions: dict[str, Callable[[], bool]] = {
        "start": lambda: watched.of_role(role) is not None,
        "middle": watched.has_begun,
        "end": watched.is_ending,
    }
    until(lambda: watched.has_ended() or conditions[moment](), moment, poll_s=0.01)
    return watched.of_role(role)


@pytest.fixture(autouse=True)
def without_standing_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXCHANGE_BROKER_DIR", str(tmp_path / "no broker"))


@pytest.mark.parametrize(("transport", "role", "name", "moment"), CASES)
def test_a_signal_loses_nothing_and_leaves_nothing(
    transport: str, role: str, name: str, moment: str, running: Callable[..., Running]
) -> None:
    run = running("--transport", transport, *WORDS)
    watched = Watched(run, transport)
    target = at_its_moment(watched, role, moment)
    if target is not None:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
            send(target, name)
    ended = run.finish()
    assert "Traceback" not in ended.err
    folders = list(run.results.iterdir()) if run.results.exists() else []
    record = record_of(folders[0]) if folders else None
    note(transport, role, name, moment, target is not None, ended.code, record, folders)
    if record is not None:
        check_counts(record, recounted(folders[0]))
        check_logs(folders[0])
    else:
        assert moment == "start"
    _, alive = psutil.wait_procs(list(watched.processes.values()), 60)
    assert [process.cmdline() for process in alive] == []
    until(lambda: not list(run.scratch.iterdir()), "the scratch folder is empty")
    assert listening_ports() & watched.ports == set()


def record_of(folder: Path) -> dict[str, Any] | None:
    """Return the run's record; one whose launcher was killed is repaired first. None if nothing was measured."""
    if not (folder / "run.json").exists():
        exchange("results", "repair", folder)
    if not (folder / "run.json").exists():
        return None
    record: dict[str, Any] = json.loads((folder / "run.json").read_bytes())
    return record


def check_counts(record: dict[str, Any], streams: dict[str, int]) -> None:
    """The record's numbers are those of the streams, or its first reason says that they are lower bounds.

    A killed gateway's last orders may be missing from its stream, but not from the engine's result.
    """
    counts = record["counts"] or {}
    says_at_least = bool(record["reasons"]) and "at least" in record["reasons"][0]
    for name, in_streams in streams.items():
        recorded = counts.get(name) or 0
        if record["status"] == "partial" and says_at_least:
            assert recorded >= in_streams, (name, recorded, in_streams)
        else:
            assert recorded == in_streams, (name, recorded, in_streams, record["reasons"])


def check_logs(folder: Path) -> None:
    for log in folder.glob("*.log"):
        assert "Traceback" not in log.read_text(errors="replace"), log


def listening_ports() -> set[int]:
    """Ports of this machine on which a process listens."""
    entries = psutil.net_connections("tcp")
    return {entry.laddr.port for entry in entries if entry.status == psutil.CONN_LISTEN}


def note(
    transport: str,
    role: str,
    name: str,
    moment: str,
    was_sent: bool,
    code: int,
    record: dict[str, Any] | None,
    folders: list[Path],
) -> None:
    """Append a line about the case to RESULTS."""
    counts = (record or {}).get("counts") or {}
    line = {
        "transport": transport,
        "role": role,
        "signal": name,
        "moment": moment,
        "was_sent": was_sent,
        "code": code,
        "status": record["status"] if record else None,
        "reasons": record["reasons"] if record else [],
        "recorded": {field: counts.get(field) for field in ("orders_sent", "orders_answered")},
        "streams": recounted(folders[0]) if folders else None,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n")
        os.fsync(file.fileno())
