"""plan.json: what a trial was to do, written before its first run, so that it can go on after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exchange.allowed import BadSetting
from exchange.json_records import SCHEMA
from exchange.study_records import PlanRecord
from experiments.trials.arms import Arm
from experiments.trials.plan import Plan
from experiments.trials.study import COMPARE, STUDIES
from runs.errors import UserError
from runs.folder import write_json
from runs.record.reading import record_for_report
from runs.record.written_settings import UnknownSettings, settings_as_written

ANEW = "start anew under another name"


def plan_as_dict(plan: Plan) -> dict[str, Any]:
    """plan.json's content: the arms' settings, and every run's name in its order."""
    return {
        "schema": SCHEMA,
        "study": plan.study.name,
        "seed": plan.seed,
        "repeats": plan.repeats,
        "pause_s": plan.pause_s,
        "arms": [_arm_as_dict(arm) for arm in plan.arms],
        "warm_ups": [step.name for step in plan.warm_ups],
        "order": [step.name for step in plan.steps],
    }


def _arm_as_dict(arm: Arm) -> dict[str, Any]:
    return {
        "contender": arm.contender,
        "block": arm.block,
        "levels": dict(arm.levels),
        "settings": arm.settings.as_dict(),
    }


def write_plan(folder: Path, plan: Plan) -> None:
    write_json(folder / "plan.json", plan_as_dict(plan))


def read_plan(folder: Path) -> Plan:
    """UserError where the folder holds no plan of ours, or one that this version would run otherwise."""
    path = folder / "plan.json"
    if not path.exists():
        raise UserError(f"{folder} holds nothing to resume: there is no plan.json in it")
    written = record_for_report(path, PlanRecord)
    try:
        plan = _plan(written)
    except UnknownSettings as error:
        raise UserError(f"{path} was written by another version of exchange: {error}; {ANEW}") from error
    except (AttributeError, KeyError, TypeError, BadSetting) as error:
        raise UserError(f"{path} is damaged ({error}): {ANEW}") from error
    if not _means_the_same(written, plan_as_dict(plan)):
        raise UserError(f"{path} was written by another version of exchange: {ANEW}")
    return plan


def _means_the_same(written: dict[str, Any], planned: dict[str, Any]) -> bool:
    """A setting that came later has its default, which is what was before; all else must be as it was written."""
    settings = [(old["settings"], new["settings"]) for old, new in zip(written["arms"], planned["arms"], strict=True)]
    same = all(name in new and new[name] == value for old, new in settings for name, value in old.items())
    return same and written["order"] == planned["order"]


def _plan(written: dict[str, Any]) -> Plan:
    arms = tuple(_arm(arm) for arm in written["arms"])
    study = STUDIES[written.get("study", COMPARE.name)]
    return Plan(
        arms=arms,
        repeats=written["repeats"],
        seed=written["seed"],
        study=study,
        pause_s=written.get("pause_s", 0.0),
    )


def _arm(written: dict[str, Any]) -> Arm:
    settings = settings_as_written(written["settings"])
    return Arm(written["contender"], written["block"], settings, written.get("levels", {}))
