"""`exchange tape`: files of orders: the seeded stream, tapes made of other formats, and the statistics of a tape."""

from __future__ import annotations

from dataclasses import asdict
from decimal import InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exchange.quantities import number_of
from exchange_simulation.cli.idle_options import refuse_idle_options
from exchange_simulation.cli.main import CommandGroup
from exchange_simulation.launching.files import refuse_overwriting
from exchange_simulation.launching.option_types import Count, OneOf, Rate
from exchange_simulation.launching.options import json_option, options_for
from exchange_simulation.launching.typed_settings import run_settings
from exchange_simulation.reports.formats.numbers import three_digits

if TYPE_CHECKING:
    from exchange_simulation.experiments.tapes.event_file import EventFile
    from exchange_simulation.experiments.tapes.importing import ImportedTape
    from exchange_simulation.experiments.tapes.statistics import ArrivalFigures, TapeStatistics


overwrite_option = click.option("--overwrite", is_flag=True, help="Replace the file if it is there already.")
FORMATS = ("lobster", "itch50")
PRICE_UNITS_PER_DOLLAR = 10_000
LARGEST_TICK = 1_000 * PRICE_UNITS_PER_DOLLAR


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option("--orders", type=Count(), default="1M", show_default=True, help="Number of orders.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@options_for("seed", "prices", "price_model", "max_price")
@click.option(
    "--rate",
    "orders_per_s",
    type=Rate(),
    help="Orders a second: write also when each is due, in a file beside the tape.",
)
@options_for("arrivals", "mix", "instruments")
@overwrite_option
@click.pass_context
def command(ctx: click.Context, /, output: Path | None, overwrite: bool, **given: Any) -> None:
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
    refuse_idle_options(ctx)
    refuse_overwriting(output, overwrite)
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
    from exchange_simulation.reports.tables import terminal

    statistics = statistics_of(tape)
    if as_json:
        print_json(statistics.as_dict())
        return
    console = terminal()
    for line in lines_of(statistics):
        console.print(line, markup=False, soft_wrap=not console.is_terminal)


@command.command("import")
@click.argument("source", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--format", "file_format", type=OneOf(FORMATS), required=True, help="What the file is.")
@click.option("--stock", metavar="SYMBOL", help="Of itch50: the stock whose orders become the tape.")
@click.option(
    "--tick",
    default="0.01",
    show_default=True,
    metavar="DOLLARS",
    help="The step of prices: a price of the tape is a number of ticks.",
)
@click.option("--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The tape to write.")
@overwrite_option
@json_option
def import_(
    source: Path, file_format: str, stock: str | None, tick: str, output: Path, overwrite: bool, as_json: bool
) -> None:
    """Make a tape of a file of market data: the day's orders of one stock, and when they are due.

    An execution becomes an immediate-or-cancel order of the other side. What a tape cannot say is counted.

    Example: exchange tape import messages.csv --format lobster --output day.bin

    \b
    exchange tape import 01302020.NASDAQ_ITCH50 --format itch50 --stock AAPL --output day.bin
    """
    from exchange_simulation.experiments.tapes.importing import import_tape
    from exchange_simulation.reports.exports import print_json

    refuse_overwriting(output, overwrite)
    events = _event_file(file_format, stock)
    imported = import_tape(source, events, output, _price_units(tick))
    if as_json:
        print_json(asdict(imported))
        return
    for line in imported_in_words(imported, tick):
        click.echo(line)


def _event_file(file_format: str, stock: str | None) -> EventFile:
    """Return the reader of the format. UsageError for a stock that is missing, cannot be, or changes nothing."""
    from exchange_simulation.experiments.tapes.itch50 import ItchFile
    from exchange_simulation.experiments.tapes.lobster import LobsterFile

    if file_format == "lobster":
        if stock is not None:
            raise click.UsageError(f"--stock is {stock}, but a file of LOBSTER has one stock: leave --stock out")
        return LobsterFile()
    if stock is None:
        raise click.UsageError("--format itch50 has all stocks of a day: give one with --stock, as AAPL")
    try:
        return ItchFile(stock)
    except ValueError as error:
        raise click.UsageError(f"--stock: {error}") from error


def _price_units(tick: str) -> int:
    """Return the tick in ten-thousandths of a dollar, the price unit of both formats. UsageError if it is none."""
    refusal = click.UsageError(f"--tick is {tick}; allowed is 0.0001 to 1000 dollars, in steps of 0.0001, as 0.01")
    try:
        units = number_of(tick) * PRICE_UNITS_PER_DOLLAR
    except InvalidOperation as error:
        raise refusal from error
    if units != int(units) or not 1 <= units <= LARGEST_TICK:
        raise refusal
    return int(units)


def imported_in_words(imported: ImportedTape, tick: str) -> list[str]:
    """Return the outcome of an import in words, the answer first."""
    from exchange.words import counted, printable

    tape = printable(imported.tape)
    lines = [
        f"{tape}: {counted(imported.messages, 'messages')} of {counted(imported.events, 'events')}",
        f"on it     {counted(imported.orders, 'orders')}, {counted(imported.executions, 'executions')} as ioc orders, "
        f"{counted(imported.cancels, 'cancels')}, {counted(imported.replaces, 'replaces')}",
    ]
    for messages, count in imported.left_out.items():
        lines.append(f"left out  {messages}: {count:,}")
    lines.append(f"prices    {imported.lowest_price:,} to {imported.highest_price:,} ticks of {tick} dollars")
    lines.append(f"match it  exchange match {tape} --ids --max-price {imported.highest_price}")
    return lines


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
    if statistics.instruments > 1:
        lines.append(f"{statistics.instruments:,} instruments; the spread is that of the instrument quoted last")
    if statistics.mix is not None:
        lines.append(f"the same mix from a seed: --mix {statistics.mix}")
    return lines


def _arrivals_in_words(arrivals: ArrivalFigures | None) -> str:
    if arrivals is None:
        return "unknown: no file beside the tape says when its messages are due"
    gap_p50 = three_digits(arrivals.gap_p50_us)
    gap_p99 = three_digits(arrivals.gap_p99_us)
    return (
        f"{arrivals.messages_per_s:,.0f}/s over {three_digits(arrivals.length_s)} s, {arrivals.busiest_second:,} in "
        f"the busiest second; gaps p50 {gap_p50} us, p99 {gap_p99} us; "
        f"{arrivals.at_once_percent:.3g} % due at once with the one before"
    )
