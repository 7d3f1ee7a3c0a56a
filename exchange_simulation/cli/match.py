"""`exchange match`: run the engine alone over a tape; count its answers and time decoding, matching and encoding."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from exchange.instances import MAX_GATEWAYS
from exchange.instruments import MAX_INSTRUMENTS
from exchange_simulation.launching.errors import UserError, cannot_write, reading
from exchange_simulation.launching.options import json_option, options_for

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from exchange_simulation.launching.answers_of_gateways import AnswersOfGateways
    from matching_engine.engine import MatchingEngine

    Bytes = npt.NDArray[np.uint8]


KINDS = (
    "orders",
    "cancels",
    "replaces",
    "trades",
    "confirmations",
    "quotes",
    "rejections",
    "cancelled",
    "replaced",
)
"""The counts in the order in which they are shown: what came in, then the answers."""


@click.command()
@click.argument("tape", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--answers", type=click.Path(dir_okay=False, path_type=Path), help="Write the answers to this file.")
@click.option(
    "--gateways",
    type=click.IntRange(1, MAX_GATEWAYS),
    help="The tape is input.bin of a run: an engine took it from this many gateways. --answers gets a file for each.",
)
@click.option(
    "--quotes-to",
    type=click.Choice(["all", "none"]),
    default="all",
    help="With --gateways: as in the run, each quote goes to all gateways, or to none.",
)
@click.option(
    "--instruments",
    type=click.IntRange(1, MAX_INSTRUMENTS),
    help="Number of instruments, as in the run.  [default: what the orders name]",
)
@click.option(
    "--opening",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Put the orders of this tape into the book first, as in the run.",
)
@options_for("capacity", "with_ids", "policy", "max_price")
@json_option
def command(
    tape: Path,
    answers: Path | None,
    gateways: int | None,
    quotes_to: str,
    instruments: int | None,
    opening: Path | None,
    capacity: int | None,
    with_ids: bool,
    policy: str,
    max_price: int,
    as_json: bool,
) -> None:
    """Match a tape of orders and count the answers.

    Example: exchange match tape.bin --answers answers.bin --json
    """
    book = {
        "max_price": max_price,
        "policy": policy,
        "capacity": capacity,
        "with_ids": with_ids,
    }
    if quotes_to != "all" and gateways is None:
        raise click.UsageError("--quotes-to is for the orders of several gateways: give --gateways, too")
    if opening is not None and gateways is not None:
        raise click.UsageError("--opening does not go together with --gateways, as in a run: leave one out")
    figures = _match(tape, answers, gateways, instruments, opening, get_quotes=quotes_to == "all", **book)
    _show(figures, as_json)
    requests = figures["cancels"] + figures["replaces"]
    if requests and not with_ids:
        click.echo(f"{requests:,} cancels and replaces were rejected: only a book with --ids finds orders", err=True)


def _match(
    tape: Path,
    answers: Path | None,
    gateways: int | None,
    instruments: int | None,
    opening: Path | None,
    *,
    get_quotes: bool,
    **book: Any,
) -> dict[str, Any]:
    """Match the tape; return counts, checksums, speed. UserError if tape, output or a book setting is wrong."""
    from exchange.messages import MalformedMessage
    from exchange_simulation.launching.answers_of_gateways import AnswersOfGateways, check_gateways_on
    from exchange_simulation.launching.files import whole_file
    from exchange_simulation.launching.opening_tape import fill_book_of, needs_ids, read_opening
    from matching_engine.engine import MatchingEngine
    from matching_engine.order_book import OrderBook
    from matching_engine.tape import match_tape

    if answers is not None and os.path.exists(answers) and answers.samefile(tape):
        raise UserError(f"--answers {answers} is the tape itself: choose another file")
    orders = _read(tape)
    opening_orders = None
    if opening is not None:
        opening_orders = read_opening(opening)
        book["with_ids"] = book["with_ids"] or needs_ids(opening, opening_orders)
    by_gateway = None
    try:
        books = _instruments_of(orders) if instruments is None else instruments
        is_shared = gateways is not None
        engine = MatchingEngine(OrderBook(**book, instruments=books if books > 1 else None), is_shared=is_shared)
        engine.warm()
        if opening is not None and opening_orders is not None:
            fill_book_of(engine, opening, opening_orders)
        with contextlib.ExitStack() as files:
            file = None
            if gateways is not None:
                check_gateways_on(tape, orders, gateways)
                by_gateway = AnswersOfGateways(gateways, answers, files, get_quotes=get_quotes)
            elif answers:
                file = files.enter_context(whole_file(answers))

            taken = _AnswersTaken(by_gateway, file)
            seconds = match_tape(engine, orders, taken.take)
    except MalformedMessage as error:
        raise UserError(f"{tape}: {error}") from error
    except OSError as error:
        raise cannot_write(answers or tape, error) from error
    except (ValueError, MemoryError) as error:
        raise UserError(str(error)) from error
    figures = _figures(engine, orders, taken.checksum.hex, seconds)
    figures["rejections_by_reason"] = taken.rejections.by_reason
    if by_gateway:
        figures["gateways"] = by_gateway.figures
    return figures


class _AnswersTaken:
    """Takes the answers: hashes them, counts rejections by reason, and writes them where the user wants them."""

    def __init__(self, by_gateway: AnswersOfGateways | None, file: IO[bytes] | None) -> None:
        from exchange.checksum import StreamChecksum
        from exchange_simulation.launching.rejection_reasons import RejectionReasons

        self.checksum = StreamChecksum()
        self.rejections = RejectionReasons()
        self._by_gateway = by_gateway
        self._file = file

    def take(self, answers: Bytes) -> None:
        """Take answers, whole records one after the other."""
        self.checksum.update(answers)
        self.rejections.take(answers)
        if self._by_gateway:
            self._by_gateway.take(answers)
        if self._file:
            self._file.write(answers.data)


def _instruments_of(orders: Bytes) -> int:
    """Return how many instruments the orders name, at least two if they name any; 1 if they name none."""
    from gateway.tape_records import read_records

    named = read_records(orders).instruments
    return 1 if named is None else max(named, 2)


def _read(tape: Path) -> Bytes:
    import numpy as np

    from transports.regular_files import check_regular

    with reading(tape):
        check_regular(tape)
        return np.fromfile(tape, np.uint8)


def _figures(engine: MatchingEngine, orders: Bytes, answers: str, seconds: float) -> dict[str, Any]:
    """The figures that --json prints; `answers` is the checksum of the answers."""
    from exchange.checksum import StreamChecksum
    from exchange.results import NAME

    counts = engine.counts
    checksum = StreamChecksum()
    checksum.update(orders)
    return {
        **counts._asdict(),
        "answers": counts.answers,
        "checksums": {"hash": NAME, "orders": checksum.hex, "answers": answers},
        "orders_per_s": counts.records / seconds,
        "seconds": seconds,
    }


def _show(figures: dict[str, Any], as_json: bool) -> None:
    from exchange.words import noun
    from exchange_simulation.reports.exports import print_json

    if as_json:
        print_json(figures)
        return
    for kind in KINDS:
        if figures[kind]:
            click.echo(f"{figures[kind]:>14,} {noun(figures[kind], kind)}{_reasons(figures, kind)}")
    click.echo(f"{figures['orders_per_s']:>14,.0f} orders/s, matching, decoding and encoding")
    sums = figures["checksums"]
    click.echo(f"{sums['hash']:>14} orders {sums['orders']}, answers {sums['answers']}")
    for entry in figures.get("gateways", ()):
        click.echo(f"{entry['answers']:>14,} answers to gateway {entry['gateway']}, {sums['hash']} {entry['checksum']}")


def _reasons(figures: dict[str, Any], kind: str) -> str:
    """Return how many rejections had each reason, to be appended to their number; nothing for other kinds."""
    if kind != "rejections":
        return ""
    reasons = [f"{count:,} {reason}" for reason, count in figures["rejections_by_reason"].items()]
    return f": {', '.join(reasons)}"
