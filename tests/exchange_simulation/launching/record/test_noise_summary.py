"""One rule says which results are noisy: of a run, a trial, a search, a benchmark."""

from __future__ import annotations

from typing import Any

import pytest

from exchange_simulation.launching.record.noise import MOST_SHARE
from exchange_simulation.launching.record.noise_summary import NoiseSummary, noise_of

QUIET = 0.01
NOISY = 0.2


def measurement(share: float | None) -> dict[str, Any]:
    return {"noise": {"window_s": 1.0, "share_of_all_cpus": share}}


def benchmark(*shares: float | None) -> dict[str, Any]:
    return {"rows": [{"repeats": [measurement(share) for share in shares]}]}


def test_a_share_at_the_limit_is_not_noisy() -> None:
    assert not noise_of(measurement(MOST_SHARE)).is_noisy
    assert noise_of(measurement(MOST_SHARE + 0.001)).is_noisy


@pytest.mark.parametrize(
    "record",
    [
        benchmark(NOISY, NOISY, QUIET),
        {"rows": [], "parts": [benchmark(NOISY), benchmark(NOISY, QUIET)]},
        {"probes": [{"noise_share": NOISY}, {"noise_share": NOISY}, {"noise_share": QUIET}]},
        {"arms": [], "noise_summary": NoiseSummary.of_shares([NOISY, NOISY, QUIET]).as_dict()},
    ],
    ids=["benchmark", "suite", "search", "trial"],
)
def test_every_kind_of_record_is_noisy_by_the_same_rule(record: dict[str, Any]) -> None:
    summary = noise_of(record)
    assert summary == NoiseSummary(measurements=3, noisy=2, unknown=0, largest_share=NOISY)
    assert summary.is_noisy


def test_half_of_the_measurements_may_be_noisy() -> None:
    assert not noise_of(benchmark(NOISY, QUIET)).is_noisy
    assert noise_of(benchmark(NOISY, QUIET)).banner("measurements") == ""


def test_measurements_of_unknown_noise_are_counted_and_not_noisy() -> None:
    summary = noise_of(benchmark(None, None, NOISY))
    assert summary.unknown == 2
    assert not summary.is_noisy


def test_a_trial_of_an_older_version_is_not_called_noisy() -> None:
    assert not noise_of({"arms": []}).is_noisy


def test_the_banner_of_a_run_has_its_share() -> None:
    words = "the machine: others took 20% of all processors, which shows in the figures"
    assert noise_of(measurement(NOISY)).banner("runs") == words


def test_the_banner_of_many_measurements_counts_the_noisy_ones() -> None:
    assert noise_of(benchmark(NOISY, 0.5, QUIET)).banner("measurements") == (
        "the machine: others took more than 5% of all processors beside 2 of 3 measurements, at most 50%, which shows "
        "in the figures"
    )
