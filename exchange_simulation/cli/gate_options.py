"""Options of commands whose figures can fail a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exchange_simulation.launching.option_types import Percent
from exchange_simulation.launching.options import together

if TYPE_CHECKING:
    from exchange_simulation.experiments.trials.plan import TrialPlan
    from exchange_simulation.gates.comparison_gate import ComparisonGate
    from exchange_simulation.gates.gate_report import GateReport

FILE_OPTIONS = {"junit", "markdown"}
COMPARISON_OPTIONS = FILE_OPTIONS | {"fail_if", "against", "fail_if_slower"}
"""Parameters of the options of `comparison_gate_options`."""

slo_option = click.option(
    "--slo",
    multiple=True,
    metavar="BOUND",
    help="End with exit code 3 unless this holds, as 'p99 <= 1ms'; may be given several times.",
)
report_options = together(
    [
        click.option(
            "--junit",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Write the outcome of each condition as JUnit XML.",
        ),
        click.option(
            "--markdown",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Write a summary for a pull request.",
        ),
    ]
)
comparison_gate_options = together(
    [
        click.option(
            "--fail-if",
            "fail_if",
            multiple=True,
            metavar="CONDITION",
            help="End with exit code 3 if this is sure, as 'p99 of amqp over 2x zeromq'; may be given several times.",
        ),
        click.option(
            "--against",
            metavar="NAME|FOLDER",
            help="Compare with NAME, a comparison that exchange results baseline kept: the same is measured again, "
            "unless you give other options. Or with the code in FOLDER, another clone or git worktree of this project: "
            "it is measured in turns with this code.",
        ),
        click.option(
            "--fail-if-slower",
            "fail_if_slower",
            type=Percent(),
            metavar="PERCENT",
            help="With --against: end with exit code 3 if a figure is surely worse by more, as 10%.",
        ),
        report_options,
    ]
)


@dataclass(frozen=True)
class GateFiles:
    """The files that a gate writes; None for a file that nobody asked for."""

    junit: Path | None = None
    markdown: Path | None = None

    def write(self, report: GateReport) -> None:
        """Write the files. UserError if one cannot be written."""
        if self.junit:
            from exchange_simulation.gates.junit import write_junit

            write_junit(self.junit, report)
        if self.markdown:
            from exchange_simulation.gates.markdown import write_markdown

            write_markdown(self.markdown, report)


@dataclass(frozen=True)
class TypedGate:
    """The options of a comparison's gate, as the user typed them."""

    fail_if: Sequence[str]
    against: str | None
    fail_if_slower: float | None
    files: GateFiles
    results: Path

    @classmethod
    def of_parameters(cls, parameters: dict[str, Any]) -> TypedGate:
        """UsageError for options that need each other."""
        if parameters["fail_if_slower"] is not None and parameters["against"] is None:
            raise click.UsageError("--fail-if-slower needs a baseline to be slower than: give --against too")
        return cls(
            fail_if=parameters["fail_if"],
            against=parameters["against"],
            fail_if_slower=parameters["fail_if_slower"],
            files=GateFiles(parameters["junit"], parameters["markdown"]),
            results=Path(parameters["results"]),
        )

    def planned(self, plan: TrialPlan) -> TrialPlan:
        """Return the plan; with another checkout as the baseline, a plan whose arms its code measures too."""
        from exchange_simulation.experiments.trials.checkouts import Checkout, with_twins
        from exchange_simulation.gates.baselines import baseline_of

        if self.against is None:
            return plan
        baseline = baseline_of(self.results, self.against)
        if not isinstance(baseline, Checkout):
            return plan
        return replace(plan, arms=with_twins(plan.arms, baseline))

    def for_plan(self, plan: TrialPlan) -> ComparisonGate:
        """Return the gate of a trial with this plan. UserError for a condition or a baseline that cannot judge it."""
        from exchange_simulation.gates.baseline_plan import check_comparable
        from exchange_simulation.gates.baselines import Baseline
        from exchange_simulation.gates.comparison_gate import ComparisonGate

        gate = ComparisonGate.of_options(self.fail_if, self.against, self.fail_if_slower, plan.contenders, self.results)
        if isinstance(gate.baseline, Baseline):
            check_comparable(gate.baseline, plan.arms)
        return gate

    def judged(self, gate: ComparisonGate, folder: Path, record: dict[str, Any], *, to_stderr: bool) -> GateReport:
        """Judge a trial's record, print the outcomes, and write them: into the folder, its page and the files."""
        from exchange_simulation.reports.comparison.page import write_page
        from exchange_simulation.reports.gate_outcomes import write_outcomes
        from exchange_simulation.reports.gate_sentences import show_gate

        report = gate.report(str(folder), record)
        show_gate(report, to_stderr=to_stderr)
        if not report.is_empty:
            write_outcomes(folder, report)
            write_page(folder, record)
        self.files.write(report)
        return report
