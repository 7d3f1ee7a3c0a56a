"""Arms that the code of another checkout measures, so that two versions of the code are compared in turns."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from exchange.json_records import Record
from exchange.record_kinds import RunRecord
from exchange.settings import RunSettings
from exchange_simulation.experiments.trials.arms import TrialArm
from exchange_simulation.launching.command_line import exchange_command
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.interrupts import interruptible, signals_deferred
from exchange_simulation.launching.option_table import TABLE, arguments
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.record.reading import Unusable, read_record

PACKAGE = Path("exchange_simulation") / "cli" / "__main__.py"
"""The file by which a checkout is recognised."""
HERE = Path(__file__).resolve().parents[3]
"""The checkout of the code that is running."""
PATIENCE_S = 20.0
"""How long a run that was asked to end may take to write its record."""
FILES = ("tape", "hosts", "journal", "opening", "secure")
"""Settings that name a file or folder of the user."""
ALWAYS_TYPED = ("transport", "orders_per_s")
"""Settings that another version may have with another default."""
CODE = "code"
"""The field in which an arm and its twin differ; it is no setting of a run."""


@dataclass(frozen=True)
class Checkout:
    """A folder with another version of this project."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name


def is_checkout(path: Path) -> bool:
    """Return True if the folder holds this project's code."""
    return (path / PACKAGE).is_file()


def with_twins(arms: tuple[TrialArm, ...], checkout: Checkout) -> tuple[TrialArm, ...]:
    """Return each arm, measured by the code that is running, and after it its twin, measured by the checkout's code.

    Both are measured by `exchange run` in a process of its own: what the command costs, both cost.
    """
    if checkout.folder == HERE:
        raise UserError(f"--against is {checkout.folder}, whose code is running: give the folder of another checkout")
    doubled = []
    for arm in arms:
        own_words = {**arm.words_by_field, CODE: "this code"}
        twin_words = {**arm.words_by_field, CODE: checkout.name}
        doubled.append(replace(arm, words_by_field=own_words, checkout=HERE))
        doubled.append(
            replace(
                arm,
                contender=twin_name(arm.contender, checkout.name),
                words_by_field=twin_words,
                checkout=checkout.folder,
            )
        )
    return tuple(doubled)


def twin_name(contender: str, checkout_name: str) -> str:
    """Return the name of a contender as the checkout's code measures it."""
    return f"{contender} by {checkout_name}"


def measure_by_checkout(folder: Path, settings: RunSettings, checkout: Path) -> Record:
    """Make one run by `exchange run` of the checkout's code, and return run.json's content.

    UserError if the run cannot start, or leaves no record. KeyboardInterrupt after a signal, once the run has ended.
    """
    trial = folder.parent.resolve()
    command = [*exchange_command("run"), *_typed(settings)]
    command += ["--results", str(trial), "--name", folder.name, "--no-spark", "--no-page", "--json"]
    folder.rmdir()  # the run makes its folder itself, and refuses one that is there
    with ProcessGroup() as group:  # if this process is killed, the run ends too
        with signals_deferred():
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=_environment(checkout),
                cwd=trial,  # there is no exchange.toml, whose defaults would change the settings
                process_group=group.id,
            )
        try:
            with interruptible():
                _, errors = process.communicate()
        except KeyboardInterrupt:
            _end(process)
            raise
    try:
        return read_record(folder / "run.json", RunRecord)
    except Unusable as error:
        lines = [line for line in errors.splitlines() if line.strip()]
        why = lines[-1] if lines else error.message
        raise UserError(f"exchange run of the code in {checkout} made no record: {why}") from error


def _typed(settings: RunSettings) -> list[str]:
    """Return the words that set what differs from the defaults. An older version may lack a setting at its default.

    Files have absolute paths, since the run is started in another folder.
    """
    changed: dict[str, Any] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value == field.default and field.name not in ALWAYS_TYPED:
            continue
        if field.name in FILES and value is not None and Path(value).exists():
            value = str(Path(value).resolve())
        changed[field.name] = value
    return arguments("run", changed)


def _environment(checkout: Path) -> dict[str, str]:
    """Return the environment in which Python finds the checkout's code first.

    It lacks the user's defaults of options, as EXCHANGE_RATE: the settings have them already. It has passwords.
    """
    environment = dict(os.environ)
    for option in TABLE:
        environment.pop(f"EXCHANGE_{option.name.removeprefix('--').replace('-', '_').upper()}", None)
    earlier_path = os.environ.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([str(checkout), earlier_path] if earlier_path else [str(checkout)])
    return environment


def _end(process: subprocess.Popen[str]) -> None:
    """Ask a run to end, which writes its record, as after Ctrl-C; kill it if it takes too long."""
    process.send_signal(signal.SIGTERM)
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.communicate()
