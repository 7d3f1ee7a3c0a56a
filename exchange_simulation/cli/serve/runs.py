"""The run that was started from the browser: at most one at a time, since two would spoil each other's figures."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from pathlib import Path

import click

from exchange.declared import RUN
from exchange.settings import RunSettings
from exchange_simulation.launching.command_line import exchange_command
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import run_name
from exchange_simulation.launching.option_table import TABLE
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.typed_settings import run_settings, without_default_rate

Asked = dict[str, str]
"""The values of a run's options, by parameter, as they were typed."""
NOT_IN_BROWSER = {"results", "hosts"}
"""The server has its folder of results, and a hosts file names commands, which no page may have executed."""
FORM = tuple(option for option in TABLE if option.commands & RUN and option.field not in NOT_IN_BROWSER)
"""The options that the browser may give."""
PATIENCE_S = 30.0
"""How long a run may take to write its record after it was told to end."""
LAST_LINES = 12


class Runs:
    """Starts and ends runs. `stop` ends the run under way; if this process is killed, the watchdog ends the run."""

    def __init__(self, results: Path, group: ProcessGroup) -> None:
        self._results = results
        self._group = group
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self.name = ""
        self.asked = Asked()
        self.settings = RunSettings()

    def is_under_way(self, name: str | None = None) -> bool:
        """True if the run that was started last goes on, and has this name if one is given."""
        goes_on = self._child is not None and self._child.poll() is None
        has_name = name is None or name == self.name
        return goes_on and has_name

    def start(self, asked: Asked) -> str:
        """Start a run; return the name of its folder. UserError or UsageError if it cannot be started."""
        with self._lock:
            return self._start(asked)

    def change_rate(self, rate: str) -> str:
        """End the run, and start one with the same settings at another rate; return its name."""
        with self._lock:
            asked = {**self.asked, "orders_per_s": rate}
            settings_of(asked)
            self._end()
            return self._start(asked)

    def stop(self) -> None:
        """End the run that is under way, if any. Another run may be started afterwards."""
        with self._lock:
            self._end()

    def last_lines(self, name: str) -> list[str]:
        """Return the last lines of the run's output; empty if this server did not start the run."""
        with contextlib.suppress(OSError):
            return self._log(name).read_text(errors="replace").splitlines()[-LAST_LINES:]
        return []

    def _start(self, asked: Asked) -> str:
        if self.is_under_way():
            spoils = "two runs at a time spoil each other's figures"
            raise UserError(f"{self.name} is under way, and {spoils}: stop it first")
        settings = settings_of(asked)
        name = run_name(settings)
        words = [*words_of(asked), "--results", str(self._results), "--name", name, "--no-spark"]
        with self._log(name).open("wb") as log:
            self._child = subprocess.Popen(
                exchange_command("run", *words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=self._group.id,
            )
        self.name = name
        self.asked = asked
        self.settings = settings
        return name

    def _end(self) -> None:
        """Let the run end as Ctrl-C does, so that it keeps its record; kill it if it does not."""
        if self._child is None:
            return
        self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _log(self, name: str) -> Path:
        return self._group.folder / f"{name}.log"


def settings_of(asked: Asked) -> RunSettings:
    """Return the settings that `exchange run` would have. UsageError names the option that is refused."""
    from exchange_simulation.cli.run import check, command

    with command.make_context("run", words_of(asked)) as context:
        fields = {option.field for option in FORM}
        given = {name: context.params[name] for name in fields}
        settings = run_settings(**without_default_rate(given))
        check(settings)
    return settings


def words_of(asked: Asked) -> list[str]:
    """Return the words of the command line. A value is joined to its option by =, since it may begin with a dash."""
    options = {option.field: option for option in FORM}
    unknown = sorted(asked.keys() - options.keys())
    if unknown:
        raise click.UsageError(f"a run has no option for {', '.join(unknown)}")
    words = []
    for field, typed in asked.items():
        option = options[field]
        value = typed.strip()
        if not value:
            continue
        words.append(option.name if option.is_flag else f"{option.name}={value}")
    return words
