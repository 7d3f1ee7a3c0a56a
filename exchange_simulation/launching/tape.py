"""Tapes of orders with their due times: writing a tape, and the settings of a run that replays a tape."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from exchange.allowed import BadSetting
from exchange.messages import MalformedMessage
from exchange.settings import RunSettings
from exchange.words import counted
from exchange.workload import recorded_speed
from exchange_simulation.launching.errors import UserError, reading, writing
from exchange_simulation.launching.files import whole_file
from gateway.tape import CHUNK_ORDERS, check_due, due_path, map_file, replayable_records
from gateway.tape_records import TapeRecords, mix_of, read_records
from transports.regular_files import check_regular

if TYPE_CHECKING:
    from gateway.mixed_orders import MixedOrders
    from gateway.seeded_orders import SeededOrders


def settings_of_tape(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the number of orders, their mix, their arrivals and their rate, from the tape and its due times.

    `given` has the tape, and the settings that the user gave. UserError if the tape or its due times are damaged, or
    contradict these settings.
    """
    tape = Path(given["tape"])
    due = due_path(tape)
    records = _checked_records(tape)
    orders_on_tape = records.total
    orders = orders_on_tape if given.get("orders") is None else given["orders"]
    if not 1 <= orders <= orders_on_tape:
        raise UserError(
            f"--orders is {orders}; {tape} holds {counted(orders_on_tape, 'orders')}: ask for 1 to {orders_on_tape}"
        )
    settings: dict[str, Any] = {"orders": orders}
    mix = _mix_of_tape(tape, records, given.get("mix"))
    if mix is not None:
        settings["mix"] = mix
    instruments = _instruments_of_tape(tape, records, given.get("instruments"))
    if instruments is not None:
        settings["instruments"] = instruments
    if not _has_recorded_arrivals(given, due):
        return settings
    speed = recorded_speed(given.get("speed"))
    recorded_per_s = _recorded_orders_per_s(due, orders_on_tape, orders) * speed
    # Settings that are settled a second time have the recorded rate already.
    if "orders_per_s" in given and given["orders_per_s"] != recorded_per_s:
        given_per_s = given["orders_per_s"]
        rate = "max" if given_per_s is None else f"{given_per_s:.10g}"
        raise UserError(
            f"--rate is {rate}, but {due} says when the orders are due: leave --rate out, or take --arrivals fixed"
        )
    return {**settings, "arrivals": "recorded", "orders_per_s": recorded_per_s}


def _mix_of_tape(tape: Path, records: TapeRecords, given: str | None) -> str | None:
    """Return the mix of a tape's messages; None if all are plain orders.

    UserError if another mix was given, or if no order of the tape can rest.
    """
    mix = None if records.has_plain_orders_only else _mix_of(tape, records)
    # Settings that are settled a second time have the tape's mix already.
    if given is not None and given != mix:
        raise UserError(f"--mix is {given}, but the orders are those of {tape}: leave --mix out")
    return mix


def _instruments_of_tape(tape: Path, records: TapeRecords, given: int | None) -> int | None:
    """Return how many instruments a run of the tape has; None if its orders name none, and none were given.

    UserError if fewer were given than the tape names. A run has at least two if its orders name instruments.
    """
    if records.instruments is None:
        return given
    if given is None or given == 1:
        return max(records.instruments, 2)
    if given < records.instruments:
        raise UserError(
            f"--instruments is {given}, and {tape} has an order of instrument {records.instruments - 1}, from 0 on: "
            f"give {records.instruments} or more, or leave --instruments out"
        )
    return given


def mix_of_file(tape: Path) -> str:
    """Return the mix of a tape's messages, whatever their ids, as `--mix` takes it. UserError if it is no tape."""
    with reading(tape, MalformedMessage):
        check_regular(tape)
        content = map_file(tape)
        records = read_records(content)
        if records.end < len(content) or records.total == 0:
            raise MalformedMessage("no tape: an order, cancel or replace is missing or damaged", records.end)
    return _mix_of(tape, records)


def _mix_of(tape: Path, records: TapeRecords) -> str:
    try:
        return mix_of(records.by_kind)
    except BadSetting as error:
        raise UserError(f"{tape}: no limit or post-only order is on the tape, so no order would trade") from error


