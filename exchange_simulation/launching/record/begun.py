"""begun.json: the conditions of a run under way. If the launcher dies, `exchange results repair` needs them.

begun.json is written before the components start, and removed when run.json is written.
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import psutil

from exchange.allowed import BadSetting
from exchange.json_records import SCHEMA
from exchange.settings import RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import write_json
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.record.machine import has_proc, text_of
from exchange_simulation.launching.record.outcome import RunOutcome
from exchange_simulation.launching.record.reading import Unusable, damage_named, read_record, read_spool
from exchange_simulation.launching.record.record import Conditions, make_record, write_record
from exchange_simulation.launching.record.streams import stream_counts

FILE = "begun.json"
BOOT_ID = "proc/sys/kernel/random/boot_id"


class LauncherProcess(TypedDict):
    """The process that will write run.json."""

    host: str
    pid: int
    started_s: float
    """By the wall clock, which may be set while the process runs."""
    boot_id: NotRequired[str | None]
    started_ticks: NotRequired[int | None]
    """The process's start in the kernel's ticks since that boot; None without /proc, missing in older records."""


class BegunRecord(TypedDict):
    schema: int
    name: str
    url: str | None
    settings: dict[str, Any]
    host: dict[str, Any]
    versions: dict[str, Any]
    started_at: str
    launcher: LauncherProcess
    reporter: NotRequired[int]
    """The reporter's number, if a reporter that was started by hand writes run.json, of its own pairs."""


def note_begun(folder: Path, conditions: Conditions, reporter: int | None = None) -> None:
    """Write begun.json into the run's folder."""
    launcher = LauncherProcess(
        host=platform.node(),
        pid=os.getpid(),
        started_s=psutil.Process().create_time() if has_proc() else time.time(),
        boot_id=text_of(BOOT_ID),
        started_ticks=_started_ticks(os.getpid()),
    )
    record = {"schema": SCHEMA, **asdict(conditions), "launcher": launcher}
    if reporter is not None:
        record["reporter"] = reporter
    write_json(folder / FILE, record)


def note_ended(folder: Path) -> None:
    """Remove begun.json after run.json was written."""
    (folder / FILE).unlink(missing_ok=True)


def repair(folder: Path) -> dict[str, Any]:
    """Write run.json of a run whose launcher died; return its content. UserError if there is nothing to do."""
    if os.path.exists(folder / "run.json"):
        raise UserError(f"{folder} has its run.json: nothing is to repair")
    if not os.path.exists(folder / FILE):
        has_spool = os.path.exists(folder / "spool")
        advice = "exchange report shows its spool" if has_spool else "exchange results list shows runs"
        raise UserError(f"{folder} has no {FILE}, from which run.json could be made: {advice}")
    begun = read_record(folder / FILE, BegunRecord)
    launcher = begun["launcher"]
    if launcher["host"] != platform.node():
        raise UserError(f"{folder} began on the host {launcher['host']}: repair it there")
    if _is_alive(launcher):
        raise UserError(f"{folder} is under way: process {launcher['pid']} will write its run.json")
    before = Conditions(**{name: begun[name] for name in Conditions.__dataclass_fields__})
    with damage_named(folder):
        record = make_record(read_spool(folder), before, _outcome(folder, begun))
    write_record(folder, record)
    note_ended(folder)
    return record


def _is_alive(launcher: LauncherProcess) -> bool:
    """Return True if the launcher still runs. Another process may have got its number.

    Without /proc nobody can tell the two apart, and any process with that number counts as the launcher.
    """
    if not has_proc():
        return _exists(launcher["pid"])
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(launcher["pid"])
        return process.status() != psutil.STATUS_ZOMBIE and _is_launcher(process, launcher)
    return False


def _exists(pid: int) -> bool:
    """Return True if there is a process with this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


def _is_launcher(process: psutil.Process, launcher: LauncherProcess) -> bool:
    """Return True if the process is the launcher, which started at the same tick.

    Records of older versions have no ticks; then the starts are compared by the wall clock.
    """
    boot_id = launcher.get("boot_id")
    started_ticks = launcher.get("started_ticks")
    if boot_id and started_ticks is not None:
        return text_of(BOOT_ID) == boot_id and _started_ticks(process.pid) == started_ticks
    return bool(abs(process.create_time() - launcher["started_s"]) < 1.0)


def _started_ticks(pid: int) -> int | None:
    """Return the process's start in ticks since boot, which setting the clock does not change; None without /proc.

    The start is field 22 of proc(5). Field 2, the name, ends with the last bracket, so `fields` begins with field 3.
    """
    _, _, after_name = (text_of(f"proc/{pid}/stat") or "").rpartition(")")
    fields = after_name.split()
    return int(fields[22 - 3]) if fields else None


def _outcome(folder: Path, begun: dict[str, Any]) -> RunOutcome:
    """Return an outcome without results. Its failure is the end of the process that should have written run.json."""
    settings = begun["settings"]
    try:
        numbers = {name: settings.get(name, 1) for name in ("pairs", "gateways", "engines", "reporters")}
        lineup = Lineup.of(RunSettings(instruments=numbers["engines"], **numbers))
    except (BadSetting, TypeError) as error:
        raise UserError(f"{folder / FILE} is damaged: {error}") from error
    number = begun.get("reporter")
    if number is None:
        writer = "launcher"
    else:
        writer = "reporter"
        lineup = lineup.of_reporter(number)
    failure = f"the {writer} ended without writing run.json; this one was made from the spool"
    return RunOutcome(lineup=lineup, failures=(failure,), streams=stream_counts(folder, lineup))


def settings_under_way(folder: Path) -> dict[str, Any] | None:
    """Return the settings of a run under way on this host; None if it has ended, or its launcher is gone."""
    with contextlib.suppress(Unusable):
        begun = read_record(folder / FILE, BegunRecord)
        if _is_unrecorded_run_of_this_host(folder, begun["launcher"]) and _is_alive(begun["launcher"]):
            return dict(begun["settings"])
    return None


def _is_unrecorded_run_of_this_host(folder: Path, launcher: LauncherProcess) -> bool:
    """Return True if the run began on this host, and has no run.json yet."""
    return launcher["host"] == platform.node() and not (folder / "run.json").exists()


def left_unfinished(results: Path) -> Iterator[Path]:
    """Yield the runs in a results folder that began on this host and whose launcher is gone."""
    for path in sorted(results.glob(f"*/{FILE}")):
        with contextlib.suppress(Unusable):
            launcher = read_record(path, BegunRecord)["launcher"]
            if _is_unrecorded_run_of_this_host(path.parent, launcher) and not _is_alive(launcher):
                yield path.parent
