"""Figures 8 and 9 of the paper, of our runs: its quantities on its axes, which are linear."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reports.comparison.completion_figures import by, rate_of
from reports.comparison.figures import NAGLE, Figure, with_rate
from reports.comparison.naming import beside_the_rate
from reports.comparison.paper_lines import PaperLine, lines_against_rate, lines_of
from reports.drawing.colours import MUTED
from reports.drawing.labelled_lines import EndLabel

Record = dict[str, Any]
Arms = dict[str, list[Record]]
"""Of each line, by its name."""

PARTS = {"broker": "a", "gateway": "b", "engine": "c"}
"""Of figure 9."""
RATES = (
    "Sent and received are one line each: a run in which they differ is invalid, and left out. Dashed: what was "
    "offered. Colours as in 8 (b); rates that are held lie upon each other."
)
COMPLETION = "Mean, from handing over, as the paper has it; medians over repeats."
CPU = "Of one core, all threads; medians over repeats."


def paper_figures(record: Record) -> Iterator[Figure]:
    """In the style that holds."""
    found = groups(record)
    if not found:
        return
    first = next(iter(found.values()))
    yield from _message_rate(first)
    for (words, arms), part in zip(found.items(), "bcdefgh", strict=False):
        lines = lines_of(arms, "handed_over_mean_us")
        yield from _named(f"Figure 8 ({part}): order completion time{words}", lines, ("µs", "us"), COMPLETION)
    for component, part in PARTS.items():
        lines = lines_of(first, f"{component}_cpu_percent")
        yield from _named(f"Figure 9 ({part}): CPU utilisation of the {component}", lines, ("%", "percent"), CPU)


def groups(record: Record) -> dict[str, Arms]:
    """The lines of each figure, by what its title adds: contenders; or transports, for each way to hold back.

    Empty where there are not several rates.
    """
    arms = with_rate(record)
    if len({rate_of(arm) for arm in arms}) < 2:
        return {}
    if record["study"] == NAGLE:
        contenders = by(arms, lambda arm: arm["contender"])
        return {f", {words}": by(own, lambda arm: arm["settings"]["transport"]) for words, own in contenders.items()}
    return {words: by(own, lambda arm: arm["contender"]) for words, own in by(arms, beside_the_rate).items()}


def _message_rate(arms: Arms) -> Iterator[Figure]:
    """Orders below, answers above; a line of each for each transport, which lie upon each other while rates hold."""
    found = {what: lines_of(arms, f"{what}_per_s", f"{what}, ") for what in ("orders", "answers")}
    lines = [line for own in found.values() for line in own]
    if not lines:
        return
    labels = [EndLabel(max(line.end for line in own), what, MUTED) for what, own in found.items() if own]
    chart = lines_against_rate(lines, "per second", "per_s", labels)
    highest = max(rate_of(arm) for line in lines for arm in line.arms)
    chart.axes.plot([0.0, highest], [0.0, highest], color=MUTED, linestyle="--", linewidth=1.2, zorder=1)
    yield Figure("Figure 8 (a): message rate", chart, RATES)


def _named(title: str, lines: list[PaperLine], unit: tuple[str, str], caption: str) -> Iterator[Figure]:
    """Each line named beside its end; nothing where there is none. The unit as the axis has it, and the file."""
    if lines:
        labels = [EndLabel(line.end, line.name, line.colour) for line in lines]
        yield Figure(title, lines_against_rate(lines, *unit, labels), caption)
