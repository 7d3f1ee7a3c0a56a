"""What a comparison's page and terminal say first: the answer in a sentence, and the ratio plot."""

from __future__ import annotations

from typing import Any

import pytest

from exchange_simulation.launching.metrics import COMPONENTS
from exchange_simulation.reports.comparison.answer import answers, headline, ratio_plot, scale_of_strips, strip
from exchange_simulation.reports.comparison.sentences import completion, cpu_beyond, cpu_metric, sureness
from exchange_simulation.reports.comparison.table import _cpu, _ratios, _show_answer, show
from exchange_simulation.reports.formats.estimates import median_text
from exchange_simulation.reports.tables import terminal

P50 = "due_p50_us"
ONES = {str(repeat): 1.0 for repeat in range(10)}
BY_REPEAT = {"b": {str(repeat): 2.0 if repeat < 8 else 0.5 for repeat in range(10)}}
"""In 8 of 10 repeats the first arm is lower than b."""


def verdict(ratio: float | None, outcome: str = "differ", block: str = "at 1", first: str = "a", second: str = "b"):
    """A verdict whose interval is 10 % wide on either side."""
    ends = {"low": ratio / 1.1, "high": ratio * 1.1} if ratio else {}
    return {
        "metric": P50,
        "block": block,
        "first": f"{first} {block}",
        "second": f"{second} {block}",
        "outcome": outcome,
        "sentence": "told",
        "share_of_repeats_first_lower": 0.8,
        "repeats": list(range(10)),
        "ratio": ratio,
        **ends,
    }


def record(*verdicts: dict[str, Any], study: str = "compare") -> dict[str, Any]:
    names = {end[side]: end[side].partition(" ")[0] for end in verdicts for side in ("first", "second")}
    measured = {verdict["metric"] for verdict in verdicts}
    arms = [
        {"label": label, "contender": name, "metrics": {m: {"by_repeat": BY_REPEAT.get(name, ONES)} for m in measured}}
        for label, name in names.items()
    ]
    metrics = {P50: {"title": "completion p50 from due time"}}
    return {"study": study, "verdicts": list(verdicts), "arms": arms, "metrics": metrics}


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([verdict(0.5), verdict(0.25, block="at 2")], "a is 2.0 to 4.0 times faster than b in 2 of 2 cases"),
        (
            [verdict(2.0), verdict(1.0, "cannot tell", "at 2")],
            "b is 2.0 times faster than a in 1 of 2 cases; no difference found in 1",
        ),
        ([verdict(1.0, "cannot tell")], "a and b: no difference found"),
        ([{**verdict(0.06, "cannot tell"), "low": None, "high": None}], "a and b: too few repeats to tell"),
        ([verdict(None, "not compared")], "a and b: not compared"),
        (
            [verdict(0.5), verdict(3.0, block="at 2")],
            "a is 2.0 times faster than b in 1 of 2 cases; b is 3.0 times faster than a in 1 of 2 cases",
        ),
    ],
)
def test_the_answer_says_who_by_how_much_and_in_how_many_cases(verdicts: list[dict[str, Any]], said: str) -> None:
    assert headline(record(*verdicts)) == f"{said} (completion p50 from due time)"


def test_what_is_the_same_of_several_metrics_is_said_once() -> None:
    """With too few repeats the same sentence stood there for each metric."""
    made = record(verdict(1.0, "cannot tell"), {**verdict(1.0, "cannot tell"), "metric": "due_p99_us"})
    made["metrics"]["due_p99_us"] = {"title": "p99"}
    assert answers(made) == ["a and b: no difference found (completion p50 from due time, p99)"]


def alone(rate: float | None, held: bool | None = True, **figures: float) -> dict[str, Any]:
    """An arm of the only contender; each figure is of one repeat."""
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
    ("arms", "said"),
    [
        (
            [alone(1_000, due_p50_us=200), alone(2_000, due_p50_us=150), alone(4_000, due_p50_us=170)],
            "a: completion p50 from due 150 us at 2,000 orders/s, to 200 us at 1,000 orders/s; every rate was kept",
        ),
        (
            [alone(1_000, due_p50_us=200), alone(90_000, held=False)],
            "a: completion p50 from due 200 us at 1,000 orders/s; the rate was not kept at 90,000 orders/s",
        ),
        ([alone(None, orders_per_s=1_300_000)], "a: 1,300,000 orders/s as fast as it goes"),
        ([alone(1_000, held=False)], "a: the rate was not kept at 1,000 orders/s"),
        (
            [alone(1_000, due_p50_us=200), alone(2_000, held=None)],
            "a: completion p50 from due 200 us at 1,000 orders/s; nothing was measured at 2,000 orders/s",
        ),
        ([], "Nothing was measured"),
    ],
)
def test_a_sweep_of_one_contender_says_its_fastest_and_slowest(arms: list[dict[str, Any]], said: str) -> None:
    """It says which rates it kept, too."""
    assert headline({**record(), "arms": arms}) == said


