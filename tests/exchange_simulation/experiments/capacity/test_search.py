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

LEAST_PER_S = 100.0
CEILING_PER_S = 1e6


def searched(probe: Probe, **settings: float) -> CapacitySearch:
    """A finished search with this probe."""
    search_settings = SearchSettings(**settings)  # type: ignore[arg-type]
    capacity_search = CapacitySearch(probe, lambda: CEILING_PER_S, LEAST_PER_S, search_settings)
    capacity_search.run()
    return capacity_search


def quiet(capacity_per_s: float, rate_per_s: float) -> ProbeOutcome:
    """A system without noise, whose figure rises with the square of the rate."""
    ratio = 2 * log(rate_per_s / capacity_per_s)
    return ProbeOutcome(rate_per_s, ratio <= 0, ratio)


def yes_or_no(capacity_per_s: float, rate_per_s: float) -> ProbeOutcome:
    """A system whose probes hold or fail, but have no figure."""
    return ProbeOutcome(rate_per_s, rate_per_s <= capacity_per_s)


@pytest.mark.parametrize("capacity_per_s", [150.0, 9_876.0, 61_234.0, 700_000.0])
def test_the_capacity_of_a_quiet_system_takes_few_probes(capacity_per_s: float) -> None:
    capacity_search = searched(partial(quiet, capacity_per_s))
    answer = capacity_search.answer()
    assert capacity_search.kind == FOUND
    assert answer is not None
    assert answer.estimate.value == pytest.approx(capacity_per_s, rel=0.05)
    assert LEAST_PROBES <= len(capacity_search.outcomes) <= LEAST_PROBES + 6


def test_probes_without_figures_still_bound_the_capacity() -> None:
    answer = searched(partial(yes_or_no, 9_876.0)).answer()
    assert answer is not None
    low, value, high = answer.quantiles([0.025, 0.5, 0.975])
    assert low < 9_876 < high
    assert value == pytest.approx(9_876, rel=0.25)


@pytest.mark.parametrize(
    "system",
    [SYSTEMS[0], *(pytest.param(system, marks=pytest.mark.long) for system in SYSTEMS[1:])],
    ids=lambda system: system.name,
)
def test_the_interval_mostly_contains_the_capacity_of_a_noisy_system(system: object) -> None:
    """`python -m benchmarks coverage` makes more searches. The tolerance of 0.13 is for the few searches here."""
    searches = 12
    covered = sum(search(system, seed).is_covered for seed in range(searches))  # type: ignore[arg-type]
    assert covered / searches >= LOWEST_SHARE / 100 - 0.13


def test_one_bad_probe_moves_the_answer_little() -> None:
    rates = np.geomspace(5_000, 20_000, 24).tolist()
    good_probes = [quiet(10_000.0, rate) for rate in rates]
    bad_probe = ProbeOutcome(5_200.0, False, 4.0)
    without_bad = Posterior(1_000, 100_000).add(good_probes).refined().estimate.value
    with_bad = Posterior(1_000, 100_000).add([*good_probes, bad_probe]).refined().estimate.value
    assert with_bad == pytest.approx(without_bad, rel=0.03)


def test_a_system_that_holds_everything_is_above_the_highest_rate() -> None:
    capacity_search = searched(partial(quiet, 1e9))
    record = capacity_search.as_dict(is_over=True)
    assert capacity_search.kind == ABOVE
    assert record["answer"]["highest_held_orders_per_s"] == CEILING_PER_S
    assert record["capacity_orders_per_s"] is None


def test_a_system_that_holds_nothing_is_below_the_lowest_rate() -> None:
    capacity_search = searched(partial(quiet, 1.0))
    record = capacity_search.as_dict(is_over=True)
    assert capacity_search.kind == BELOW
    assert record["answer"]["lowest_failed_orders_per_s"] == LEAST_PER_S
    assert record["capacity_orders_per_s"] is None
    assert min(outcome.rate_per_s for outcome in capacity_search.outcomes) == LEAST_PER_S


def test_one_failed_probe_does_not_end_the_search_for_a_bracket() -> None:
    probed_rates: list[float] = []

    def fail_second_probe(rate_per_s: float) -> ProbeOutcome:
        probed_rates.append(rate_per_s)
        capacity_per_s = 1.0 if len(probed_rates) == 2 else 100_000.0
        return quiet(capacity_per_s, rate_per_s)

    capacity_search = searched(fail_second_probe)
    answer = capacity_search.answer()
    assert probed_rates[1] == probed_rates[2]
    assert answer is not None
    assert answer.estimate.value == pytest.approx(100_000, rel=0.1)


def test_a_search_makes_at_most_the_allowed_number_of_probes() -> None:
    capacity_search = searched(partial(quiet, 9_876.0), most_probes=5)
    assert len(capacity_search.outcomes) == 5
    assert capacity_search.stopped is None


def test_a_search_ends_only_when_the_refined_interval_is_narrow() -> None:
    """With this seed the interval of the coarse grid is narrow enough earlier than the refined one."""
    random = np.random.default_rng(6)

    def noisy(rate_per_s: float) -> ProbeOutcome:
        ratio = 2 * log(rate_per_s / 9_000) + 0.25 * random.normal()
        return ProbeOutcome(rate_per_s, ratio <= 0, ratio)

    capacity_search = searched(noisy, precision=0.15)
    assert len(capacity_search.outcomes) < SearchSettings.most_probes
    assert capacity_search.as_dict(is_over=True)["flags"] == []


def test_an_interval_that_stays_too_wide_is_flagged() -> None:
    capacity_search = searched(partial(yes_or_no, 9_876.0), most_probes=13)
    flags = capacity_search.as_dict(is_over=True)["flags"]
    assert flags == ["the interval is wider than --precision 0.05 after 13 probes"]


def test_an_interrupted_search_keeps_the_outcomes_so_far() -> None:
    def interrupted(rate_per_s: float) -> ProbeOutcome:
        if rate_per_s > 10_000:
            raise KeyboardInterrupt
        return quiet(1e9, rate_per_s)

    capacity_search = CapacitySearch(interrupted, lambda: CEILING_PER_S, LEAST_PER_S, SearchSettings())
    with pytest.raises(KeyboardInterrupt):
        capacity_search.run()
    record = capacity_search.as_dict(is_over=True)
    assert record["status"] == "partial"
    assert capacity_search.kind == ABOVE
    assert record["flags"] == ["interrupted: the figures are those found until then"]


def test_a_capacity_near_the_ceiling_of_the_generator_is_flagged() -> None:
    capacity_search = searched(partial(quiet, 900_000.0))
    flags = capacity_search.as_dict(is_over=True)["flags"]
    assert "generator's own ceiling" in flags[0]


def test_the_search_settings_of_an_older_record_are_read() -> None:
    old = {"start_per_s": 4e3, "precision": 0.05, "repeats": 5, "pause_s": 0.5, "seed": 1}
    assert search_settings_of({"search": old, "settings": {"duration_s": 1.0}}) == SearchSettings(
        start_per_s=4e3, precision=0.05, pause_s=0.5, seconds=1.0
    )
