"""An agent that is killed: the run names it and ends, and no process of it is left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil

from tests.broker import is_gone
from tests.machine import PATIENCE_S, until

AGENTS = 11
"""Ten supermarkets and their headquarters, which are what interactions 5, 6 and 7 need."""


def test_an_agent_that_is_killed_is_named_and_ends_the_run(tmp_path: Path) -> None:
    words = ["bench", "supply-chain", "--transport", "zeromq", "--base", "5", "--duration", "600"]
    run = psutil.Popen(
        [sys.executable, "-m", "cli", *words, "--results", str(tmp_path / "results")],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    try:
        agents = until(lambda: _agents(run), "all agents")
        family = run.children(recursive=True)
        agents[-1].kill()
        out, _ = run.communicate(timeout=PATIENCE_S)
    finally:
        if run.poll() is None:
            run.kill()
            run.communicate()
    assert run.returncode == 1
    assert "was killed by SIGKILL" in " ".join(out.split())
    assert "partial" in out
    until(lambda: all(map(is_gone, family)), "the end of all agents")


def _agents(run: psutil.Popen) -> list[psutil.Process]:
    """The forked agents, once all are there. A child that has ended meanwhile (a look for a broker) is none of them."""
    forks = [child for child in run.children() if _is_agent(child)]
    return forks if len(forks) == AGENTS else []


def _is_agent(child: psutil.Process) -> bool:
    try:
        return "supply-chain" in child.cmdline()
    except psutil.NoSuchProcess:
        return False
