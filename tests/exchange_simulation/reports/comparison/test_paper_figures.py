"""The paper's layout of a trial: its figures, what they draw, and the printed values beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest

from exchange_simulation.experiments.comparison_arms import ArmSettings, nagle_arms, rate_factor, transport_factor
from exchange_simulation.experiments.trials.arms import Factor, arms_of
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.experiments.trials.results import results
from exchange_simulation.experiments.trials.study import NAGLE
from exchange_simulation.launching.metrics import COMPARISON_METRICS, NAGLE_METRICS, Metric
from exchange_simulation.reports.comparison.page import page_html
from exchange_simulation.reports.comparison.paper_figures import SAMPLED, paper_figures, published
from exchange_simulation.reports.drawing.canvas import page_style
from tests.exchange_simulation.experiments.trials.sample_trials import put

pytestmark = pytest.mark.xdist_group("paper figures")

RATES = (1000.0, 8000.0)
ANSWERS_PER_S = 2500.0


@pytest.mark.parametrize("metrics", [COMPARISON_METRICS, NAGLE_METRICS], ids=["comparison", "nagle"])
def test_a_trial_has_every_metric_that_the_figures_draw(metrics: tuple[Metric, ...]) -> None:
    drawn = {*SAMPLED, *(name for names in SAMPLED.values() for name in names)}
    assert drawn <= {metric.name for metric in metrics}


def compared(trial: Path, rates: tuple[float, ...] = RATES) -> dict[str, Any]:
    """Return the results of a comparison of zeromq and amqp."""
    transports = ["zeromq", "amqp"]
    settings = ArmSettings(transports, seconds=1.0, given={"seed": 1})
    arms = arms_of(settings, contenders=[transport_factor(transports)], blocks=[rate_factor(rates)])
    return _results(trial, TrialPlan(arms=arms, repeats=1, seed=1))


def nagle_compared(trial: Path, *networks: str) -> dict[str, Any]:
    """Return the results of a study of Nagle's algorithm over tcp."""
    arms = nagle_arms(["tcp"], RATES, ["all"], seconds=1.0, given={"seed": 1}, networks=networks or ["local"])
    return _results(trial, TrialPlan(arms=arms, repeats=1, seed=1, study=NAGLE))


def _results(trial: Path, plan: TrialPlan, sampled: dict[str, float] | None = None) -> dict[str, Any]:
    """Write a run for each step of a plan, and return the trial's results.

    In each run, completion takes rate / 40 us, and ANSWERS_PER_S answers came a second.
    """
    for step in plan.steps:
        components = {"gateway": {"cpu_s": 0.5}, "engine": {"cpu_s": 0.4}}
        if step.arm.settings.transport == "amqp":
            components["broker"] = {"cpu_s": 1.5}
        times_us = {"mean": (step.arm.settings.orders_per_s or 0) / 40, "p50": 20.0}
        completion_us = {"due": times_us, "handed_over": times_us}
        rates = {"orders_per_s": step.arm.settings.orders_per_s, "answers_per_s": ANSWERS_PER_S}
        put(
            trial,
            step,
            duration_s=2.0,
            completion_us=completion_us,
            components=components,
            rates=rates,
            sampled=sampled or {},
        )
    return results(trial, plan)


@dataclass(frozen=True)
class DrawnPoint:
    line: str
    orders_per_s: float
    median: float


def drawn_points(record: dict[str, Any]) -> dict[str, list[DrawnPoint]]:
    """Return the points of each figure in the paper's layout, by the figure's name."""
    points = {}
    with page_style():
        for figure in paper_figures(record):
            points[figure.name] = [DrawnPoint(*row[:3]) for row in figure.chart.numbers.rows]
    return points


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return compared(tmp_path_factory.mktemp("compared"))


@pytest.fixture(scope="module")
def page(comparison: dict[str, Any]) -> str:
    return page_html(comparison)


def test_a_comparison_has_the_paper_s_figures_8_and_9(comparison: dict[str, Any]) -> None:
    assert list(drawn_points(comparison)) == [
        "figure-8-a-message-rate",
        "figure-8-b-order-completion-time",
        "figure-9-a-cpu-utilisation-of-the-broker",
        "figure-9-b-cpu-utilisation-of-the-gateway",
        "figure-9-c-cpu-utilisation-of-the-engine",
    ]


def test_figure_8_b_has_the_mean_of_each_transport_by_rate(comparison: dict[str, Any]) -> None:
    assert drawn_points(comparison)["figure-8-b-order-completion-time"] == [
        DrawnPoint("zeromq", 1000.0, 25.0),
        DrawnPoint("zeromq", 8000.0, 200.0),
        DrawnPoint("amqp", 1000.0, 25.0),
        DrawnPoint("amqp", 8000.0, 200.0),
    ]


def test_figure_8_a_has_orders_and_answers_by_offered_rate(comparison: dict[str, Any]) -> None:
    points = drawn_points(comparison)["figure-8-a-message-rate"]
    assert DrawnPoint("orders, zeromq", 8000.0, 8000.0) in points
    assert DrawnPoint("answers, amqp", 1000.0, ANSWERS_PER_S) in points


