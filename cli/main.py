"""The `exchange` command. Each subcommand is a file of this folder, loaded when the user calls it."""

from __future__ import annotations

import importlib
import os

import click

COMMANDS = (
    "bench", "broker", "capacity", "compare", "doctor", "engine", "gateway", "match", "nagle", "network", "report",
    "reporter", "results", "run", "simulate", "spark", "sweep", "tape",
)  # fmt: skip
"""The subcommands: each is a file of this folder with a `command`."""

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""NumPy's linear algebra is not used here; its threads would spin on every processor, in every component."""


class Subcommands(click.Group):
    """Loads the subcommand NAME: the object `command` in cli/NAME.py."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"cli.{name}").command
        return command


@click.group(cls=Subcommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="exchange-simulation", prog_name="exchange")
def main() -> None:
    """A stock exchange simulation with which people measure messaging."""
