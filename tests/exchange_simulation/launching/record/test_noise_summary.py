"""One rule says which results are noisy: of a run, a trial, a search, a benchmark."""

from __future__ import annotations

from typing import Any

import pytest

from exchange_simulation.launching.record.noise import MOST_SHARE
from exchange_simulation.launching.record.noise_summary import TOO_NOISY, NoiseSummary, noise_banner, noise_of

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
    assert noise_banner(benchmark(NOISY, QUIET), "measurements") == ""


def test_measurements_of_unknown_noise_are_counted_and_not_noisy() -> None:
    summary = noise_of(benchmark(None, None, NOISY))
    assert summary.unknown == 2
    assert not summary.is_noisy


def test_a_trial_of_an_older_version_is_not_called_noisy() -> None:
    assert not noise_of({"arms": []}).is_noisy


def test_the_banner_of_a_run_has_its_share() -> None:
    words = "the machine: others took 20% of all processors, which shows in the figures"
    assert noise_banner(measurement(NOISY), "runs") == words


def test_the_banner_of_many_measurements_counts_the_noisy_ones() -> None:
    assert noise_banner(benchmark(NOISY, 0.5, QUIET), "measurements") == f"{TWO_OF_THREE}, at most 50%, {SHOWS}"


TWO_OF_THREE = "the machine: others took more than 5% of all processors beside 2 of 3 measurements"
SHOWS = "which shows in the figures"
QUIET_MACHINE = "measure again on a quiet machine"
KEEP_NOISY = f"{QUIET_MACHINE}, or with --keep-noisy if this machine is the one you ask about"


def test_the_banner_of_what_is_too_noisy_to_say_says_what_to_do() -> None:
    record = benchmark(NOISY, NOISY, QUIET)
    rule = {"most_tries": 3}
    banner = f"{TWO_OF_THREE}, at most 20%, {SHOWS}"
    assert noise_banner(record, "measurements") == banner, "measured with --keep-noisy"
    assert noise_banner({**record, "redo_noisy": rule}, "measurements") == f"{banner}: {KEEP_NOISY}"
    suite = {"rows": [], "parts": [{**record, "redo_noisy": rule}]}
    assert noise_banner(suite, "measurements") == f"{banner}: {KEEP_NOISY}"


def test_one_verdict_that_is_too_noisy_to_say_is_enough_for_a_banner() -> None:
    record = benchmark(NOISY, NOISY, QUIET, QUIET)
    assert noise_banner(record, "runs") == ""
    banner = noise_banner({**record, "verdicts": [{"outcome": "differ"}, {"outcome": TOO_NOISY}]}, "runs")
    assert banner.startswith("the machine: others took more than 5% of all processors beside 2 of 4 runs, at most 20%")
    assert banner.endswith(KEEP_NOISY)


def test_a_paper_which_has_no_such_option_asks_for_a_quiet_machine() -> None:
    summary = NoiseSummary.of_shares([NOISY, NOISY, QUIET]).as_dict()
    banner = f"{TWO_OF_THREE}, at most 20%, {SHOWS}"
    too_noisy = {"claims": [{"outcome": TOO_NOISY}], "noise_summary": summary}
    assert noise_banner(too_noisy, "measurements") == f"{banner}: {QUIET_MACHINE}"
    counts_that_noise_cannot_change = {"claims": [{"outcome": "holds"}], "noise_summary": summary}
    assert noise_banner(counts_that_noise_cannot_change, "measurements") == banner
