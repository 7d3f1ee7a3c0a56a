"""A sweep's plan, of its file and of what was typed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from exchange.allowed import BadSetting
from exchange.settings import RunSettings
from experiments.sweep.arms import sweep_arms
from experiments.sweep.description import Description, typed_levels
from experiments.sweep.file import read_description
from experiments.sweep.keys import SHORT, keys
from experiments.trials.plan import Plan, expected_s
from experiments.trials.study import SWEEP
from experiments.trials.trial import duration
from runs.errors import UserError

A_DAY_S = 86_400.0


def planned(file: Path | None, typed: Mapping[str, Any]) -> Plan:
    """`typed` by parameter of the command. UserError, or a usage error, says what is wrong, and where."""
    described = (read_description(file) if file else Description()).with_typed(*_typed(typed), **_numbers(typed))
    arms = sweep_arms(described)
    try:
        seed = described.run.get("seed", RunSettings.seed)
        return Plan(arms=arms, repeats=described.repeats, seed=seed, study=SWEEP, pause_s=described.pause_s)
    except BadSetting as error:
        raise click.UsageError(str(error)) from error


def _typed(typed: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(vary, run) by key."""
    short = [f"{key}={typed[option]}" for key, option in SHORT.items() if option in typed]
    varied = [*short, *typed.get("vary", ())]
    vary = dict(map(typed_levels, varied))
    run = {name: typed[key.field] for name, key in keys().items() if key.field in typed}
    twice = [*(vary.keys() & run.keys()), *(name for name in vary if len(varied) > len(vary))]
    if twice:
        raise UserError(f"{', '.join(sorted(set(twice)))} is given twice: vary it, or set it for all runs")
    return vary, run


def _numbers(typed: Mapping[str, Any]) -> dict[str, Any]:
    return {name: typed[name] for name in ("repeats", "pause_s") if name in typed}


def confirm(plan: Plan, yes: bool) -> None:
    """Nobody starts more than a day by mistake. UserError where nobody is there to ask."""
    seconds = expected_s(plan, [*plan.warm_ups, *plan.steps])
    if yes or seconds <= A_DAY_S:
        return
    told = f"{len(plan.steps)} runs take about {duration(seconds)}, more than a day"
    if not sys.stdin.isatty():
        raise UserError(f"{told}: say --yes, or shorten it with --orders, --duration, --repeats or fewer values")
    click.confirm(f"{told}. Go on?", abort=True, err=True)