def test_nagle_s_answer_says_whether_it_hurts() -> None:
    assert answers(record(verdict(0.5), study="nagle"))[0].startswith("b hurts, 2.0 times slower (completion")


def test_with_many_contenders_the_headline_names_the_largest_difference() -> None:
    said = headline(record(verdict(0.5), verdict(0.1, second="c"), verdict(1.0, "cannot tell", first="b", second="c")))
    assert said.startswith("2 of 3 comparisons differ, most of all at 1: told")


def test_rows_not_compared_are_counted_apart_from_equal_ones() -> None:
    """All three were called comparisons without a difference, though two had no figures at all."""
    lacking = [verdict(None, "not compared", second=name) for name in "cd"]
    assert headline(record(verdict(1.0, "cannot tell"), *lacking)) == (
        "No difference found in 1 of 3 cases, not compared in 2 of 3 cases"
    )
    assert headline(record(*lacking)) == "Not compared in 2 of 2 cases", "it said: too few repeats"


def test_a_page_gives_too_few_repeats_as_the_reason_only_where_they_are() -> None:
    told = {"statistics": {"confidence": 0.95}}
    few = {**verdict(0.5, "cannot tell"), "low": None, "high": None}
    assert sureness(record(few) | told) == "There is no interval: too few repeats."
    assert sureness(record(verdict(None, "not compared")) | told) == "There is no interval: nothing was compared."
    assert sureness(record() | told) == "There is no interval: nothing was compared."


def test_repeats_with_equal_values_are_on_neither_side_of_1() -> None:
    """The plot counted half of them, where the verdict's sentence counts none."""
    made = record(verdict(0.5))
    made["arms"][1]["metrics"][P50]["by_repeat"] = {**BY_REPEAT["b"], "0": 1.0, "1": 1.0}
    plot = ratio_plot(made)
    assert plot is not None
    assert [mark.agree for mark in next(iter(plot.groups.values()))] == ["6 of 10"]


def test_a_plotted_estimate_is_between_its_ends_on_its_side_of_1() -> None:
    plot = ratio_plot(record(verdict(0.5), verdict(3.0, "cannot tell", "at 2"), verdict(None, "not compared", "at 3")))
    assert plot is not None
    ((differs, undecided, lacking),) = plot.groups.values()
    one = dict(plot.ticks)["1"]
    for mark in (differs, undecided):
        assert 0 <= (mark.low or -1) < (mark.at or 0) < (mark.high or 0) <= 100
    assert (differs.high or 100) < one < (undecided.low or 0)
    assert (differs.words, differs.agree, undecided.agree) == ("0.50 (0.45..0.55)", "8 of 10", "2 of 10")
    assert (lacking.at, lacking.sentence) == (None, "told")


def test_the_plot_in_the_terminal_has_its_marks_under_their_numbers() -> None:
    plot = ratio_plot(record(verdict(0.5), verdict(1.02, "cannot tell", "at 2")))
    assert plot is not None
    ((differs, undecided),) = plot.groups.values()
    numbers = scale_of_strips(plot.ticks, 25)
    drawn = strip(differs, plot.ticks, 25), strip(undecided, plot.ticks, 25)
    assert [len(row) for row in (numbers, *drawn)] == [25, 25, 25]
    assert "*" in drawn[0]
    assert "o" not in drawn[0]
    assert drawn[0].index("|") == numbers.index("1")
    assert "o" in drawn[1]


def test_the_rows_of_the_printed_plot_all_have_their_1_in_one_column(capsys: pytest.CaptureFixture[str]) -> None:
    """A column of figures ends at the right, so blanks behind a mark moved it there."""
    plot = ratio_plot(record(verdict(0.5), verdict(1.6, "cannot tell", "at 2"), verdict(3.0, block="at 3")))
    assert plot is not None
    ((_, marks),) = plot.groups.items()
    terminal().print(_ratios(plot, marks))
    numbers, *rows = capsys.readouterr().out.splitlines()
    assert {row.index("|") for row in rows} == {numbers.split("ratio")[0].index("1")}


