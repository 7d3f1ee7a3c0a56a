"""Roles started by hand, each a process: forks of one that imports only once; what each printed, as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.machine import PATIENCE_S, until

Scenario = list[str]
"""Words after `exchange bench role`, in the order of their start; {url} is where earlier listeners listen."""


def play(transport: str, *scenarios: Scenario, **env: str) -> list[list[dict[str, Any]]]:
    """The exit code of each role, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, transport, json.dumps(scenarios)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
        env={**os.environ, **env},
        cwd=Path(__file__).parents[3],
    )
    return json.loads(done.stdout)


def _play(scenario: Scenario, folder: Path) -> list[dict[str, Any]]:
    urls: list[str] = []
    started = []
    for number, command in enumerate(scenario):
        place = ",".join([*urls[:1], *(url.partition("?")[0].partition("://")[2] for url in urls[1:])])
        files = [folder / f"{number}.{what}" for what in ("out", "err")]
        started.append((_start(command.format(url=place), *files), *files))
        line = _first_line(files[1])
        urls += [line.rpartition(" ")[2]] if "listens on" in line else []
    return [_ended(*each) for each in started]


def _start(command: str, out: Path, err: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    for path, descriptor in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
    from exchange_simulation.cli.main import main

    try:
        main(["bench", "role", "--run", "first", *command.split(), "--json"])
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))
    os._exit(3)


def _first_line(path: Path) -> str:
    until(lambda: path.exists() and "\n" in path.read_text(), f"a line in {path}", poll_s=0.005)
    return path.read_text().partition("\n")[0]


def _ended(pid: int, out: Path, err: Path) -> dict[str, Any]:
    _, status = os.waitpid(pid, 0)
    printed = out.read_text()
    outcome = {"code": os.waitstatus_to_exitcode(status), "err": err.read_text()}
    return outcome | (json.loads(printed) if printed else {})


if __name__ == "__main__":
    from exchange_simulation.launching.launch.brokers import Brokers
    from exchange_simulation.messaging import by_hand  # noqa: F401 - once, for all forks
    from exchange_simulation.messaging.setup import Setup
    from transports.base import Pattern

    patterns = [Pattern.QUEUE, Pattern.FANOUT, Pattern.TOPIC, Pattern.REQUESTS]
    with Brokers() as brokers, Setup({sys.argv[1]: patterns}, {}, brokers):
        played = []
        for scenario in json.loads(sys.argv[2]):
            with tempfile.TemporaryDirectory() as folder:
                played.append(_play(scenario, Path(folder)))
    print(json.dumps(played))
