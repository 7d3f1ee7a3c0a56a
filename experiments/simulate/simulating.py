"""`exchange simulate`, from what was asked to a folder whose last file is its record."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import orjson

from exchange.allowed import BadSetting, whole
from experiments.simulate import record, table
from experiments.simulate.part import MatchPart
from experiments.simulate.progress import parts_bar
from experiments.simulate.ran import OnParts, Ran
from experiments.simulate.show import show
from experiments.simulate.simulation import Simulation
from experiments.simulate.trades import FOLDER as TRADES
from experiments.simulate.trades import TradesUnwritable, left_behind
from runs.errors import UserError
from runs.folder import new_run_folder, write_json
from runs.interrupts import ended_as_by_ctrl_c
from runs.options import warn_of_prices
from runs.record.host import host_facts, now, versions

ORDERS_A_PART = 20_000_000
"""Half a second of work, beside which handing out a part costs little."""
LEAST_PARTS = 8
"""So that a core that is slower, or busy, does fewer."""


def simulate(
    simulation: Simulation, master: str, partitions: int | None, results: str, name: str | None, *,
    with_trades: bool, as_json: bool,
) -> int:  # fmt: skip
    """The exit code, 0. What does not come to its end leaves nothing."""
    parts = settled_parts(simulation, partitions)
    warn_of_prices(simulation.prices, simulation.max_price)
    folder = new_run_folder(Path(results), name or unnamed())
    with ended_as_by_ctrl_c(), _nothing_left(folder):
        known = _known(folder, simulation, master, parts)
        trades = _trades_folder(folder) if with_trades else None
        with parts_bar(parts, simulation.orders) as on_parts:
            ran = _ran(master, MatchPart(simulation, trades), parts, on_parts)
        found = {**known, **_found(ran, simulation, trades)}
        table.write(folder, ran.rows)
        write_json(folder / record.FILE, found)
    for note in ran.notes:
        click.echo(note, err=True)
    _tell(found, folder, as_json)
    return 0


def _known(folder: Path, simulation: Simulation, master: str, parts: int) -> dict[str, Any]:
    """What the record says that is known before the start."""
    return {
        "schema": record.SCHEMA,
        "name": folder.name,
        "status": "complete",
        "started_at": now(),
        "settings": simulation.as_dict(),
        "master": master,
        "partitions": parts,
        "host": host_facts(),
        "versions": versions(),
    }


def _trades_folder(folder: Path) -> Path:
    """Its whole path, since executors work elsewhere."""
    trades = (folder / TRADES).resolve()
    trades.mkdir()
    return trades


def settled_parts(simulation: Simulation, partitions: int | None) -> int:
    """No more than there are instruments."""
    if partitions is None:
        wanted = max(LEAST_PARTS, simulation.orders // ORDERS_A_PART)
        return min(wanted, simulation.instruments)
    try:
        whole("partitions", partitions, 1, simulation.instruments)
    except BadSetting as error:
        raise UserError(f"--{error}: an instrument is the least that a part can be") from error
    return partitions


def _ran(master: str, work: MatchPart, parts: int, on_parts: OnParts) -> Ran:
    try:
        if master == "none":
            from experiments.simulate.here import simulate_here

            return simulate_here(work, parts, on_parts)
        from experiments.simulate.on_spark import simulate_on_spark

        return simulate_on_spark(master, work, parts, on_parts)
    except TradesUnwritable as error:
        raise click.ClickException(str(error)) from error
    except MemoryError as error:
        told = "its orders rest by the million: give fewer orders, or more instruments"
        raise click.ClickException(
            f"no memory for a book of {_most_orders(work.simulation):,} orders; {told}"
        ) from error


def _most_orders(simulation: Simulation) -> int:
    """Of an instrument."""
    return -(-simulation.orders // simulation.instruments)


def _found(ran: Ran, simulation: Simulation, trades: Path | None) -> dict[str, Any]:
    """ClickException where what came back is not what was asked for."""
    totals = record.totals(ran.rows)
    if totals["orders"] != simulation.orders or ran.rows.num_rows != simulation.instruments:
        raise click.ClickException(f"{totals['orders']:,} of {simulation.orders:,} orders came back matched")
    return {
        "totals": totals,
        "per_instrument": record.spread(ran.rows),
        "checksums": record.checksums(ran.rows),
        "rates": record.rates(ran, simulation.orders),
        **({"trades": _trades(trades, totals["trades"])} if trades else {}),
    }


def _trades(folder: Path, rows: int) -> dict[str, Any]:
    left_behind(folder)
    written = record.trade_files(folder)
    if written["rows"] != rows:
        told = "on a cluster, --results must be a folder that every worker shares with this machine"
        raise click.ClickException(f"{folder} holds {written['rows']:,} of {rows:,} trades: {told}")
    return written


@contextlib.contextmanager
def _nothing_left(folder: Path) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, KeyboardInterrupt):
            raise click.ClickException("interrupted: a simulation is kept as a whole, or not at all") from error
        raise


def _tell(found: dict[str, Any], folder: Path, as_json: bool) -> None:
    if as_json:
        click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2))
        return
    show(found)
    click.echo(f"instruments: {folder / table.FILE}")
    if "trades" in found:
        click.echo(f"trades: {folder / TRADES}")


def unnamed() -> str:
    """A folder's name where the user gave none."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-simulate-{secrets.token_hex(3)}"
