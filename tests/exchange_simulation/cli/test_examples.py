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
    "tape stats": "",
    "match": "",
    "keys": "",
    "simulate": "--orders 1e4 --master none",
    "report": "--no-spark",
    "results list": "",
    "results show": "",
    "results export": "",
    "results rerun": "--no-spark",
    "results diff": "",
    "network": "",
    "hosts compose": "",
    "hosts kubernetes": "",
    "doctor": "--seconds 0.5",
    "compare": "--dry-run",
    "nagle": "--dry-run",
    "sweep": "--dry-run",
    "bench": "--transport memory --sizes 64 --repeats 1",
    "paper": "--dry-run",
    "capacity": "--transport memory --slo 'max <= 9s' --from 300000 --seconds 0.1 --probes 4 --pause 0",
}
"""By command, in an order in which each finds what it needs."""
ELSEWHERE = {
    "engine",
    "gateway",
    "reporter",
    "subscriber",
    "broker",
    "hosts",
    "hosts check",
    "faults",
    "serve",
    "results",
    "results baseline",
    "results repair",
    "spark",
    "tape import",
    "spark live",
    "spark ingest",
    "spark summary",
    "spark sql",
    "spark bars",
    "spark samples",
    "spark prepare",
    "spark submit",
    "spark server",
}
"""On other hosts, of a broker that stays, after a death, or slow to start: other tests run these."""
GROUPS = {"hosts", "results", "spark", "tape"}
"""Commands with subcommands, each of which has an example."""


def examples() -> dict[str, str]:
    """By command, the first line of its help's example."""
    context = click.Context(main)
    example_of = {}
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        example_of[name] = first_example(command)
        if name in GROUPS:
            assert isinstance(command, click.Group)
            for subcommand_name, subcommand in command.commands.items():
                if subcommand.hidden:
                    continue
                example_of[f"{name} {subcommand_name}"] = first_example(subcommand)
    return example_of


def first_example(command: click.Command) -> str:
    """Empty if its help has none."""
    example = re.search(r"Example: exchange ([^;\n]*)", command.help or "")
    return example.group(1) if example else ""


def test_every_example_is_run_here_or_elsewhere() -> None:
    assert examples().keys() == SHORTER.keys() | ELSEWHERE
    assert all(examples().values())


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    example_of = examples()
    for name, shorter in SHORTER.items():
        outcome = CliRunner().invoke(main, [*shlex.split(example_of[name]), *shlex.split(shorter)])
        assert outcome.exit_code == 0, (example_of[name], outcome.output)
        assert outcome.output.strip(), example_of[name]
    assert (tmp_path / "results" / "second" / "run.json").exists()
    assert (tmp_path / "answers.bin").stat().st_size > 5_000
