"""Replaying a tape: what it says of a run, where the user did not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from exchange.messages import MalformedMessage
from exchange.settings import RunSettings
from exchange.words import counted
from exchange.workload import settled_speed
from gateway.tape import check_due, check_orders, due_path, mapped
from runs.errors import UserError

UNTOLD = RunSettings()


def settled_by_tape(given: Mapping[str, Any], was_typed: Callable[[str], bool]) -> dict[str, Any]:
    """How many orders, and when they are due. UserError where the tape, or what stands beside it, is no good."""
    tape = Path(given["tape"])
    on_tape, due = _checked_orders(tape), due_path(tape)
    orders = on_tape if given.get("orders") is None else given["orders"]
    if not 1 <= orders <= on_tape:
        told = f"--orders is {orders}; {tape} holds {counted(on_tape, 'orders')}"
        raise UserError(f"{told}: ask for 1 to {on_tape}")
    if not _as_recorded(given, was_typed, due):
        return {"orders": orders}
    speed = settled_speed(given.get("speed"), "recorded") or 1.0
    rate = _recorded_rate(due, on_tape, orders) * speed
    _refuse_another(rate, given.get("orders_per_s", UNTOLD.orders_per_s), was_typed("orders_per_s"), due)
    return {"orders": orders, "arrivals": "recorded", "orders_per_s": rate}


def _refuse_another(rate: float, asked: float | None, was_typed: bool, due: Path) -> None:
    """The usual rate was asked for by nobody, unless somebody typed it."""
    if asked != rate and (was_typed or asked != UNTOLD.orders_per_s):
        told = f"--rate is {'max' if asked is None else f'{asked:.10g}'}, but {due} says when the orders are due"
        raise UserError(f"{told}: leave --rate out, or take --arrivals fixed")


def _as_recorded(given: Mapping[str, Any], was_typed: Callable[[str], bool], due: Path) -> bool:
    """Where it says so, or where nothing else was said and there are due times."""
    arrivals = given.get("arrivals", UNTOLD.arrivals)
    if arrivals == "recorded" and not due.exists():
        raise UserError(f"--arrivals is recorded, but {due} is not there: give the orders a --rate instead")
    if arrivals != UNTOLD.arrivals or was_typed("arrivals") or given.get("orders_per_s", 0) is None:
        return bool(arrivals == "recorded")
    if not due.exists() and given.get("speed") is not None:
        told = f"--speed is {given['speed']:g}, but {due}, which would say when orders are due, is not there"
        raise UserError(f"{told}: give the orders a --rate instead")
    return due.exists()


def _checked_orders(tape: Path) -> int:
    if tape.suffix == ".due":
        raise UserError(f"--tape {tape} is a name for due times: name the tape that they stand beside")
    try:
        return check_orders(tape)
    except MalformedMessage as error:
        raise UserError(f"{tape}: {error}") from error
    except OSError as error:
        raise UserError(f"cannot read {tape}: {error.strerror}") from error


def _recorded_rate(due: Path, on_tape: int, orders: int) -> float:
    """The mean over the orders that are offered."""
    try:
        check_due(due, on_tape)
    except ValueError as error:
        raise UserError(f"{due}: {error}") from error
    except OSError as error:
        raise UserError(f"cannot read {due}: {error.strerror}") from error
    times_ns = mapped(due).view("<u8")
    length_ns = int(times_ns[orders - 1]) - int(times_ns[0])
    if length_ns == 0:
        told = f"{due} has {counted(orders, 'orders')} due at once, which is no rate"
        raise UserError(f"{told}: take --rate max, or --arrivals fixed")
    return (orders - 1) * 1e9 / length_ns