def _has_recorded_arrivals(given: Mapping[str, Any], due: Path) -> bool:
    """Return True if the user gave recorded arrivals, or gave no arrivals and the tape has due times.

    UserError if recorded arrivals or a speed were given, and the tape has no due times.
    """
    arrivals = given.get("arrivals")
    if arrivals == "recorded":
        if not due.exists():
            raise UserError(f"--arrivals is recorded, but {due} is not there: give the orders a --rate instead")
        return True
    has_maximum_rate = "orders_per_s" in given and given["orders_per_s"] is None
    if arrivals is not None or has_maximum_rate:
        return False
    if not due.exists() and given.get("speed") is not None:
        raise UserError(
            f"--speed is {given['speed']:g}, but {due}, which would say when orders are due, is not there: give the "
            f"orders a --rate instead"
        )
    return due.exists()


def _checked_records(tape: Path) -> TapeRecords:
    """Return the records on the tape. UserError if it is no tape, or damaged."""
    if tape.suffix == ".due":
        raise UserError(f"--tape {tape} is a name for due times: name the tape that they stand beside")
    with reading(tape, MalformedMessage):
        check_regular(tape)
        return replayable_records(tape)


def _recorded_orders_per_s(due: Path, orders_on_tape: int, orders: int) -> float:
    """Return the mean rate of the first `orders` due times."""
    with reading(due, ValueError):
        check_regular(due)
        check_due(due, orders_on_tape)
    times_ns = map_file(due).view("<u8")
    length_ns = int(times_ns[orders - 1]) - int(times_ns[0])
    if length_ns == 0:
        raise UserError(
            f"{due} has {counted(orders, 'orders')} due at once, which is no rate: take --rate max, or --arrivals fixed"
        )
    return (orders - 1) * 1e9 / length_ns


def write_tape(path: Path, settings: RunSettings) -> None:
    """Write the seed's orders, and if there is a rate, a file of due times beside them.

    UserError if a file cannot be written, ClickException if the disk is full.
    """
    due = due_path(path)
    count = settings.order_limit
    _remove_old_due_times(path, due, settings)
    orders = _order_source(settings)
    with writing(path):
        _write_orders(path, orders, count)
    click.echo(f"{counted(count, 'orders')} of seed {settings.seed} in {path}", err=True)
    if settings.orders_per_s is not None:
        with writing(due):
            write_due(due, settings, count)
        click.echo(f"when they are due in {due}", err=True)


def _remove_old_due_times(tape: Path, due: Path, settings: RunSettings) -> None:
    """Remove the due times of another tape of the same name, which would be taken for those of the new tape.

    UserError if there are such due times and the new tape has no rate, so that nothing would replace them.
    """
    if tape == due:
        raise UserError(f"--output {tape} is a name for due times: choose another for the tape")
    if settings.orders_per_s is not None:
        with writing(due):
            due.unlink(missing_ok=True)
    elif due.exists():
        raise UserError(f"{due} says when the orders of another tape are due: remove it, or give this one a --rate")


def _order_source(settings: RunSettings) -> SeededOrders | MixedOrders:
    from gateway.mixed_orders import MixedOrders
    from gateway.seeded_orders import SeededOrders

    return MixedOrders.of(settings) if MixedOrders.are_needed_for(settings) else SeededOrders.of(settings)


def _write_orders(path: Path, orders: SeededOrders | MixedOrders, count: int) -> None:
    with whole_file(path) as file:
        for first in range(0, count, CHUNK_ORDERS):
            file.write(orders.records(first + 1, min(CHUNK_ORDERS, count - first)))


def write_due(path: Path, settings: RunSettings, orders: int) -> None:
    """Write the planned due times of the first `orders` orders, from 0 ns on. Without a schedule, write no file."""
    from gateway.due_times import due_times_of

    due_times = due_times_of(settings)
    if due_times is None:
        return
    with whole_file(path) as file:
        for first in range(0, orders, CHUNK_ORDERS):
            due = np.zeros(min(CHUNK_ORDERS, orders - first), np.int64)
            due_times.write(due, first)
            file.write(due.astype("<u8").data)
