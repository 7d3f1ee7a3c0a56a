"""The paper's layout of a trial: which figures there are, what they draw, what is printed beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exchange_simulation.experiments.comparison_arms import ArmSettings, nagle_arms, rate_factor, transport_factor
from exchange_simulation.experiments.trials.arms import Factor, arms_of
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.experiments.trials.results import results
from exchange_simulation.experiments.trials.study import NAGLE
from exchange_simulation.reports.comparison.page import page_html
from exchange_simulation.reports.comparison.paper_figures import paper_figures, published
from exchange_simulation.reports.drawing.canvas import page_style
from tests.exchange_simulation.experiments.trials.sample_trials import put

pytestmark = pytest.mark.xdist_group("paper figures")

RATES = (1000.0, 8000.0)


def compared(trial: Path, rates: tuple[float, ...] = RATES) -> dict[str, Any]:
    transports = ["zeromq", "amqp"]
    arms = arms_of(ArmSettings(transports, 1.0, {"seed": 1}), [transport_factor(transports)], [rate_factor(rates)])
    return _results(trial, TrialPlan(arms=arms, repeats=1, seed=1))


def held_back(trial: Path) -> dict[str, Any]:
    return _results(
        trial, TrialPlan(arms=nagle_arms(["tcp"], RATES, ["all"], 1.0, {"seed": 1}), repeats=1, seed=1, study=NAGLE)
    )


def _results(trial: Path, plan: TrialPlan) -> dict[str, Any]:
    for step in plan.steps:
        used = {"gateway": {"cpu_s": 0.5}, "engine": {"cpu_s": 0.4}}
        if step.arm.settings.transport == "amqp":
            used["broker"] = {"cpu_s": 1.5}
        took = {
            clock: {"mean": (step.arm.settings.orders_per_s or 0) / 40, "p50": 20.0} for clock in ("due", "handed_over")
        }
        put(trial, step, duration_s=2.0, completion_us=took, components=used)
    return results(trial, plan)


def drawn(record: dict[str, Any]) -> dict[str, list[tuple[Any, ...]]]:
    with page_style():
        return {figure.name: figure.chart.numbers.rows for figure in paper_figures(record)}


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return compared(tmp_path_factory.mktemp("compared"))


@pytest.fixture(scope="module")
def page(comparison: dict[str, Any]) -> str:
    return page_html(comparison)


def test_a_comparison_has_figures_8_and_9_with_each_transport(
    comparison: dict[str, Any],
) -> None:
    """Figure 8 has its parts a and b; each transport has a line."""
    found = drawn(comparison)
    assert list(found) == [
        "figure-8-a-message-rate",
        "figure-8-b-order-completion-time",
        "figure-9-a-cpu-utilisation-of-the-broker",
        "figure-9-b-cpu-utilisation-of-the-gateway",
        "figure-9-c-cpu-utilisation-of-the-engine",
    ]
    assert [row[:3] for row in found["figure-8-b-order-completion-time"]] == [
        ("zeromq", 1000.0, 25.0),
        ("zeromq", 8000.0, 200.0),
        ("amqp", 1000.0, 25.0),
        ("amqp", 8000.0, 200.0),
    ]


def test_message_rates_are_orders_and_answers_against_what_was_offered(comparison: dict[str, Any]) -> None:
    rows = drawn(comparison)["figure-8-a-message-rate"]
    assert ("orders, zeromq", 8000.0, 8000.0) in [row[:3] for row in rows]
    assert ("answers, amqp", 1000.0, 2400.0) in [row[:3] for row in rows]


def test_cpu_is_the_share_of_a_core_over_the_run(comparison: dict[str, Any]) -> None:
    """A broker's is there where there is a broker."""
    found = drawn(comparison)
    assert {row[:3] for row in found["figure-9-a-cpu-utilisation-of-the-broker"]} == {
        ("amqp", 1000.0, 75.0),
        ("amqp", 8000.0, 75.0),
    }
    assert {row[2] for row in found["figure-9-b-cpu-utilisation-of-the-gateway"]} == {25.0}


def test_with_nagle_on_and_off_each_has_its_figure(tmp_path: Path) -> None:
    found = drawn(held_back(tmp_path))
    assert "figure-8-b-order-completion-time-nagle-off" in found
    assert "figure-8-c-order-completion-time-nagle-on" in found


def test_every_condition_has_its_figure_however_many_there_are(tmp_path: Path) -> None:
    """With seven letters a sweep of eight seeds had no figure of the last one, and the table had its rows."""
    seeds = Factor("seed", {f"seed {seed}": seed for seed in range(27)})
    arms = arms_of(ArmSettings(["tcp"], 1.0, {}), [Factor("transport", {"": "tcp"})], [rate_factor(RATES), seeds])
    found = [name for name in drawn(_results(tmp_path, TrialPlan(arms=arms, repeats=1, seed=1))) if "figure-8" in name]
    assert len(found) == 1 + 27
    assert [name.split("-")[2] for name in (found[1], found[7], found[25], found[-1])] == ["b", "h", "z", "28"]


def test_the_paper_s_printed_values_stand_beside_ours(tmp_path: Path) -> None:
    off, on, cpu = published(held_back(tmp_path))
    assert (off.paper, on.paper, cpu.paper) == ("9,300", "7,000", "up to 35")
    assert [row.ours[0]["median"] for row in (off, on, cpu) if row.ours[0]] == [200.0, 200.0, 25.0]


def test_one_rate_has_no_such_section_and_several_have(page: str, tmp_path: Path) -> None:
    assert "in the layout of the paper" not in page_html(compared(tmp_path, rates=(1000.0,)))
    assert page.index("<h1>") < page.index("Every verdict") < page.index("in the layout of the paper")
    assert "other hardware" in page


def test_the_page_has_a_table_of_times_for_each_clock_that_measured_some(comparison: dict[str, Any], page: str) -> None:
    """At rate max nothing is due; the table of times from due had no row."""
    assert "Completion time from due, in" in page
    arms = [{**arm, "metrics": without_due(arm["metrics"])} for arm in comparison["arms"]]
    at_rate_max = page_html({**comparison, "arms": arms, "verdicts": []})
    assert "Completion time from due, in" not in at_rate_max
    assert "Completion time from handing over, in" in at_rate_max


def without_due(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: found for name, found in metrics.items() if not name.startswith("due_")}
