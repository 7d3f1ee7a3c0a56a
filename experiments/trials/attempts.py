"""A step's runs on disk: one folder an attempt, `STEP-xxxxxx`. The first valid one counts; the others are kept."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from exchange import json_records
from exchange.json_records import NEWER, SCHEMA, UnusableRecord, decode
from exchange.run_record import RunRecord
from experiments.trials.plan import WARM_UP, Step
from runs.folder import new_run_folder

Record = json_records.Record

VALID = ("complete", "saturated")
"""The statuses of a run whose figures can be used."""
ATTEMPT = re.compile("(?P<step>.+)-[0-9a-f]{6}")
NEWER_RECORD = f"its run.json is of a newer schema than {SCHEMA}, which this exchange reads"
UNRECORDED = "ended before it wrote its record"


def new_attempt(trial: Path, step: Step) -> Path:
    """A run's name is its token on every link and queue, so no two attempts share one."""
    return new_run_folder(trial, f"{step.name}-{secrets.token_hex(3)}")


def attempts(trial: Path) -> dict[str, list[Record]]:
    """The records of all attempts by their step's name, oldest first; of one that was killed, as much as is known.

    In one look at the folder, which may hold thousands.
    """
    found: dict[str, list[Record]] = {}
    for folder in trial.iterdir():
        named = ATTEMPT.fullmatch(folder.name)
        if named and folder.is_dir():
            found.setdefault(named["step"], []).append(read_record(folder))
    return {step: sorted(records, key=lambda record: str(record.get("started_at"))) for step, records in found.items()}


def is_warm_up(run: Path) -> bool:
    """Whether the folder is that of a trial's run which is in none of its figures."""
    return run.name.startswith(f"{WARM_UP:02}-") and (run.parent / "plan.json").exists()


def is_valid(record: Record) -> bool:
    """Whether the run's figures can be used."""
    return record["status"] in VALID


def read_record(folder: Path) -> Record:
    """run.json's content; a record that cannot be used is a partial run's."""
    try:
        return decode((folder / "run.json").read_bytes(), RunRecord)
    except OSError:
        return unmeasured(folder, UNRECORDED)
    except UnusableRecord as error:
        return unmeasured(folder, NEWER_RECORD if error.status == NEWER else UNRECORDED)


def unmeasured(folder: Path, reason: str) -> Record:
    """The record of a run that never came to measure."""
    return {"schema": 1, "name": folder.name, "status": "partial", "reasons": [reason]}
