"""Tapes of orders with their due times: writing them, and the settings that follow from replaying one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from exchange.messages import MalformedMessage
from exchange.settings import RunSettings
from exchange.words import counted
from exchange.workload import settled_speed
from exchange_simulation.launching.errors import UserError, reading, writing
from exchange_simulation.launching.files import whole_file
from gateway.tape import CHUNK_ORDERS, check_due, check_orders, due_path, map_file
from transports.regular_files import check_regular


def settled_by_tape(given: Mapping[str, Any]) -> dict[str, Any]:
    """The number of orders, their arrivals and rate, as the tape and its due times have them.

    Arrivals and rate in `given` are what somebody asked for.

    UserError where one of the two files is damaged, or says something else than the options.
    """
    tape = Path(given["tape"])
    due = due_path(tape)
    on_tape = _checked_orders(tape)
    orders = on_tape if given.get("orders") is None else given["orders"]
    if not 1 <= orders <= on_tape:
        raise UserError(f"--orders is {orders}; {tape} holds {counted(on_tape, 'orders')}: ask for 1 to {on_tape}")
    if not _as_recorded(given, due):
        return {"orders": orders}
    speed = settled_speed(given.get("speed"), "recorded") or 1.0
    recorded_per_s = _recorded_orders_per_s(due, on_tape, orders) * speed
    asked_per_s = given.get("orders_per_s", recorded_per_s)
    if asked_per_s != recorded_per_s:
        rate = "max" if asked_per_s is None else f"{asked_per_s:.10g}"
        raise UserError(
            f"--rate is {rate}, but {due} says when the orders are due: leave --rate out, or take --arrivals fixed"
        )
    return {"orders": orders, "arrivals": "recorded", "orders_per_s": recorded_per_s}


def _as_recorded(given: Mapping[str, Any], due: Path) -> bool:
    """True if the options ask for recorded arrivals, or say nothing of arrivals and there are due times."""
    arrivals = given.get("arrivals")
    if arrivals == "recorded" and not due.exists():
        raise UserError(f"--arrivals is recorded, but {due} is not there: give the orders a --rate instead")
    is_as_fast_as_it_goes = "orders_per_s" in given and given["orders_per_s"] is None
    if arrivals is not None or is_as_fast_as_it_goes:
        return bool(arrivals == "recorded")
    if not due.exists() and given.get("speed") is not None:
        raise UserError(
            f"--speed is {given['speed']:g}, but {due}, which would say when orders are due, is not there: give the "
            f"orders a --rate instead"
        )
    return due.exists()


def _checked_orders(tape: Path) -> int:
    if tape.suffix == ".due":
        raise UserError(f"--tape {tape} is a name for due times: name the tape that they stand beside")
    with reading(tape, MalformedMessage):
        check_regular(tape)
        return check_orders(tape)


def _recorded_orders_per_s(due: Path, on_tape: int, orders: int) -> float:
    """The mean rate of the first `orders` due times."""
    with reading(due, ValueError):
        check_regular(due)
        check_due(due, on_tape)
    times_ns = map_file(due).view("<u8")
    length_ns = int(times_ns[orders - 1]) - int(times_ns[0])
    if length_ns == 0:
        raise UserError(
            f"{due} has {counted(orders, 'orders')} due at once, which is no rate: take --rate max, or --arrivals fixed"
        )
    return (orders - 1) * 1e9 / length_ns


def write_tape(path: Path, settings: RunSettings) -> None:
    """Write the seed's orders, and a file of due times beside them if there is a rate.

    UserError if a file cannot be written, ClickException if the disk is full.
    """
    due = due_path(path)
    count = settings.order_limit
    _keep_apart(path, due, settings)
    with writing(path):
        _write_orders(path, settings, count)
    click.echo(f"{counted(count, 'orders')} of seed {settings.seed} in {path}", err=True)
    if settings.orders_per_s is not None:
        with writing(due):
            write_due(due, settings, count)
        click.echo(f"when they are due in {due}", err=True)


def _keep_apart(tape: Path, due: Path, settings: RunSettings) -> None:
    """Remove due times that another tape left, which would be taken for this one's; UserError if there is no rate."""
    if tape == due:
        raise UserError(f"--output {tape} is a name for due times: choose another for the tape")
    if settings.orders_per_s is not None:
        with writing(due):
            due.unlink(missing_ok=True)
    elif due.exists():
        raise UserError(f"{due} says when the orders of another tape are due: remove it, or give this one a --rate")


def _write_orders(path: Path, settings: RunSettings, count: int) -> None:
    from gateway.seeded_orders import SeededOrders

    orders = SeededOrders.of(settings)
    with whole_file(path) as file:
        for first in range(0, count, CHUNK_ORDERS):
            file.write(orders.records(first + 1, min(CHUNK_ORDERS, count - first)))


def write_due(path: Path, settings: RunSettings, orders: int) -> None:
    """Write the planned due times of the first `orders`, the first at 0 ns; no file where there is no schedule."""
    from gateway.due_times import due_times_of

    due_times = due_times_of(settings)
    if due_times is None:
        return
    with whole_file(path) as file:
        for first in range(0, orders, CHUNK_ORDERS):
            due = np.zeros(min(CHUNK_ORDERS, orders - first), np.int64)
            due_times.write(due, first)
            file.write(due.astype("<u8").data)
