"""The load of every run of a fault matrix, and the time of its fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.option_table import TABLE
from exchange_simulation.launching.typed_settings import was_typed

LOAD_FIELDS = {"orders_per_s": "rate_per_s", "duration_s": "seconds", "timeout_s": "timeout_s", "seed": "seed"}
"""The fields of FaultLoad that options of `exchange run` set, by the setting's name. faults.json has our names."""
SAMPLES_PER_S = 200
"""Samples of an order a second: they resolve 5 ms."""


@dataclass(frozen=True, kw_only=True)
class FaultLoad:
    """The load of the run of every cell, and the time of its fault. These are the fields of a record's settings."""

    rate_per_s: float = 1000.0
    """Orders offered a second."""
    seconds: float = 6.0
    """How long orders are offered."""
    timeout_s: float = 3.0
    """How long a component of the run waits for another."""
    fault_s: float = 2.0
    """Seconds from the first order to the fault."""
    lasts_s: float = 1.2
    """Seconds from the fault to its end, if it can be lifted.

    TCP sends again about 0.6, 1.4 and 3 s after a cut. After a cut of more than 1.4 s the connection would work again
    only after 3 s, which is the timeout: chance would decide whether the run ends.
    """
    seed: int = 1

    @property
    def sampling_interval(self) -> int:
        """The number of orders from one sample to the next."""
        return max(1, round(self.rate_per_s / SAMPLES_PER_S))

    def overridden_by(self, run_options: Sequence[str]) -> FaultLoad:
        """Return the load, changed by those options of `exchange run` that set it.

        UserError if the run may end before its fault, or has no rate.
        """
        typed = _typed(run_options, {*LOAD_FIELDS, "orders"})
        fault_time = f"the fault comes after {self.fault_s:g} s"
        if "orders" in typed:
            raise UserError(f"{fault_time}, and a run of --orders may end before that: give --duration in its place")
        if typed.get("orders_per_s", self.rate_per_s) is None:
            raise UserError(f"{fault_time} of a run at a rate, and --rate is max: give orders a second")
        duration_s = typed.get("duration_s", self.seconds)
        if duration_s <= self.fault_s:
            raise UserError(f"{fault_time}, and --duration is {duration_s:g}: give a longer --duration")
        changes = {LOAD_FIELDS[name]: value for name, value in typed.items()}
        return replace(self, **changes)


def hosts_in(run_options: Sequence[str]) -> str | None:
    """Return the file that --hosts names among options of `exchange run`; None without that option."""
    hosts: str | None = _typed(run_options, {"hosts"}).get("hosts")
    return hosts


def _typed(run_options: Sequence[str], fields: set[str]) -> dict[str, Any]:
    """Return the values of those options of `exchange run` that set these fields of the settings, by the field."""
    rows = [row for row in TABLE if "run" in row.commands and row.field in fields]
    parameters: list[click.Parameter] = [row.parameter for row in rows]
    ignore_other_options = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    command = click.Command("run", params=parameters, context_settings=ignore_other_options)
    with command.make_context("run", list(run_options)) as context:
        return {name: value for name, value in context.params.items() if was_typed(name)}
