"""All gates of one comparison: conditions between its contenders, and its figures against those of a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from exchange.json_records import Record
from exchange_simulation.experiments.trials.checkouts import Checkout
from exchange_simulation.gates.baselines import (
    Baseline,
    BaselineRow,
    baseline_of,
    rows_against,
    rows_beside_twins,
    weaknesses,
)
from exchange_simulation.gates.condition_checks import (
    NO_COMMON_RATE,
    ComparedFigure,
    RatioRow,
    bound_of,
    check_of_pair,
    check_of_ratio,
    check_of_time,
    ratio_rows_of,
    time_rows_of,
)
from exchange_simulation.gates.conditions import FigureKind, RatioCondition, TimeCondition, condition_of
from exchange_simulation.gates.gate_report import GateReport, GateTable
from exchange_simulation.gates.judged_bound import JudgedBound
from exchange_simulation.launching.record.noise_summary import noise_banner
from exchange_simulation.repeats.judging import ALPHA, PairVerdict, judge_together
from exchange_simulation.reports.comparison.answer import headline
from exchange_simulation.reports.comparison.sentences import rate_and_name
from exchange_simulation.reports.formats.estimates import median_text, with_middle_half
from exchange_simulation.reports.formats.ratios import interval_in_words, ratio_in_words
from exchange_simulation.reports.gate_outcomes import GateCheck

NO_COMMON_ARM = "no arm of this comparison is in the baseline"
TIMES_THE_BASELINE_S = "times the baseline's"


@dataclass(frozen=True)
class ComparisonGate:
    """The conditions of a comparison, read before its first run."""

    conditions: Sequence[RatioCondition | TimeCondition] = ()
    baseline: Baseline | Checkout | None = None
    slower_by: float | None = None
    """The share by which a figure may be worse than the baseline's, as 0.1; None if the baseline decides nothing."""

    @classmethod
    def of_options(
        cls,
        fail_if: Sequence[str],
        against: str | None,
        slower_by: float | None,
        contenders: Sequence[str],
        results: Path,
    ) -> ComparisonGate:
        """Read the options. UserError for a condition that is not understood, or a baseline that is not there."""
        conditions = [condition_of(text, contenders) for text in fail_if]
        baseline = None if against is None else baseline_of(results, against)
        return cls(conditions, baseline, slower_by)

    def report(self, folder: str, record: Record) -> GateReport:
        """Judge the record. All ratios are one family, so that few gates of unchanged code fail by chance."""
        ratio_rows: list[RatioRow] = []
        for condition in self.conditions:
            if isinstance(condition, RatioCondition):
                ratio_rows += ratio_rows_of(condition, record)
        baseline_rows = self._baseline_rows(record)
        pairs = [*(row.pair for row in ratio_rows), *(row.pair for row in baseline_rows)]
        verdicts = judge_together(pairs, ALPHA, int(record["seed"]))
        verdicts_of_ratios = verdicts[: len(ratio_rows)]
        verdicts_of_baseline = verdicts[len(ratio_rows) :]
        checks = [check_of_ratio(row, verdict) for row, verdict in zip(ratio_rows, verdicts_of_ratios, strict=True)]
        for condition in self.conditions:
            if isinstance(condition, TimeCondition):
                checks += [check_of_time(row, record) for row in time_rows_of(condition, record)]
        checks += self._unmeasured(checks)
        noise = noise_banner(record, "runs")
        baseline_notes = []
        if isinstance(self.baseline, Baseline):
            baseline_notes += weaknesses(self.baseline, record)
        if self.slower_by is None:
            for row, verdict in zip(baseline_rows, verdicts_of_baseline, strict=True):
                baseline_notes.append(_beside_baseline(row, verdict))
        else:
            checks += _slower_checks(baseline_rows, verdicts_of_baseline, self.slower_by)
        return GateReport(
            command=str(record["study"]),
            folder=folder,
            headline=headline(record),
            checks=checks,
            baseline_notes=baseline_notes,
            doubts=[noise] if noise else [],
            table=_table(record),
        )

    def _unmeasured(self, checks: Sequence[GateCheck]) -> list[GateCheck]:
        """Return an undecided check for each condition that has none, so that no condition is dropped."""
        checked = {check.condition for check in checks}
        return [
            bound_of(condition).undecided(NO_COMMON_RATE)
            for condition in self.conditions
            if condition.words not in checked
        ]

    def _baseline_rows(self, record: Record) -> list[BaselineRow]:
        """Return the figures beside those of the baseline; none without a baseline."""
        if self.baseline is None:
            return []
        if isinstance(self.baseline, Checkout):
            return rows_beside_twins(self.baseline, record)
        return rows_against(self.baseline, record)


def _slower_checks(rows: Sequence[BaselineRow], verdicts: Sequence[PairVerdict], slower_by: float) -> list[GateCheck]:
    """Judge figures against the baseline's: failed if one is surely worse by more than the allowed share.

    Without any figure that both have, the only check is an undecided one.
    """
    if not rows:
        return [_bound_of_baseline("any figure", "", slower_by).undecided(NO_COMMON_ARM)]
    return [_slower_check(row, verdict, slower_by) for row, verdict in zip(rows, verdicts, strict=True)]


def _slower_check(row: BaselineRow, verdict: PairVerdict, slower_by: float) -> GateCheck:
    bound = _bound_of_baseline(row.figure, row.place, slower_by)
    if row.why_undecided:
        return bound.undecided(row.why_undecided)
    compared = ComparedFigure(row.kind, row.pair, verdict, unit=TIMES_THE_BASELINE_S)
    if row.kind is FigureKind.RATE:  # less is worse
        return check_of_pair(bound, compared, 1 / (1 + slower_by), is_over=False)
    return check_of_pair(bound, compared, 1 + slower_by, is_over=True)


def _bound_of_baseline(figure: str, place: str, slower_by: float) -> JudgedBound:
    """Return the bound of a figure that may be worse than the baseline's by this share."""
    percent = f"{100 * slower_by:.10g}%"
    return JudgedBound(
        condition=f"--fail-if-slower {percent}",
        figure=figure,
        bound=f"more than {percent} worse",
        unit_of_bound="than the baseline's",
        place=place,
    )


def _beside_baseline(row: BaselineRow, verdict: PairVerdict) -> str:
    """Return a sentence on a figure beside the baseline's, which no condition judges."""
    ratio = verdict.ratio
    subject = f"{row.figure} {row.place}".rstrip()
    if row.why_undecided or ratio is None or ratio.low is None:
        return f"{subject}: {row.why_undecided or verdict.sentence}"
    return f"{subject}: {ratio_in_words(ratio.value)} {TIMES_THE_BASELINE_S} {interval_in_words(ratio)}"


def _table(record: Record) -> GateTable:
    """Return the completion times of every arm."""
    rows = []
    for arm in record["arms"]:
        clock = "due" if "due_p50_us" in arm["metrics"] else "handed_over"
        figures = [with_middle_half(arm["metrics"].get(f"{clock}_{name}_us")) for name in ("p50", "p99")]
        rows.append([*rate_and_name(record, arm), *figures, median_text(arm["metrics"].get("orders_per_s"))])
    return GateTable(titles=("orders/s", "over", "p50 us", "p99 us", "achieved/s"), rows=rows)
