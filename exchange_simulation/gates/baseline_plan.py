"""The plan of a comparison that repeats its baseline: the same arms with the same settings, repeats and seed."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from exchange.allowed import BadSetting
from exchange.json_records import Record
from exchange_simulation.experiments.trials.arms import TrialArm
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.experiments.trials.study import COMPARE
from exchange_simulation.gates.baselines import Baseline, difference_in_settings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import json_bytes
from exchange_simulation.launching.hosts.checks import check_hosts
from exchange_simulation.launching.record.reading import UnknownSettings, settings_as_written
from exchange_simulation.launching.transport_checks import check_transport
from exchange_simulation.launching.transport_defaults import with_transport_defaults

TYPE_THE_OPTIONS = "type the options of the comparison yourself, as --transports and --rates"


def plan_of_baseline(baseline: Baseline, repeats: int | None = None) -> TrialPlan:
    """Return the plan that measures again what the baseline measured; with `repeats`, that number of repeats.

    UserError if this version cannot measure it.
    """
    record = baseline.record
    if record["study"] != COMPARE.name:
        raise UserError(
            f"the baseline {baseline.name} was made by exchange {record['study']}, which exchange compare cannot "
            f"measure again: {TYPE_THE_OPTIONS}"
        )
    arms = tuple(_arm(arm, baseline.name) for arm in record["arms"])
    return TrialPlan(arms=arms, repeats=repeats or record["repeats"], seed=record["seed"])


def _arm(written: Record, baseline_name: str) -> TrialArm:
    """Return an arm as `exchange compare` plans it.

    UserError, which names the baseline, if this version cannot measure the arm.
    """
    if written.get("checkout"):
        raise UserError(
            f"the baseline {baseline_name} was measured by the code in {written['checkout']} too: {TYPE_THE_OPTIONS}, "
            "and give that folder as --against"
        )
    try:
        settings = with_transport_defaults(settings_as_written(written["settings"]))
    except (BadSetting, TypeError, UnknownSettings) as error:
        raise UserError(
            f"the baseline {baseline_name} cannot be measured again: {error}; {TYPE_THE_OPTIONS}"
        ) from error
    check_transport(settings)
    check_hosts(settings)
    contender = written["contender"]
    return TrialArm(contender, written["block"], settings, {"transport": contender})


def check_comparable(baseline: Baseline, arms: Iterable[TrialArm]) -> None:
    """UserError if no arm can be held to the baseline, since the baseline lacks it or measured other settings."""
    earlier_arms = {arm["label"]: arm for arm in baseline.record["arms"]}
    reasons = []
    for arm in arms:
        earlier = earlier_arms.get(arm.label)
        if earlier is None:
            continue
        planned = {"settings": orjson.loads(json_bytes(arm.settings.as_dict()))}
        reason = difference_in_settings(earlier, planned)
        if not reason:
            return  # one comparable arm is enough
        reasons.append(reason)
    why = reasons[0] if reasons else f"the baseline has {', '.join(earlier_arms)}"
    raise UserError(
        f"nothing of this comparison can be held to the baseline {baseline.name}: {why}. Without options for load, "
        "transport and engine, exchange compare measures again what the baseline measured"
    )
