"""A signal that reaches the launcher while it spawns a process: no process, so no port, and no folder is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exchange_command import processes_with_scratch
from tests.machine import PATIENCE_S, until

pytestmark = pytest.mark.long

RUNS = 200
TRANSPORTS = {"zeromq": 4, "tcp": 4, "nats": 5}
"""How many processes the launcher spawns, by transport: watchdog, reporter, engine, gateway, and a broker's keeper."""
LONGEST_SPAWN_S = 0.008
"""A spawn takes 1 to 4 ms: with a signal up to so long after its begin, most signals come inside, some just after."""
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


@pytest.mark.parametrize("seed", range(RUNS))
def test_a_signal_while_a_process_is_spawned_leaves_nothing(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    transport = draw.choice(list(TRANSPORTS))
    number = draw.choice((signal.SIGINT, signal.SIGTERM))
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
