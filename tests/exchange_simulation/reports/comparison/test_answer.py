"""The answer of a comparison: the sentences that its page and terminal begin with."""

from __future__ import annotations

from typing import Any

import pytest

from exchange_simulation.reports.comparison.answer import answers, headline
from exchange_simulation.reports.comparison.sentences import sureness
from exchange_simulation.reports.comparison.table import _show_answer
from exchange_simulation.reports.tables import terminal
from tests.exchange_simulation.reports.comparison.sample_verdicts import comparison, verdict, without_interval


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ([verdict(0.5), verdict(0.25, block="at 2")], "a is 2.0 to 4.0 times faster than b in 2 of 2 cases"),
        (
            [verdict(2.0), verdict(1.0, "cannot tell", "at 2")],
            "b is 2.0 times faster than a in 1 of 2 cases; no difference found in 1",
        ),
        ([verdict(1.0, "cannot tell")], "a and b: no difference found"),
        ([without_interval(verdict(0.06, "cannot tell"))], "a and b: too few repeats to tell"),
        ([verdict(None, "not compared")], "a and b: not compared"),
        (
            [verdict(0.5), verdict(3.0, block="at 2")],
            "a is 2.0 times faster than b in 1 of 2 cases; b is 3.0 times faster than a in 1 of 2 cases",
        ),
    ],
)
def test_the_headline_has_the_faster_contender_the_ratio_and_the_cases(
    verdicts: list[dict[str, Any]], sentence: str
) -> None:
    assert headline(comparison(*verdicts)) == f"{sentence} (completion p50 from due time)"


def test_metrics_with_the_same_sentence_share_one() -> None:
    verdict_on_p99 = {**verdict(1.0, "cannot tell"), "metric": "due_p99_us"}
    record = comparison(verdict(1.0, "cannot tell"), verdict_on_p99)
    record["metrics"]["due_p99_us"] = {"title": "p99"}
    assert answers(record) == ["a and b: no difference found (completion p50 from due time, p99)"]


def arm(rate: float | None, held: bool | None = True, **figures: float) -> dict[str, Any]:
    """Return an arm of the only contender, offered `rate` orders/s; each figure is of one repeat."""
    block = f"at {rate:,.0f} orders/s" if rate else "as fast as it goes"
    estimates = {name: {"median": value, "by_repeat": {"1": value}} for name, value in figures.items()}
    return {
        "label": block,
        "contender": "a",
        "block": block,
        "held": held,
        "settings": {"orders_per_s": rate},
        "metrics": estimates,
    }


@pytest.mark.parametrize(
    ("arms", "sentence"),
    [
        (
            [arm(1_000, due_p50_us=200), arm(2_000, due_p50_us=150), arm(4_000, due_p50_us=170)],
            "a: completion p50 from due 150 us at 2,000 orders/s, to 200 us at 1,000 orders/s; every rate was kept",
        ),
        (
            [arm(1_000, due_p50_us=200), arm(90_000, held=False)],
            "a: completion p50 from due 200 us at 1,000 orders/s; the rate was not kept at 90,000 orders/s",
        ),
        ([arm(None, orders_per_s=1_300_000)], "a: 1,300,000 orders/s as fast as it goes"),
        ([arm(1_000, held=False)], "a: the rate was not kept at 1,000 orders/s"),
        (
            [arm(1_000, due_p50_us=200), arm(2_000, held=None)],
            "a: completion p50 from due 200 us at 1,000 orders/s; nothing was measured at 2,000 orders/s",
        ),
        ([], "Nothing was measured"),
    ],
)
def test_a_sweep_of_one_contender_has_its_range_of_times_and_kept_rates(
    arms: list[dict[str, Any]], sentence: str
) -> None:
    assert headline({**comparison(), "arms": arms}) == sentence


def test_the_answer_on_nagle_says_whether_it_hurts() -> None:
    (sentence,) = answers(comparison(verdict(0.5), study="nagle"))
    assert sentence.startswith("b hurts, 2.0 times slower (completion")


def test_with_many_contenders_the_headline_names_the_largest_difference() -> None:
    a_and_b = verdict(0.5)
    a_and_c = verdict(0.1, second="c")
    b_and_c = verdict(1.0, "cannot tell", first="b", second="c")
    assert headline(comparison(a_and_b, a_and_c, b_and_c)).startswith(
        "2 of 3 comparisons differ, most of all at 1: sentence"
    )


def test_rows_not_compared_are_counted_apart_from_equal_ones() -> None:
    """Regression: verdicts without figures were called comparisons without a difference, or with too few repeats."""
    not_compared = [verdict(None, "not compared", second="c"), verdict(None, "not compared", second="d")]
    with_an_equal_one = comparison(verdict(1.0, "cannot tell"), *not_compared)
    assert headline(with_an_equal_one) == "No difference found in 1 of 3 cases, not compared in 2 of 3 cases"
    assert headline(comparison(*not_compared)) == "Not compared in 2 of 2 cases"


@pytest.mark.parametrize(
    ("verdicts", "reason"),
    [
        ([without_interval(verdict(0.5, "cannot tell"))], "too few repeats"),
        ([verdict(None, "not compared")], "nothing was compared"),
        ([], "nothing was compared"),
    ],
)
def test_a_missing_interval_is_explained(verdicts: list[dict[str, Any]], reason: str) -> None:
    record = comparison(*verdicts) | {"statistics": {"confidence": 0.95}}
    assert sureness(record) == f"There is no interval: {reason}."


def test_the_reason_why_no_metric_was_compared_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: the same sentence was printed for each metric."""
    not_compared = verdict(None, "not compared")
    verdicts = [{**not_compared, "metric": metric, "sentence": "a did not hold"} for metric in "xyz"]
    metrics = {name: {"title": name} for name in "xyz"}
    _show_answer(terminal(), {**comparison(*verdicts), "metrics": metrics})
    assert capsys.readouterr().out.count("at 1: a did not hold") == 1
