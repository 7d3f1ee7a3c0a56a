"""The exchange as a load: a probe is a run at a rate, held against an objective."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from exchange.json_records import Record
from exchange.load_axis import LoadAxis
from exchange.settings import RunSettings
from exchange.words import counted
from exchange.workload import Arrivals
from experiments.capacity.objective import Objective
from experiments.capacity.search import SearchSettings
from experiments.trials.observations import VALID
from reports.live.progress import progress_bar
from runs.errors import UserError
from runs.files import new_run_folder
from runs.launch.brokers import Brokers
from runs.record.noise import noise_share
from runs.run import measure
from runs.transport_settings import runs_in_one_process

CEILING_ORDERS = 500_000
LEFT_OUT = 2
"""The last order is no part of a run's figures, and a duration may round one away."""
SPARE = 1.2
"""Random arrivals bring some more or fewer orders in a time."""
NOT_IN_MEMORY: dict[str, Any] = {
    "amqp_client": None, "delivery": None, "nagle": (), "topology": "duplex", "network": "local",
}  # fmt: skip
"""Defaults of the settings that the memory transport lacks."""


@dataclass
class ExchangeRates:
    """Runs of the exchange at rates of orders."""

    settings: RunSettings
    objective: Objective
    search: SearchSettings
    axis = LoadAxis()

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        with Brokers() as self._brokers:
            yield

    def known(self) -> Record:
        return {
            "objective": self.objective.words, "needed_orders": self.objective.needed_orders,
            "settings": self.settings.as_dict(),
        }  # fmt: skip

    def least(self) -> float:
        """The lowest rate that can be judged. UserError if --from is lower, or if the run is impossible."""
        least_per_s = least_rate_per_s(self.settings, self.objective, self.search)
        runs_in_one_process(self.settings)
        return least_per_s

    def probe(self, folder: Path, value: float) -> Record:
        """UserError if the run cannot start or is too short."""
        seconds = probe_s(value, self.settings, self.objective, self.search)
        settings = replace(self.settings, orders_per_s=value, duration_s=seconds)
        record = measure(folder, settings, progress_bar(settings), self._brokers)
        why = self.objective.broken_by(record)
        if why is None:
            self._refuse_few_orders(record)
        figures = {name: record.get(name) for name in ("status", "completion_us", "lag_us")}
        return {"orders_per_s": value, "holds": why is None, "why": why, "log_ratio": self.objective.log_ratio(record),
                "noise_share": noise_share(record), **figures}  # fmt: skip

    def _refuse_few_orders(self, record: Record) -> None:
        """UserError if the run measured too few orders for the objective, as a run of a short tape does."""
        measured, needed = record["completion_us"]["due"]["count"], self.objective.needed_orders
        if measured < needed:
            what = f"{record['name']} measured {counted(measured, 'orders')}"
            raise UserError(f"{what}; {self.objective.words} needs {needed:,}: offer more, or judge a lower percentile")

    def ceiling(self, folder: Path) -> float:
        """Orders/s of the generator and the engine with no messaging between them, in threads that share memory."""
        settings = replace(self.settings, **NOT_IN_MEMORY, transport="memory", orders_per_s=None, duration_s=None,
                           orders=CEILING_ORDERS, warm_up_s=0.0, window=max(16_384, self.settings.packing))  # fmt: skip
        record = measure(new_run_folder(folder.parent, folder.name), settings, progress_bar(settings))
        if record["status"] not in VALID:
            raise UserError(f"the generator's ceiling was not measured: {'; '.join(record['reasons'])}")
        return float(record["rates"]["orders_per_s"])


def probe_s(rate_per_s: float, settings: RunSettings, objective: Objective, search: SearchSettings) -> float:
    """How long a probe offers orders: longer at a low rate, so that it has as many as the objective needs."""
    return settings.warm_up_s + max(search.seconds, offered_orders(settings, objective) / rate_per_s)


def offered_orders(settings: RunSettings, objective: Objective) -> float:
    """Orders of a fixed rate in the time in which a probe has as many as the objective needs."""
    arrivals = Arrivals.parse(settings.arrivals)
    spare = 1.0 if settings.arrivals == "fixed" else SPARE
    return spare * (objective.needed_orders + LEFT_OUT) / arrivals.mean_share


def least_rate_per_s(settings: RunSettings, objective: Objective, search: SearchSettings) -> float:
    """The lowest rate at which a probe has as many orders as the objective needs. UserError if --from is lower."""
    needed = offered_orders(settings, objective)
    least = needed / max(search.longest_s, search.seconds)
    if search.start_per_s < least:
        raise UserError(
            f"--from is {search.start_per_s:,g} orders/s, at which {search.longest_s:g} s have "
            f"{search.start_per_s * search.longest_s:,.0f} orders; {objective.words} needs {ceil(needed):,}: "
            f"take --from {ceil(least)} or more, or --longest {ceil(needed / search.start_per_s)}"
        )
    return least
