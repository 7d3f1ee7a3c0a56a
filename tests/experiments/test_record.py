"""run.json, from what is left of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange.settings import RunSettings
from experiments.outcome import Outcome
from experiments.record import Conditions, make_record


@pytest.mark.parametrize(
    ("settings", "offered"),
    [
        (RunSettings(orders_per_s=800.0), 800.0),
        (RunSettings(orders_per_s=800.0, arrivals="poisson"), 800.0),
        (RunSettings(orders_per_s=800.0, arrivals="ramp:0.5..1"), 600.0),
        (RunSettings(orders_per_s=None), None),
    ],
)
def test_the_offered_rate_is_the_mean_over_the_run(tmp_path: Path, settings: RunSettings, offered: float) -> None:
    known = Conditions(name="x", url=None, settings=settings.as_dict(), host={}, versions={}, started_at="")
    assert make_record(tmp_path, known, Outcome())["rates"] == {"offered_orders_per_s": offered}
