"""A signal that reaches the launcher while it spawns a process: no process, so no port, and no folder is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from exchange_simulation.launching import process_group
from exchange_simulation.launching.interrupts import ended_as_by_ctrl_c
from exchange_simulation.launching.process_group import ProcessGroup
from tests.exchange_command import processes_with_scratch
from tests.machine import PATIENCE_S, until

GROUPS = 200
RUNS = 20
SIGNALS = (signal.SIGINT, signal.SIGTERM)
COMPONENTS = ("reporter", "engine", "gateway")
LONGEST_SPAWN_S = 0.006
"""A spawn takes 1 to 4 ms: with a signal up to so long after its begin, most signals come inside, some just after."""
TRANSPORTS = {"zeromq": 4, "tcp": 4, "nats": 5}
"""How many processes the launcher spawns, by transport: watchdog, reporter, engine, gateway, and a broker's keeper."""
SCRIPT = """
import os, sys, threading, time

number, spawn, delay_s, *words = sys.argv[1:]
spawns = []

def send():
    time.sleep(float(delay_s))
    os.kill(os.getpid(), int(number))

def count(event, _):
    if event == "subprocess.Popen":
        spawns.append(event)
        if len(spawns) == int(spawn):
            threading.Thread(target=send).start()

sys.addaudithook(count)
from exchange_simulation.cli.main import main
main(words)
"""
"""An `exchange` command that gets a signal so long after the begin of one of its spawns."""


class SignalledPopen(subprocess.Popen[bytes]):
    """Sends this process a signal so long after the begin of a spawn."""

    spawns_left = 0
    number = signal.SIGINT
    delay_s = 0.0

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        SignalledPopen.spawns_left -= 1
        if SignalledPopen.spawns_left == 0:
            threading.Timer(self.delay_s, os.kill, (os.getpid(), self.number)).start()
        super().__init__(*arguments, **settings)


@pytest.mark.long
def test_200_signals_while_a_group_spawns_leave_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(process_group.tempfile, "tempdir", str(scratch))
    monkeypatch.setattr(process_group, "exchange_command", lambda *_: ["sleep", "600"])
    monkeypatch.setattr(process_group.subprocess, "Popen", SignalledPopen)
    for seed in range(GROUPS):
        draw = random.Random(seed)
        SignalledPopen.spawns_left = draw.randint(1, 1 + len(COMPONENTS))
        SignalledPopen.number = draw.choice(SIGNALS)
        SignalledPopen.delay_s = draw.uniform(0, LONGEST_SPAWN_S)
        with contextlib.suppress(KeyboardInterrupt), ended_as_by_ctrl_c() as interruption, ProcessGroup() as group:
            for name in COMPONENTS:
                group.start(name, [], None, {})
            until(lambda: interruption.came, "the signal", poll_s=0.001)
        assert interruption.number == SignalledPopen.number, seed
        assert list(scratch.iterdir()) == [], seed
    until(lambda: processes_with_scratch(scratch) == [], "the end of all processes")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(RUNS))
def test_a_signal_while_a_run_spawns_leaves_nothing(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    transport = draw.choice(list(TRANSPORTS))
    number = draw.choice(SIGNALS)
    spawn = draw.randint(1, TRANSPORTS[transport])
    delay_s = draw.uniform(0, LONGEST_SPAWN_S)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    run = ("run", "--transport", transport, "--orders", "50", "--rate", "max", "--no-page")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(int(number)), str(spawn), str(delay_s), *run],
        env={**os.environ, "TMPDIR": str(scratch)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 128 + number, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    until(lambda: processes_with_scratch(scratch) == [], "the end of all processes")
    assert list(scratch.iterdir()) == []
