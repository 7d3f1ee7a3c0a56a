"""A comparison in the terminal: figures by rate and arm, then verdicts; for a study of Nagle's algorithm, packets."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from exchange.json_records import Record
from exchange.unique import unique
from exchange_simulation.launching.metrics import COMPONENTS
from exchange_simulation.launching.record.noise_summary import noise_banner
from exchange_simulation.reports.comparison.answer import headline, other_answers
from exchange_simulation.reports.comparison.paper_values import (
    FIGURES_8_IN_WORDS,
    NOT_COMPARABLE,
    TABLE_1,
    has_nagle_at_broker_alone,
)
from exchange_simulation.reports.comparison.ratio_plot import Mark, RatioPlot, ratio_plot, scale_of_strips, strip
from exchange_simulation.reports.comparison.sentences import completion, cpu_beyond, cpu_metric, rate_and_name, sureness
from exchange_simulation.reports.formats.estimates import median_text, with_middle_half
from exchange_simulation.reports.formats.numbers import number_text, rate_text
from exchange_simulation.reports.tables import FoldingTable, TableColumn, key_column, plain_table, terminal, warning

STRIP_WIDTH = 25
KEY = "--*-- the arms differ; --o-- cannot tell; | marks 1. Repeats: how many lie on the ratio's side of 1."
CPU_BEYOND = "More than: the difference in each repeat, in which the exchange's own work cancels."
CLOCKS = "Times are from due; at rate max no order has a due time, so they are from handing over."
NAGLE_COMPLETION = {"mean": "due_mean_us", "p50": "due_p50_us", "p99": "due_p99_us", "max": "due_max_us"}
"""The metrics of the table of completion times, by their columns' titles."""
HANDED_OVER = {"mean handed": "handed_over_mean_us"}
"""The column whose times are from handing over, as the paper's are."""
PACKETS = {"packets an order": "packets_per_order", "mean bytes": "packet_bytes", "mean gap us": "packet_gap_us"}
WITH_MIDDLE_HALF = {"due_mean_us", "due_p50_us", "packets_per_order"}
"""The metrics that a study of Nagle's algorithm prints with the middle half of the repeats."""


def show(record: Record) -> None:
    """Print the content of comparison.json."""
    console = terminal()
    _show_answer(console, record)
    console.print()
    console.print(_completion_table(record))
    if _is_any_without_due_times(record):
        console.print(f"[dim]{CLOCKS}[/dim]")
    console.print()
    console.print(_cpu_table(record))
    if record["verdicts"]:
        console.print(f"[dim]{CPU_BEYOND}[/dim]")
    for caveat in record["caveats"]:
        console.print(warning(caveat))


def show_nagle(record: Record) -> None:
    """Print the content of comparison.json of a study of Nagle's algorithm: completion time, table 1 of the paper."""
    console = terminal()
    _show_answer(console, record)
    console.print("\n[bold]completion time from due, us[/bold]")
    is_comparable = has_nagle_at_broker_alone(record)
    if is_comparable:
        console.print(_nagle_table(record, NAGLE_COMPLETION | HANDED_OVER))
        console.print(f"[dim]{FIGURES_8_IN_WORDS}[/dim]")
    else:
        console.print(_nagle_table(record, NAGLE_COMPLETION))
        console.print(f"[dim]{NOT_COMPARABLE}[/dim]")
    console.print("\n[bold]packets between gateway and engine, or to and from the broker (table 1)[/bold]")
    packets = _nagle_table(record, PACKETS)
    if is_comparable:
        for row in TABLE_1:
            figures = (number_text(row.packets_per_order), f"{row.mean_bytes}", f"{row.mean_gap_us}")
            packets.add_row(f"{row.orders_per_s:,}", "the paper's", f"Nagle {row.nagle}", *figures, style="dim")
    console.print(packets)
    for caveat in record["caveats"]:
        console.print(warning(caveat))


def _show_answer(console: Console, record: Record) -> None:
    """Print the answer in a sentence, then by how much arms differ and how sure that is."""
    console.print()
    console.print(Text(headline(record), "bold"))
    noise = noise_banner(record, "runs")
    if noise:
        console.print(Text(noise, "bold red"))
    for sentence in other_answers(record):
        console.print(Text(sentence))
    show_ratios(console, record)


