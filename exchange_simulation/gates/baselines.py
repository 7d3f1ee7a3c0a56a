"""Baselines: comparisons that are kept under their names, and other checkouts, against which figures are held.

A kept comparison was measured at another time, so its repeats and those of now share no drift. Sentences say how weak
that is. The arms of another checkout are measured in turns with this one's, and share the drift.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from exchange.json_records import Record
from exchange.record_kinds import ComparisonRecord
from exchange.words import counted
from exchange_simulation.experiments.trials.checkouts import PACKAGE, Checkout, is_checkout, twin_name
from exchange_simulation.gates.condition_checks import WORDING, shortage_of_orders, side_of
from exchange_simulation.gates.conditions import COMPLETION_NAMES, FigureKind
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import write_json
from exchange_simulation.launching.record.reading import read_record
from exchange_simulation.repeats.judging import ComparedPair, ComparedSide

BASELINES = "baselines"
"""The folder of the results folder that holds baselines."""
TRIAL_FILE = "comparison.json"
JUDGED_COMPLETION = ("p50", "p99")
JUDGED_CPU = {"gateway CPU": "gateway_cpu_s_per_million", "engine CPU": "engine_cpu_s_per_million"}
"""CPU time of our own code, an order. Where code became slower, it shows this more surely than a completion time."""
RATE = "rate"
MACHINE = ("cpu", "cores", "hypervisor")
"""Facts of the host in which two machines differ so much that their times cannot be compared."""
UNLIKE_BY_NATURE = {"seed"}


@dataclass(frozen=True)
class Baseline:
    """A kept comparison."""

    name: str
    record: Record


def keep_baseline(results: Path, folder: Path, output: Path | None) -> Path:
    """Keep the comparison of a trial's folder as a baseline, and return its file. UserError if it is no comparison."""
    if not (folder / TRIAL_FILE).exists():
        raise UserError(f"{folder} holds no {TRIAL_FILE}: a baseline is a comparison, as exchange compare makes it")
    record = read_record(folder / TRIAL_FILE, ComparisonRecord)
    file = output or results / BASELINES / f"{folder.name}.json"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {file.parent}: {error.strerror}") from error
    write_json(file, record)
    return file


def baseline_of(results: Path, name: str) -> Baseline | Checkout:
    """Return the baseline of this name, or that of a file, a trial of the results folder, or another checkout.

    UserError if there is none.
    """
    places = (
        results / BASELINES / f"{name}.json",
        Path(name) if name.endswith(".json") else None,
        results / name / TRIAL_FILE,
        Path(name) / TRIAL_FILE,
    )
    for place in places:
        if place is not None and place.is_file():
            return Baseline(name, read_record(place, ComparisonRecord))
    if is_checkout(Path(name)):
        return Checkout(Path(name).resolve())
    kept = sorted(path.stem for path in (results / BASELINES).glob("*.json"))
    there_are = f"kept are {', '.join(kept)}" if kept else "exchange results baseline NAME keeps one"
    raise UserError(
        f"--against is {name!r}, and {results} holds no such baseline or comparison: {there_are}. It is no folder with "
        f"this project's code either, which would hold {PACKAGE}, as a clone or git worktree does"
    )


@dataclass(frozen=True)
class BaselineRow:
    """A figure of one arm, now and in the baseline."""

    figure: str
    """For example: p99 of amqp"""
    place: str
    """For example: at 8,000 orders/s"""
    pair: ComparedPair
    kind: FigureKind
    why_undecided: str = ""


def rows_against(baseline: Baseline, record: Record) -> list[BaselineRow]:
    """Return a row for each judged figure of each arm that both comparisons have."""
    earlier_arms = {arm["label"]: arm for arm in baseline.record["arms"]}
    why = another_machine(baseline, record)
    rows = []
    for arm in record["arms"]:
        earlier = earlier_arms.get(arm["label"])
        if earlier is None:
            continue
        settings = difference_in_settings(earlier, arm)
        for figure in _judged_figures(arm):
            first = side_of(arm, figure.metric, record, figure.kind)
            measured_then = side_of(earlier, figure.metric, baseline.record, figure.kind)
            second = replace(measured_then, name=f"the baseline {baseline.name}")
            why_undecided = why or settings or shortage_of_orders((arm, earlier), figure.label)
            rows.append(_row(figure, arm, first, second, why_undecided))
    return rows


