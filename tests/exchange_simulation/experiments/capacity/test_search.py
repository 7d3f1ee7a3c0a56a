"""The search for a capacity, on simulated systems whose capacity is known."""

from __future__ import annotations

from functools import partial
from math import log

import numpy as np
import pytest

from benchmarks.coverage.capacity import LOWEST_SHARE, SYSTEMS, search
from exchange_simulation.experiments.capacity.curve import Posterior, ProbeOutcome
from exchange_simulation.experiments.capacity.search import (
    ABOVE,
    BELOW,
    FOUND,
    LEAST_PROBES,
    CapacitySearch,
    Probe,
    SearchSettings,
    search_settings_of,
)

LEAST_PER_S, CEILING_PER_S = 100.0, 1e6


def searched(probe: Probe, **settings: float) -> CapacitySearch:
    made = CapacitySearch(probe, lambda: CEILING_PER_S, LEAST_PER_S, SearchSettings(**settings))  # type: ignore[arg-type]
    made.run()
    return made


def quiet(capacity_per_s: float, rate_per_s: float) -> ProbeOutcome:
    """A system without noise, whose figure rises with the square of the rate."""
    ratio = 2 * log(rate_per_s / capacity_per_s)
    return ProbeOutcome(rate_per_s, ratio <= 0, ratio)


def yes_or_no(capacity_per_s: float, rate_per_s: float) -> ProbeOutcome:
    """A system of which only holding or failing is known."""
    return ProbeOutcome(rate_per_s, rate_per_s <= capacity_per_s)


@pytest.mark.parametrize("capacity_per_s", [150.0, 9_876.0, 61_234.0, 700_000.0])
def test_a_quiet_system_s_capacity_is_found_with_few_probes(capacity_per_s: float) -> None:
    made = searched(partial(quiet, capacity_per_s))
    answer = made.answer()
    assert made.kind == FOUND
    assert answer is not None
    assert answer.estimate.value == pytest.approx(capacity_per_s, rel=0.05)
    assert LEAST_PROBES <= len(made.outcomes) <= LEAST_PROBES + 6


def test_holding_and_failing_alone_say_where_the_capacity_is() -> None:
    answer = searched(partial(yes_or_no, 9_876.0)).answer()
    assert answer is not None
    low, value, high = answer.quantiles([0.025, 0.5, 0.975])
    assert low < 9_876 < high
    assert value == pytest.approx(9_876, rel=0.25)


@pytest.mark.parametrize(
    "system",
    [SYSTEMS[0], *(pytest.param(each, marks=pytest.mark.long) for each in SYSTEMS[1:])],
    ids=lambda system: system.name,
)
def test_the_interval_contains_the_capacity_of_a_noisy_system_most_times(system: object) -> None:
    """`python -m benchmarks coverage` counts more of them."""
    covered = sum(search(system, seed).is_covered for seed in range(12))  # type: ignore[arg-type]
    assert covered / 12 >= LOWEST_SHARE / 100 - 0.13


def test_one_bad_probe_moves_the_answer_little() -> None:
    rates = np.geomspace(5_000, 20_000, 24).tolist()
    good = [quiet(10_000.0, rate) for rate in rates]
    bad = [ProbeOutcome(5_200.0, False, 4.0)]
    values = [Posterior(1_000, 100_000).add(each).refined().estimate.value for each in (good, good + bad)]
    assert values[1] == pytest.approx(values[0], rel=0.03)


def test_a_system_that_holds_everything_is_above_the_highest_rate() -> None:
    made = searched(partial(quiet, 1e9))
    found = made.as_dict(is_over=True)
    assert made.kind == ABOVE
    assert found["answer"]["highest_held_orders_per_s"] == CEILING_PER_S
    assert found["capacity_orders_per_s"] is None


def test_a_system_that_holds_nothing_is_below_the_lowest_rate() -> None:
    made = searched(partial(quiet, 1.0))
    found = made.as_dict(is_over=True)
    assert made.kind == BELOW
    assert found["answer"]["lowest_failed_orders_per_s"] == LEAST_PER_S
    assert found["capacity_orders_per_s"] is None
    assert min(outcome.rate_per_s for outcome in made.outcomes) == LEAST_PER_S


def test_one_failed_probe_on_the_way_up_does_not_end_the_bracket() -> None:
    asked: list[float] = []

    def fails_once(rate_per_s: float) -> ProbeOutcome:
        asked.append(rate_per_s)
        return quiet(1.0 if len(asked) == 2 else 100_000.0, rate_per_s)

    made = searched(fails_once)
    answer = made.answer()
    assert asked[1] == asked[2]
    assert answer is not None
    assert answer.estimate.value == pytest.approx(100_000, rel=0.1)


def test_a_search_makes_no_more_probes_than_it_may() -> None:
    made = searched(partial(quiet, 9_876.0), most_probes=5)
    assert len(made.outcomes) == 5
    assert made.stopped is None


def test_a_search_goes_on_until_its_answer_is_as_narrow_as_was_asked() -> None:
    """The interval on the search's first grid was narrow enough before that of the answer was."""
    random = np.random.default_rng(6)

    def noisy(rate_per_s: float) -> ProbeOutcome:
        ratio = 2 * log(rate_per_s / 9_000) + 0.25 * random.normal()
        return ProbeOutcome(rate_per_s, ratio <= 0, ratio)

    made = searched(noisy, precision=0.15)
    assert len(made.outcomes) < SearchSettings.most_probes
    assert made.as_dict(is_over=True)["flags"] == []


def test_an_interval_that_stays_too_wide_is_flagged() -> None:
    flags = searched(partial(yes_or_no, 9_876.0), most_probes=13).as_dict(is_over=True)["flags"]
    assert flags == ["the interval is wider than --precision 0.05 after 13 probes"]


def test_a_search_that_was_interrupted_keeps_what_it_has() -> None:
    def interrupted(rate_per_s: float) -> ProbeOutcome:
        if rate_per_s > 10_000:
            raise KeyboardInterrupt
        return quiet(1e9, rate_per_s)

    made = CapacitySearch(interrupted, lambda: CEILING_PER_S, LEAST_PER_S, SearchSettings())
    with pytest.raises(KeyboardInterrupt):
        made.run()
    found = made.as_dict(is_over=True)
    assert (found["status"], made.kind) == ("partial", ABOVE)
    assert found["flags"] == ["interrupted: the figures are those found until then"]


def test_a_capacity_near_what_the_generator_itself_can_do_is_flagged() -> None:
    assert "generator's own ceiling" in searched(partial(quiet, 900_000.0)).as_dict(is_over=True)["flags"][0]


def test_the_settings_of_an_older_version_s_search_are_understood() -> None:
    old = {"start_per_s": 4e3, "precision": 0.05, "repeats": 5, "pause_s": 0.5, "seed": 1}
    assert search_settings_of({"search": old, "settings": {"duration_s": 1.0}}) == SearchSettings(
        start_per_s=4e3, precision=0.05, pause_s=0.5, seconds=1.0
    )
