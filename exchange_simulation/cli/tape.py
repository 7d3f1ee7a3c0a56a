"""`exchange tape`: files of orders: the seeded stream, tapes made of other formats, and the statistics of a tape."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exchange_simulation.cli.main import LoadingGroup
from exchange_simulation.launching.option_types import Count, Rate
from exchange_simulation.launching.options import json_option, options_for
from exchange_simulation.launching.typed_settings import run_settings

if TYPE_CHECKING:
    from exchange_simulation.experiments.tapes.statistics import ArrivalFigures, TapeStatistics


@click.group(cls=LoadingGroup, invoke_without_command=True)
@click.option("--orders", type=Count(), default="1M", show_default=True, help="Number of orders.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@options_for("seed", "prices", "price_model", "max_price")
@click.option(
    "--rate",
    "orders_per_s",
    type=Rate(),
    help="Orders a second: write also when each is due, in a file beside the tape.",
)
@options_for("arrivals", "mix")
@click.pass_context
def command(ctx: click.Context, /, output: Path | None, **given: Any) -> None:
    """Write the seeded order stream as wire messages; with --rate, also their due times, in a file beside it.

    Example: exchange tape --orders 1000000 --seed 7 --output tape.bin

    \b
    exchange tape --mix exchange-core --price-model two-sided --rate 8000 --output mixed.bin
    exchange tape stats mixed.bin
    """
    if ctx.invoked_subcommand is not None:
        return
    from exchange_simulation.launching.tape import write_tape

    if output is None:
        raise click.UsageError("Missing option '--output': name the file to write")
    write_tape(output, run_settings(**given))


@command.command()
@click.argument("tape", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def stats(tape: Path, as_json: bool) -> None:
    """Say what is on a tape: kinds of messages, order-to-trade ratio, spread, price levels, arrivals.

    The tape is matched with an empty book, in price-time priority.

    Example: exchange tape stats tape.bin
    """
    from exchange_simulation.experiments.tapes.statistics import statistics_of
    from exchange_simulation.reports.exports import print_json

    statistics = statistics_of(tape)
    if as_json:
        print_json(statistics.as_dict())
        return
    for line in lines_of(statistics):
        click.echo(line)


def lines_of(statistics: TapeStatistics) -> list[str]:
    """Return the statistics in words, the answer first."""
    from exchange.words import counted, printable

    ratio = statistics.order_to_trade_ratio
    for_each_trade = "no trades" if ratio is None else f"{ratio:,.2f} for each trade"
    lines = [f"{printable(statistics.tape)}: {counted(statistics.messages, 'messages')}, {for_each_trade}"]
    shares = (f"{100 * count / statistics.messages:.3g} % {kind}" for kind, count in statistics.kinds.items())
    lines.append(f"kinds     {', '.join(shares)}")
    lots = counted(statistics.volume_traded, "lots")
    lines.append(f"trades    {counted(statistics.trades, 'trades')} of {lots} in all")
    requests = statistics.kinds.get("cancel", 0) + statistics.kinds.get("replace", 0)
    if requests:
        share = 100 * statistics.too_late / requests
        lines.append(f"too late  {share:.3g} % of the cancels and replaces: their orders were not in the book")
    other_rejections = statistics.rejections - statistics.too_late
    if other_rejections:
        lines.append(f"rejected  {counted(other_rejections, 'messages')} for other reasons")
    spread = statistics.spread
    if spread is None:
        lines.append("spread    none: the book never had a bid and an ask")
    else:
        ticks = f"p10 {spread.p10_ticks}, p50 {spread.p50_ticks}, p90 {spread.p90_ticks} ticks"
        lines.append(f"spread    {ticks}; a bid and an ask after {spread.two_sided_percent:.3g} % of the messages")
    levels = statistics.levels
    lines.append(f"levels    {levels.mean:.0f} prices hold orders on average, {levels.most:,} at most")
    resting = counted(statistics.resting_orders, "orders")
    resting_lots = counted(statistics.resting_volume, "lots")
    lines.append(f"at end    {resting} of {resting_lots} rest at {counted(levels.at_end, 'prices')}")
    lines.append(f"arrivals  {_arrivals_in_words(statistics.arrivals)}")
    if statistics.mix is not None:
        lines.append(f"the same mix from a seed: --mix {statistics.mix}")
    return lines


def _arrivals_in_words(arrivals: ArrivalFigures | None) -> str:
    if arrivals is None:
        return "unknown: no file beside the tape says when its messages are due"
    return (
        f"{arrivals.messages_per_s:,.0f}/s over {arrivals.length_s:,.3g} s, {arrivals.busiest_second:,} in the busiest "
        f"second; gaps p50 {arrivals.gap_p50_us:,.3g} us, p99 {arrivals.gap_p99_us:,.3g} us; "
        f"{arrivals.at_once_percent:.3g} % due at once with the one before"
    )