def test_the_means_of_samples_stand_beside_the_exact_figures(tmp_path: Path) -> None:
    settings = ArmSettings(["zeromq", "tcp"], seconds=1.0, given={"seed": 1})
    arms = arms_of(settings, contenders=[transport_factor(["zeromq", "tcp"])], blocks=[rate_factor(RATES)])
    sampled = {"messages_received_per_s": 2400.0, "handed_over_mean_us": 333.0}
    record = _results(tmp_path, TrialPlan(arms=arms, repeats=1, seed=1), sampled)

    points = drawn_points(record)
    of_completion = DrawnPoint("zeromq, sampled_handed_over_mean_us", 8000.0, 333.0)
    assert of_completion in points["figure-8-b-order-completion-time"]
    of_answers = DrawnPoint("answers, tcp, sampled_messages_received_per_s", 1000.0, 2400.0)
    assert of_answers in points["figure-8-a-message-rate"]
    medians = {row.title: [ours["median"] for ours in row.ours if ours] for row in published(record)}
    assert medians["mean completion of the sampled orders in µs, at 8,000 orders/s; the paper: IPoIB"] == [333.0, 333.0]


def test_figure_9_has_the_share_of_a_core_over_the_run(comparison: dict[str, Any]) -> None:
    """The broker took 1.5 CPU seconds of 2 s, the gateway 0.5; only amqp has a broker."""
    points = drawn_points(comparison)
    assert points["figure-9-a-cpu-utilisation-of-the-broker"] == [
        DrawnPoint("amqp", 1000.0, 75.0),
        DrawnPoint("amqp", 8000.0, 75.0),
    ]
    assert {point.median for point in points["figure-9-b-cpu-utilisation-of-the-gateway"]} == {25.0}


def test_each_network_is_a_line_of_a_figure(tmp_path: Path) -> None:
    figures = drawn_points(nagle_compared(tmp_path, "local", "gige"))
    completion = figures["figure-8-b-order-completion-time-nagle-off"]
    assert {point.line for point in completion} == {"tcp, local", "tcp, gige"}
    assert len(completion) == 4
    assert {point.line for point in figures["figure-9-b-cpu-utilisation-of-the-gateway"]} == {"tcp, local", "tcp, gige"}


def test_nagle_off_and_nagle_on_each_have_a_figure(tmp_path: Path) -> None:
    figures = drawn_points(nagle_compared(tmp_path))
    assert "figure-8-b-order-completion-time-nagle-off" in figures
    assert "figure-8-c-order-completion-time-nagle-on" in figures


def test_every_condition_has_its_figure_however_many_there_are(tmp_path: Path) -> None:
    """The parts of figure 8 are called b to z, then 27, 28 ...; part a is the message rate."""
    seeds = Factor("seed", {f"seed {seed}": seed for seed in range(27)})
    settings = ArmSettings(["tcp"], seconds=1.0, given={})
    one_transport = Factor("transport", {"": "tcp"})
    arms = arms_of(settings, contenders=[one_transport], blocks=[rate_factor(RATES), seeds])
    figures = drawn_points(_results(tmp_path, TrialPlan(arms=arms, repeats=1, seed=1)))
    parts = [name.split("-")[2] for name in figures if name.startswith("figure-8-")]
    assert parts == [*ascii_lowercase, "27", "28"]


def test_the_paper_s_printed_values_stand_beside_ours(tmp_path: Path) -> None:
    nagle_off, nagle_on, cpu = published(nagle_compared(tmp_path))
    assert nagle_off.paper == "9,300"
    assert nagle_on.paper == "7,000"
    assert cpu.paper == "up to 35"
    for row, value in ((nagle_off, 200.0), (nagle_on, 200.0), (cpu, 25.0)):
        ours = row.ours[0]
        assert ours is not None
        assert ours["median"] == value


def test_a_page_of_several_rates_has_the_paper_s_layout_below(page: str) -> None:
    assert page.index("<h1>") < page.index("Every verdict") < page.index("in the layout of the paper")
    assert "other hardware" in page


def test_a_page_of_one_rate_has_no_layout_of_the_paper(tmp_path: Path) -> None:
    assert "in the layout of the paper" not in page_html(compared(tmp_path, rates=(1000.0,)))


def test_a_page_has_times_from_due_only_if_they_were_measured(comparison: dict[str, Any], page: str) -> None:
    """At rate max no order has a due time."""
    assert "Completion time from due, in" in page
    arms = [{**arm, "metrics": without_due(arm["metrics"])} for arm in comparison["arms"]]
    page_at_rate_max = page_html({**comparison, "arms": arms, "verdicts": []})
    assert "Completion time from due, in" not in page_at_rate_max
    assert "Completion time from handing over, in" in page_at_rate_max


def without_due(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: estimate for name, estimate in metrics.items() if not name.startswith("due_")}
