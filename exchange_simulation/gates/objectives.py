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
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.metrics import expected_orders_measured, orders_measured
from exchange_simulation.launching.record.noise_summary import noise_of
from exchange_simulation.reports.formats.numbers import whole_number
from exchange_simulation.reports.gate_outcomes import HELD, MISSED, UNDECIDED, GateCheck

FIGURES = {"due": "completion from due", "handed_over": "completion from handing over"}


def objectives_of(texts: Iterable[str], settings: RunSettings) -> list[ExchangeObjective]:
    """Return an objective for each bound. UserError for a bound that a run with these settings cannot be judged by."""
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
    noise = noise_of(record).banner("runs")
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
    measured = orders_measured(record) or 0
    if why_run_is_not_whole(record) is None and measured < objective.needed_orders:
        return GateCheck(
            condition=objective.words,
            name=objective.words,
            outcome=UNDECIDED,
            words=f"{measured:,.0f} orders were measured, and {objective.needed_orders:,} are needed",
        )
    why = objective.broken_by(record)
    if why is None:
        figures = [f"{whole_number(term.value_us(record))} us" for term in objective.terms]
        return GateCheck(
            condition=objective.words,
            name=objective.words,
            outcome=HELD,
            words=", ".join(figures) or "nothing was lost",
        )
    words = why.removeprefix(f"{objective.words}: ")
    if noise:
        words += ", on a noisy machine"
    return GateCheck(condition=objective.words, name=objective.words, outcome=MISSED, words=words)


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
