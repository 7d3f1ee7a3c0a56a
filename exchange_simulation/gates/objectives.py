"""`exchange run --slo`: bounds that one run must hold, as p99 <= 1ms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from exchange.json_records import Record
from exchange.settings import RunSettings
from exchange_simulation.experiments.capacity.exchange_rates import (
    ExchangeObjective,
    objective_of,
    why_run_is_not_whole,
)
from exchange_simulation.gates.gate_report import GateReport, GateTable
from exchange_simulation.gates.judged_bound import JudgedBound
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.metrics import expected_orders_measured, orders_measured
from exchange_simulation.launching.record.noise_summary import noise_banner
from exchange_simulation.reports.formats.numbers import whole_number
from exchange_simulation.reports.gate_outcomes import FAILED, PASSED, GateCheck

FIGURES = {"due": "completion from due", "handed_over": "completion from handing over"}


def objectives_of(texts: Iterable[str], settings: RunSettings) -> list[ExchangeObjective]:
    """Return an objective for each bound: of one term, or of none for loss = 0.

    UserError for a bound that a run with these settings cannot be judged by.
    """
    objectives = []
    for text in texts:
        for part in text.split(","):
            objective = objective_of(part)
            _refuse_unmeasured(objective, settings)
            objectives.append(objective)
    return objectives


def _refuse_unmeasured(objective: ExchangeObjective, settings: RunSettings) -> None:
    """Raise UserError if no order will be due, or if too few orders will be measured."""
    for term in objective.terms:
        if settings.orders_per_s is None and term.clock != "handed_over":
            raise UserError(
                f"--slo is {objective.words!r}, and with --rate max no order is due: bound the time from handing over, "
                f"as 'handed over {term.words}'"
            )
    measured = expected_orders_measured(settings)
    if measured < objective.needed_orders:
        raise UserError(
            f"--slo {objective.words!r} needs {objective.needed_orders:,} orders, and the run measures {measured:,}, "
            "which are its orders without those of the warm-up and the last one of each gateway: give more --orders, "
            "or bound a lower percentile"
        )


def run_report(folder: str, record: Record, headline: str, objectives: Sequence[ExchangeObjective]) -> GateReport:
    """Return the outcome of each objective."""
    noise = noise_banner(record, "runs")
    return GateReport(
        command="run",
        folder=folder,
        headline=headline,
        checks=[_check(objective, record, noise) for objective in objectives],
        doubts=[*record["reasons"], *([noise] if noise else [])],
        table=_table(record),
        seconds=record.get("duration_s"),
    )


def _check(objective: ExchangeObjective, record: Record, noise: str) -> GateCheck:
    """Judge one objective. One run has no interval, so the figure alone decides.

    A run that is whole, but measured too few orders, decides nothing.
    """
    bound = _bound_of(objective)
    on_noisy_machine = " on a noisy machine" if noise else ""
    why_not_whole = why_run_is_not_whole(record)
    if why_not_whole is not None:
        return bound.assumed(FAILED, f"the run{on_noisy_machine} is {why_not_whole}")
    measured = orders_measured(record) or 0
    if measured < objective.needed_orders:
        return bound.undecided(f"{measured:,.0f} orders were measured, and {objective.needed_orders:,} are needed")
    if not objective.terms:
        return bound.measured(PASSED, "0")
    (term,) = objective.terms
    value_us = term.value_us(record)
    if value_us is None:
        return bound.assumed(FAILED, "it was not measured")
    value = f"{whole_number(value_us)} us"
    if term.broken_by(record) is None:
        return bound.measured(PASSED, value)
    return bound.measured(FAILED, f"{value}{on_noisy_machine}")


def _bound_of(objective: ExchangeObjective) -> JudgedBound:
    """Return the bound of an objective of one term; one without a term is about the loss of orders."""
    if not objective.terms:
        return JudgedBound(condition=objective.words, figure="loss", bound="over 0")
    (term,) = objective.terms
    return JudgedBound(condition=objective.words, figure=term.name, bound=f"over {term.bound}")


def _table(record: Record) -> GateTable | None:
    times = record.get("completion_us") or {}
    rows = []
    for clock, title in FIGURES.items():
        if clock in times:
            figures = times[clock]
            rows.append([title, *(whole_number(figures.get(name)) for name in ("p50", "p99", "max"))])
    if not rows:
        return None
    return GateTable(titles=("microseconds", "p50", "p99", "max"), rows=rows)