def rows_beside_twins(checkout: Checkout, record: Record) -> list[BaselineRow]:
    """Return a row for each judged figure of each arm that this code and the checkout's code measured."""
    arms = {(arm["contender"], arm["block"]): arm for arm in record["arms"]}
    rows = []
    for arm in record["arms"]:
        twin = arms.get((twin_name(arm["contender"], checkout.name), arm["block"]))
        if twin is None:
            continue
        for figure in _judged_figures(arm):
            first = side_of(arm, figure.metric, record, figure.kind)
            second = side_of(twin, figure.metric, record, figure.kind)
            rows.append(_row(figure, arm, first, second, shortage_of_orders((arm, twin), figure.label)))
    return rows


def _row(
    figure: JudgedFigure, arm: Record, first: ComparedSide, second: ComparedSide, why_undecided: str
) -> BaselineRow:
    pair = ComparedPair(figure=figure.metric, wording=WORDING, first=first, second=second)
    return BaselineRow(f"{figure.label} of {arm['contender']}", arm["block"], pair, figure.kind, why_undecided)


@dataclass(frozen=True)
class JudgedFigure:
    """A figure of an arm that is compared with the baseline's."""

    label: str
    metric: str
    kind: FigureKind


def _judged_figures(arm: Record) -> Iterator[JudgedFigure]:
    """Yield the judged figures of an arm: completion times from due, or the rate if no order was due; and CPU."""
    if arm["settings"]["orders_per_s"] is None:
        yield JudgedFigure(RATE, "orders_per_s", FigureKind.RATE)
    else:
        for label in JUDGED_COMPLETION:
            yield JudgedFigure(label, f"due_{COMPLETION_NAMES[label]}_us", FigureKind.COMPLETION)
    for label, metric in JUDGED_CPU.items():
        if metric in arm["metrics"]:
            yield JudgedFigure(label, metric, FigureKind.CPU)


def another_machine(baseline: Baseline, record: Record) -> str:
    """Return a sentence if the baseline was measured on another machine, on which times differ anyway; else empty."""
    then = baseline.record["conditions"].get("host") or {}
    now = record["conditions"].get("host") or {}
    for fact in MACHINE:
        if then.get(fact) != now.get(fact):
            return f"the baseline is of another machine: {fact} was {then.get(fact)}, and is {now.get(fact)}"
    return ""


def difference_in_settings(earlier: Record, arm: Record) -> str:
    """Return a sentence on settings that differ between two arms of one label; empty if none does."""
    for name, value in arm["settings"].items():
        then = earlier["settings"].get(name, value)
        if name not in UNLIKE_BY_NATURE and then != value:
            return f"other settings than the baseline's: {name} was {then}, and is {value}"
    return ""


def weaknesses(baseline: Baseline, record: Record) -> list[str]:
    """Return sentences on how far a comparison with this baseline can be trusted."""
    started_at = baseline.record["conditions"].get("started_at")
    age = f" {_age(started_at)} ago" if started_at else ""
    sentences = [
        f"weak: the baseline {baseline.name} was measured{age}, not in turns with this comparison, so drift of the "
        "machine since then is in the ratios and not in their intervals"
    ]
    other_machine = another_machine(baseline, record)
    if other_machine:
        sentences.append(other_machine)
    then = baseline.record["conditions"].get("versions") or {}
    now = record["conditions"].get("versions") or {}
    changed = [name for name in now if name in then and then[name] != now[name]]
    if changed:
        versions = [f"{name} {then[name]} then, {now[name]} now" for name in changed]
        sentences.append(f"other versions than the baseline's: {'; '.join(versions)}")
    labels = {arm["label"] for arm in record["arms"]}
    missing = [arm["label"] for arm in baseline.record["arms"] if arm["label"] not in labels]
    if missing:
        sentences.append(f"only the baseline has: {', '.join(missing)}")
    return sentences


def _age(started_at: str) -> str:
    """Return how long ago that was. For example: 6 days"""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(started_at)).total_seconds()
    for unit, length_s in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= length_s:
            return counted(int(seconds // length_s), unit)
    return counted(max(0, int(seconds)), "seconds")
