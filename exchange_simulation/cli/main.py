"""The `exchange` command. Each subcommand is a file of this folder, loaded when the user calls it."""

from __future__ import annotations

import difflib
import importlib
import os
import signal
import threading
from functools import partial
from typing import Any

import click

from exchange_simulation.cli.standard_output import standard_output
from exchange_simulation.launching.interrupts import (
    BY_SIGNAL,
    ENDING_SIGNALS,
    SignalReceived,
    ended_as_by_ctrl_c,
    interruption_noted,
    on_signals,
)

SECTIONS = {
    "Measure": {
        "run": "One run of the exchange: completion times, counts, a page.",
        "bench": "The papers' messaging benchmarks, by name; suite runs all.",
        "paper": "One of the five papers: measure its figures, test its claims.",
        "simulate": "The engine over a whole market of instruments, without a broker.",
        "match": "The engine alone, over a tape of orders.",
    },
    "Compare": {
        "compare": "Which transport is faster, by how much, and how sure that is.",
        "sweep": "Every combination of some settings, compared.",
        "capacity": "The highest rate that holds an objective, as p99 <= 1ms.",
        "nagle": "Nagle's algorithm off and on: completion time and packets.",
        "faults": "Break one thing in each run, and count the orders that are lost.",
    },
    "Look": {
        "doctor": "What on this machine spoils figures, and what to do.",
        "results": "What was run: list, show, diff, rerun.",
        "serve": "Results in the browser; start, watch and stop runs there.",
        "report": "Make the page and tables of a run, trial or benchmark again.",
    },
    "Spark": {"spark": "Tables of many runs, and of a run under way."},
    "By hand": {
        "gateway": "The gateway alone: offers orders, times their answers.",
        "engine": "The matching engine alone: answers one gateway's orders.",
        "reporter": "The stats reporter alone: writes what gateway and engine measured.",
        "subscriber": "A subscriber alone: receives an engine's market data.",
        "keys": "Keys for --secure: runs that are encrypted and admit nobody else.",
        "tape": "A file of seeded orders, to be matched or replayed.",
        "broker": "A private RabbitMQ for several runs: start, status, stop.",
        "hosts": "The hosts of run --hosts: whether they can take part, files for a cluster.",
        "network": "Emulated networks: which there are, and whether they work here.",
    },
}
"""The subcommands by what a user wants, each with a line of help; each is a file of this folder with a `command`."""
COMMANDS = tuple(name for section in SECTIONS.values() for name in section)

COMPONENTS = frozenset(("gateway", "engine", "reporter", "subscriber"))
"""Subcommands that handle signals in their loop; before it, SIGINT waits for a moment in which nothing is imported."""

WITHOUT_KERNELS = {"results", "report", "serve", "keys", "broker"}
"""Subcommands that run no compiled code in their own process."""

OPEN_TO_OTHERS = {"spark", "tape", "match"}
"""Subcommands whose files may be for others too: those of a cluster, and those that a user names."""
PRIVATE_UMASK = 0o077

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""NumPy's linear algebra is not used here; its threads would spin on every processor, in every component."""


class CommandGroup(click.Group):
    """A group of subcommands: a name may have any case, and a slip gets a suggestion."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args[0].lower() in names:
            args = [args[0].lower(), *args[1:]]
        else:
            close = difflib.get_close_matches(args[0], names, n=1)
            if close:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)


class Subcommands(CommandGroup):
    """Loads the subcommand NAME: the object `command` in cli/NAME.py. Its own help loads none."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command; a standard output that cannot be written to is a sentence."""
        with standard_output():
            return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; if a signal ended it, the exit code is the signal's: 130 after Ctrl-C."""
        try:
            return self._invoke(ctx)
        except KeyboardInterrupt as error:
            _ignore_further_signals()
            click.echo("interrupted", err=True)
            number = error.number if isinstance(error, SignalReceived) else signal.SIGINT
            raise SystemExit(_exit_code(ctx, otherwise=BY_SIGNAL + number)) from error
        except SystemExit as error:
            if _is_interrupted(ctx):
                raise SystemExit(_exit_code(ctx, otherwise=1)) from error
            raise
        except click.ClickException as error:
            if not _is_interrupted(ctx):
                raise
            error.show()
            raise SystemExit(_exit_code(ctx, otherwise=1)) from error

    def _invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; a library that was left out is named, with the command that installs it."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            from exchange_simulation.launching.errors import UserError, advice_on_missing

            sentence = advice_on_missing(error)
            if sentence is None:
                raise
            raise UserError(sentence) from error
        except ImportError as error:
            if error.name != "numba":
                raise
            raise click.ClickException(error.msg) from error

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        if name not in WITHOUT_KERNELS:
            from exchange_simulation.launching.kernel_cache import settle_kernel_cache

            settle_kernel_cache()
        command: click.Command = importlib.import_module(f"exchange_simulation.cli.{name}").command
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:<{width}}", about) for name, about in commands.items()])


def _ignore_further_signals() -> None:
    """Let no second signal raise where the exit code of the first one is already chosen: click would make it 1."""
    if threading.current_thread() is threading.main_thread():
        on_signals(ENDING_SIGNALS, lambda *_: None)


def _is_interrupted(ctx: click.Context) -> bool:
    """True if a signal asked the command to end, and the command has not ended in the ordinary way by it."""
    return ctx.obj is not None and ctx.obj.came


def _exit_code(ctx: click.Context, otherwise: int) -> int:
    """Return the exit code of the signal that ended the command; `otherwise` if none did."""
    return ctx.obj.exit_code(otherwise) if ctx.obj is not None else otherwise


@click.group(cls=Subcommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="exchange-simulation", prog_name="exchange")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Measure messaging with a stock exchange: how fast orders are answered, over what.

    Start with: exchange run
    """
    _wait_for_children()
    if ctx.invoked_subcommand in COMPONENTS:
        ctx.obj = ctx.with_resource(interruption_noted(numbers=(signal.SIGINT,)))
    else:
        ctx.obj = ctx.with_resource(ended_as_by_ctrl_c())
    if ctx.invoked_subcommand not in OPEN_TO_OTHERS:
        ctx.call_on_close(partial(os.umask, os.umask(PRIVATE_UMASK)))


def _wait_for_children() -> None:
    """Let this process learn how its children ended, also where its parent ignores SIGCHLD, as supervisors do.

    An ignored SIGCHLD is inherited, and makes the kernel drop every child's exit code: a killed component looked as if
    it had ended in order.
    """
    is_main_thread = threading.current_thread() is threading.main_thread()
    if is_main_thread and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


if __name__ == "__main__":
    main(prog_name="exchange")
