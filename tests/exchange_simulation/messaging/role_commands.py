"""Runs roles as if started by hand, each in a fork of one process, which imports only once; returns their outcomes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.machine import PATIENCE_S, until

Scenario = list[str]
"""Words after `exchange bench role` of each role, in the order of their start; {url} stands for earlier listeners."""


def play(transport: str, *scenarios: Scenario, **env: str) -> list[list[dict[str, Any]]]:
    """Run the scenarios; returns for each role its exit code, its standard error, and the JSON that it printed."""
    child = subprocess.run(
        [sys.executable, "-m", __name__, transport, json.dumps(scenarios)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
        env={**os.environ, **env},
        cwd=Path(__file__).parents[3],
    )
    return json.loads(child.stdout)


@dataclass(frozen=True)
class StartedRole:
    pid: int
    out: Path
    err: Path


def _play(scenario: Scenario, folder: Path) -> list[dict[str, Any]]:
    """Start the roles of a scenario one after the other; returns their outcomes."""
    urls_of_listeners: list[str] = []
    started: list[StartedRole] = []
    for number, command in enumerate(scenario):
        out = folder / f"{number}.out"
        err = folder / f"{number}.err"
        started.append(_start(command.format(url=_url_of_all(urls_of_listeners)), out, err))
        line = _first_line(err)
        if "listens on" in line:
            urls_of_listeners.append(line.rpartition(" ")[2])
    return [_outcome(role) for role in started]


def _url_of_all(urls: list[str]) -> str:
    """The first address, with the places of the others behind it.

    For example: zeromq://host:1?back=3,host:2
    """
    other_places = [url.partition("?")[0].partition("://")[2] for url in urls[1:]]
    return ",".join([*urls[:1], *other_places])


def _start(command: str, out: Path, err: Path) -> StartedRole:
    """Fork a process that runs the command, with its output in two files."""
    pid = os.fork()
    if pid:
        return StartedRole(pid, out, err)
    os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT), 2)
    from exchange_simulation.cli.main import main

    try:
        main(["bench", "role", "--run", "first", *command.split(), "--json"])
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))
    os._exit(3)


def _first_line(path: Path) -> str:
    """Wait for the first line of a file, and return it."""
    until(lambda: path.exists() and "\n" in path.read_text(), f"a line in {path}", poll_s=0.005)
    return path.read_text().partition("\n")[0]


def _outcome(role: StartedRole) -> dict[str, Any]:
    """Wait for the end of a role, and return its outcome."""
    _, status = os.waitpid(role.pid, 0)
    outcome = {"code": os.waitstatus_to_exitcode(status), "err": role.err.read_text()}
    printed = role.out.read_text()
    if printed:
        outcome |= json.loads(printed)
    return outcome


if __name__ == "__main__":
    from exchange_simulation.launching.launch.brokers import Brokers
    from exchange_simulation.messaging import by_hand  # noqa: F401 - imported once, for all forks
    from exchange_simulation.messaging.setup import Setup
    from transports.base import Pattern

    patterns = [Pattern.QUEUE, Pattern.FANOUT, Pattern.TOPIC, Pattern.REQUESTS]
    with Brokers() as brokers, Setup({sys.argv[1]: patterns}, {}, brokers):
        played = []
        for scenario in json.loads(sys.argv[2]):
            with tempfile.TemporaryDirectory() as folder:
                played.append(_play(scenario, Path(folder)))
    print(json.dumps(played))
