"""Making a tape: the seed's orders in a file, and beside it when they are due."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from exchange.settings import RunSettings
from exchange.words import counted
from gateway.schedule import due_times_of
from gateway.seeded_orders import SeededOrders
from gateway.tape import CHUNK_ORDERS, due_path
from runs.errors import UserError, cannot_write
from runs.whole_file import whole_file


def write_tape(path: Path, settings: RunSettings) -> None:
    """The seed's orders, and beside them when they are due where there is a rate."""
    beside, count = due_path(path), settings.order_limit
    _keep_apart(path, beside, settings)
    with _naming(path):
        _write_orders(path, settings, count)
    click.echo(f"{counted(count, 'orders')} of seed {settings.seed} in {path}", err=True)
    if settings.orders_per_s is not None:
        with _naming(beside):
            write_due(beside, settings, count)
        click.echo(f"when they are due in {beside}", err=True)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error


def _write_orders(path: Path, settings: RunSettings, count: int) -> None:
    orders = SeededOrders.of(settings)
    with whole_file(path) as file:
        for first in range(0, count, CHUNK_ORDERS):
            file.write(orders.records(first + 1, min(CHUNK_ORDERS, count - first)))


def _keep_apart(tape: Path, due: Path, settings: RunSettings) -> None:
    """Due times of another tape would be taken for this one's."""
    if tape == due:
        raise UserError(f"--output {tape} is a name for due times: choose another for the tape")
    if settings.orders_per_s is not None:
        with _naming(due):
            due.unlink(missing_ok=True)
    elif due.exists():
        raise UserError(f"{due} says when the orders of another tape are due: remove it, or give this one a --rate")


def write_due(path: Path, settings: RunSettings, orders: int) -> None:
    """The planned due times of the first orders, from 0 on; nothing where nothing is due."""
    due_times = due_times_of(settings)
    if due_times is None:
        return
    with whole_file(path) as file:
        for first in range(0, orders, CHUNK_ORDERS):
            due = np.zeros(min(CHUNK_ORDERS, orders - first), np.int64)
            due_times.write(due)
            file.write(due.astype("<u8").data)
