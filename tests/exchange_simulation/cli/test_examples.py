"""The examples of the helps, run one after the other in an empty folder; made shorter by what is typed behind them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main

SHORTER = {
    "run": "--transport memory --orders 200 --no-spark --name first",
    "tape": "--orders 1000",
    "match": "",
    "keys": "",
    "simulate": "--orders 1e4 --master none",
    "report": "--no-spark",
    "results list": "",
    "results show": "",
    "results rerun": "--no-spark",
    "results diff": "",
    "network": "",
    "doctor": "--seconds 0.5",
    "compare": "--dry-run",
    "nagle": "--dry-run",
    "sweep": "--dry-run",
    "faults": "--list",
    "bench": "--transport memory --sizes 64 --repeats 1",
    "capacity": "--transport memory --slo 'max <= 9s' --from 300000 --seconds 0.1 --probes 4 --pause 0",
}
"""By command, in an order in which each finds what it needs."""
ELSEWHERE = {
    "engine",
    "gateway",
    "reporter",
    "broker",
    "serve",
    "results",
    "results repair",
    "spark",
    "spark live",
    "spark ingest",
    "spark summary",
    "spark sql",
    "spark bars",
    "spark samples",
    "spark prepare",
    "spark submit",
}
"""On other hosts, of a broker that stays, after a death, or slow to start: other tests run these."""
PARTED = {"results", "spark"}
"""Commands with parts, each of which has an example."""


def examples() -> dict[str, str]:
    """By command, the first line of its help's example."""
    context = click.Context(main)
    found: dict[str, str] = {}
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        parts = command.commands.items() if isinstance(command, click.Group) and name in PARTED else []
        for words, each in [(name, command), *((f"{name} {part}", each) for part, each in parts)]:
            example = re.search(r"Example: exchange ([^;\n]*)", each.help or "" if each else "")
            found[words] = example.group(1) if example else ""
    return found


def test_every_example_is_run_here_or_elsewhere() -> None:
    assert examples().keys() == SHORTER.keys() | ELSEWHERE
    assert all(examples().values())


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = examples()
    for name, shorter in SHORTER.items():
        done = CliRunner().invoke(main, [*shlex.split(found[name]), *shlex.split(shorter)])
        assert done.exit_code == 0, (found[name], done.output)
        assert done.output.strip(), found[name]
    assert (tmp_path / "results" / "second" / "run.json").exists()
    assert (tmp_path / "answers.bin").stat().st_size > 5_000