@pytest.mark.parametrize(
    ("name", "orders", "told"),
    [
        ("p99", 999, False),
        ("p99", 1_000, True),
        ("p999", 9_999, False),
        ("p50", 20, True),
        ("max", 1, True),
        ("p99", None, True),
    ],
)
def test_a_percentile_is_told_from_ten_orders_beyond_it(name: str, orders: int | None, told: bool) -> None:
    arm = {"orders_measured": orders, "metrics": {f"due_{name}_us": {"median": 5.0}, "due_max_us": {"median": 7.0}}}
    expected = "7" if name == "max" else "5"
    assert completion(arm, "due", name, median_text) == (expected if told else f"7 (max of {orders:,})")


def test_a_page_with_very_many_rows_folds_those_of_other_metrics() -> None:
    few = [verdict(0.5, block=f"at {rate}") for rate in range(20)]
    cpu = [{**each, "metric": "cpu_s_per_million"} for each in few]
    made = record(*few, *cpu)
    made["metrics"]["cpu_s_per_million"] = {"title": "CPU of all components"}
    many, small = ratio_plot(made), ratio_plot(record(*few))
    assert many is not None
    assert small is not None
    assert [len(many.first_groups), len(many.other_groups), len(small.other_groups)] == [1, 1, 0]
    assert next(iter(many.first_groups)).startswith("completion p50")


def test_cpu_beyond_is_the_difference_to_the_first_arm_in_a_repeat() -> None:
    def arm(block: str, **by_repeat: float) -> dict[str, Any]:
        return {"block": block, "metrics": {"cpu_s_per_million": {"by_repeat": by_repeat}}}

    first, second = arm("a", one=100.0, two=200.0, three=300.0), arm("a", one=130.0, two=220.0, four=1.0)
    record = {"arms": [first, second, arm("b", one=7.0)]}
    assert cpu_beyond(record, first) is None
    both = {"one": 30.0, "two": 20.0}
    assert cpu_beyond(record, second) == {"median": 25.0, "by_repeat": both}
    unmeasured = {"block": "a", "metrics": {}}
    assert cpu_beyond({"arms": [first, unmeasured]}, unmeasured) is None


@pytest.mark.parametrize(("columns", "titles"), [("40", 4), ("60", 2), ("200", 1)])
def test_each_block_of_the_table_of_cpu_says_what_its_figures_are(
    columns: str, titles: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a narrow terminal the second block had the names of the components alone."""
    monkeypatch.setenv("COLUMNS", columns)
    metrics = ["cpu_s_per_million", *map(cpu_metric, COMPONENTS)]
    figures = {name: {"median": 12.3, "quartiles": [11.9, 12.8], "by_repeat": {"1": 12.3}} for name in metrics}
    arm = {"block": "a", "contender": "zeromq", "settings": {"orders_per_s": 16_000}, "metrics": figures}
    terminal().print(_cpu({"arms": [arm], "contenders": ["zeromq"], "verdicts": [verdict(0.5)]}))
    assert capsys.readouterr().out.count("CPU s per million") == titles


@pytest.mark.parametrize("rates", [("max",), (1_000, "max"), (1_000,)])
def test_times_at_rate_max_are_not_called_from_due(
    rates: tuple[int | str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    arms = [
        {
            "label": "it",
            "block": "a",
            "contender": "it",
            "settings": {"orders_per_s": None if at == "max" else at},
            "saturated": 0,
            "runs": {},
            "orders_measured": 5_000,
            "held": True,
            "metrics": {"handed_over_p50_us" if at == "max" else P50: {"median": 12.3, "by_repeat": {"1": 12.3}}},
        }
        for at in rates
    ]
    show({"study": "sweep", "arms": arms, "contenders": ["it"], "verdicts": [], "caveats": [], "metrics": {}})
    said = " ".join(capsys.readouterr().out.split())
    assert ("p50 us from due" in said) == ("max" not in rates)
    assert ("from handing over" in said) == ("max" in rates)


def test_the_reason_why_no_metric_was_compared_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence for each metric stood there, and they were the same."""
    verdicts = [{**verdict(None, "not compared"), "metric": metric, "sentence": "a did not hold"} for metric in "xyz"]
    _show_answer(terminal(), {**record(*verdicts), "metrics": {name: {"title": name} for name in "xyz"}})
    assert capsys.readouterr().out.count("at 1: a did not hold") == 1