def show_ratios(console: Console, record: Record) -> None:
    """Print a row of the ratio plot for each verdict; their sentences if nothing was compared."""
    plot = ratio_plot(record)
    if plot is None:
        for sentence in unique(f"{verdict['block']}: {verdict['sentence']}" for verdict in record["verdicts"]):
            console.print(Text(sentence))
        return
    for group, marks in plot.groups.items():
        console.print(Text(f"\n{group}", "bold"))
        console.print(_ratios(plot, marks))
        for mark in marks:
            if mark.outcome == "not compared":
                console.print(Text(f"{mark.label}: {mark.sentence}"))
    console.print(f"[dim]{KEY} {sureness(record)}[/dim]")


def _ratios(plot: RatioPlot, marks: list[Mark]) -> FoldingTable:
    """Return the ratio plot of one metric and pair of contenders."""
    strips = TableColumn(scale_of_strips(plot.ticks, STRIP_WIDTH), "figure", from_right=False)
    table = plain_table(key_column(from_right=True), strips, "ratio", "repeats")
    for mark in marks:
        if mark.outcome != "not compared":
            strip_of_mark = Text(strip(mark, plot.ticks, STRIP_WIDTH), no_wrap=True)
            style = "bold" if mark.outcome == "differ" else None
            table.add_row(mark.label, strip_of_mark, mark.words, mark.agree, style=style)
    return table


def _completion_table(record: Record) -> FoldingTable:
    """Return the medians over repeats, with the middle half of the repeats in brackets."""
    titles = ["p50 us" if _is_any_without_due_times(record) else "p50 us from due", "p99 us", "achieved/s"]
    is_any_saturated = any(arm["saturated"] for arm in record["arms"])
    if is_any_saturated:
        titles.append("saturated")
    table = plain_table(key_column("orders/s", from_right=True), key_column(), *titles)
    for arm in record["arms"]:
        clock = "handed_over" if _has_no_due_times(arm) else "due"
        figures = [completion(arm, clock, name, with_middle_half) for name in ("p50", "p99")]
        figures.append(median_text(arm["metrics"].get("orders_per_s")))
        if is_any_saturated:
            figures.append(f"{arm['saturated']} of {len(arm['runs'])}" if arm["saturated"] else "")
        table.add_row(*rate_and_name(record, arm), *figures)
    return table


def _is_any_without_due_times(record: Record) -> bool:
    return any(_has_no_due_times(arm) for arm in record["arms"])


def _has_no_due_times(arm: Record) -> bool:
    return "due_p50_us" not in arm["metrics"] and "handed_over_p50_us" in arm["metrics"]


def _cpu_table(record: Record) -> FoldingTable:
    """Return the CPU seconds for a million orders: in all, beyond the first arm of the block, and by component."""
    components = [name for name in COMPONENTS if any(cpu_metric(name) in arm["metrics"] for arm in record["arms"])]
    is_compared = bool(record["verdicts"])
    total_title = "CPU s per million"
    titles = [total_title]
    if is_compared:
        titles.append(f"more than {record['contenders'][0]}")
    table = plain_table(
        key_column("orders/s", from_right=True), key_column(), *titles, *components, title_of_later_blocks=total_title
    )
    for arm in record["arms"]:
        figures = [with_middle_half(arm["metrics"].get("cpu_s_per_million"))]
        if is_compared:
            beyond = cpu_beyond(record, arm)
            figures.append(with_middle_half(beyond) if beyond else "")
        figures += [median_text(arm["metrics"].get(cpu_metric(name))) for name in components]
        table.add_row(*rate_and_name(record, arm), *figures)
    return table


def _nagle_table(record: Record, metrics: Mapping[str, str]) -> FoldingTable:
    """Return a table with a row for each arm, and these metrics by their titles."""
    table = plain_table(key_column("orders/s", from_right=True), key_column(), key_column(), *metrics)
    for arm in record["arms"]:
        figures = [_figure(arm, metric) for metric in metrics.values()]
        settings = arm["settings"]
        table.add_row(rate_text(settings["orders_per_s"]), settings["transport"], arm["contender"], *figures)
    return table


def _figure(arm: Record, metric: str) -> str:
    in_words = with_middle_half if metric in WITH_MIDDLE_HALF else median_text
    if metric not in NAGLE_COMPLETION.values():
        return in_words(arm["metrics"].get(metric))
    figure = metric.removeprefix("due_").removesuffix("_us")
    return completion(arm, "due", figure, in_words)
