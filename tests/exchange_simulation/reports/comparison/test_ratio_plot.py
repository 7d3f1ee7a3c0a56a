"""The ratio plot of a comparison, on its page and in the terminal."""

from __future__ import annotations

from typing import Any

import pytest

from exchange_simulation.reports.comparison.ratio_plot import Mark, RatioPlot, ratio_plot, scale_of_strips, strip
from exchange_simulation.reports.comparison.table import _ratios
from exchange_simulation.reports.formats.ratios import ratio_in_words
from exchange_simulation.reports.tables import terminal
from tests.exchange_simulation.reports.comparison.sample_verdicts import (
    P50,
    TWOS_IN_8_REPEATS,
    comparison,
    verdict,
)

WIDTH = 25


def plot_of(*verdicts: dict[str, Any]) -> RatioPlot:
    plot = ratio_plot(comparison(*verdicts))
    assert plot is not None
    return plot


def marks_of(plot: RatioPlot) -> list[Mark]:
    """Return the rows of the plot's only group."""
    (marks,) = plot.groups.values()
    return marks


def test_repeats_with_equal_values_are_on_neither_side_of_1() -> None:
    """Regression: the plot counted half of them."""
    record = comparison(verdict(0.5))
    record["arms"][1]["metrics"][P50]["by_repeat"] = {**TWOS_IN_8_REPEATS, "0": 1.0, "1": 1.0}
    plot = ratio_plot(record)
    assert plot is not None
    (mark,) = marks_of(plot)
    assert mark.agree == "6 of 10"


def test_a_plotted_estimate_is_between_its_ends_on_its_side_of_1() -> None:
    plot = plot_of(verdict(0.5), verdict(3.0, "cannot tell", "at 2"), verdict(None, "not compared", "at 3"))
    halved, tripled, _ = marks_of(plot)
    for mark in (halved, tripled):
        assert mark.low is not None
        assert mark.at is not None
        assert mark.high is not None
        assert 0 <= mark.low < mark.at < mark.high <= 100
    (one,) = [tick.place for tick in plot.ticks if tick.text == "1"]
    assert halved.high is not None
    assert tripled.low is not None
    assert halved.high < one < tripled.low


def test_a_mark_has_its_ratio_interval_and_agreeing_repeats() -> None:
    halved, tripled = marks_of(plot_of(verdict(0.5), verdict(3.0, "cannot tell", "at 2")))
    assert halved.words == "0.50 (0.45..0.55)"
    assert halved.agree == "8 of 10"
    assert tripled.agree == "2 of 10"


def test_a_mark_without_ratio_has_a_sentence_and_no_place() -> None:
    _, lacking = marks_of(plot_of(verdict(0.5), verdict(None, "not compared", "at 3")))
    assert lacking.at is None
    assert lacking.sentence == "sentence"


def test_the_plot_in_the_terminal_has_its_marks_under_their_numbers() -> None:
    plot = plot_of(verdict(0.5), verdict(1.02, "cannot tell", "at 2"))
    differs, undecided = marks_of(plot)
    scale = scale_of_strips(plot.ticks, WIDTH)
    strip_of_differing = strip(differs, plot.ticks, WIDTH)
    strip_of_undecided = strip(undecided, plot.ticks, WIDTH)
    assert len(scale) == len(strip_of_differing) == len(strip_of_undecided) == WIDTH
    assert "*" in strip_of_differing
    assert "o" not in strip_of_differing
    assert strip_of_differing.index("|") == scale.index("1")
    assert "o" in strip_of_undecided


def test_the_rows_of_the_printed_plot_all_have_their_1_in_one_column(capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: a column of figures was aligned right, so blanks behind a mark moved the row's 1."""
    plot = plot_of(verdict(0.5), verdict(1.6, "cannot tell", "at 2"), verdict(3.0, block="at 3"))
    terminal().print(_ratios(plot, marks_of(plot)))
    head, *rows = capsys.readouterr().out.splitlines()
    scale = head.partition("ratio")[0]
    assert {row.index("|") for row in rows} == {scale.index("1")}


def test_a_page_with_very_many_rows_folds_those_of_other_metrics() -> None:
    verdicts_on_p50 = [verdict(0.5, block=f"at {rate}") for rate in range(20)]
    verdicts_on_cpu = [{**of_p50, "metric": "cpu_s_per_million"} for of_p50 in verdicts_on_p50]
    record = comparison(*verdicts_on_p50, *verdicts_on_cpu)
    record["metrics"]["cpu_s_per_million"] = {"title": "CPU of all components"}
    large = ratio_plot(record)
    assert large is not None
    assert list(large.first_groups) == ["completion p50 from due time: a / b"]
    assert list(large.other_groups) == ["CPU of all components: a / b"]

    small = plot_of(*verdicts_on_p50)
    assert not small.other_groups


def test_a_ratio_close_to_0_does_not_read_as_0() -> None:
    assert [ratio_in_words(ratio) for ratio in (0.37, 0.004, 0.0004)] == ["0.37", "0.004", "0.0004"]
