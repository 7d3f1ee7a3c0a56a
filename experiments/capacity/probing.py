"""Runs at rates that the search asks for: each a run of its own in the capacity's folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exchange.json_records import Record
from exchange.settings import RunSettings
from experiments.capacity.objective import Objective
from reports.live.progress import progress_bar
from runs.broker.brokers_held import Brokers
from runs.folder import new_run_folder
from runs.run import measure

CEILING_ORDERS = 500_000
OF_THE_TRANSPORT: dict[str, Any] = {
    "amqp_client": None, "delivery": None, "nagle": (), "topology": "duplex", "network": "local",
}  # fmt: skip
"""What the memory transport has not."""


@dataclass(frozen=True)
class Probe:
    """A run at a rate, and why it does not hold the objective; None where it does."""

    rate_per_s: float
    record: Record
    why: str | None

    @property
    def holds(self) -> bool:
        return self.why is None

    def as_dict(self) -> dict[str, Any]:
        figures = {name: self.record.get(name) for name in ("status", "completion_us", "lag_us")}
        return {"run": self.record["name"], "orders_per_s": self.rate_per_s, "holds": self.holds,
                "why": self.why, **figures}  # fmt: skip


@dataclass
class Prober:
    """Makes the runs, tells each, and keeps them."""

    folder: Path
    settings: RunSettings
    objective: Objective
    brokers: Brokers
    pause_s: float
    say: Callable[[Probe], None]
    interrupted: Callable[[], bool]
    probes: list[Probe] = field(default_factory=list)

    def holds(self, rate_per_s: float) -> bool:
        """UserError where the run cannot start; KeyboardInterrupt where the run took a Ctrl-C as its own early end."""
        if self.probes:
            time.sleep(self.pause_s)
        made = replace(self.settings, orders_per_s=rate_per_s)
        record = measure(self._new(f"{rate_per_s:.0f}"), made, progress_bar(made), self.brokers)
        if self.interrupted():
            raise KeyboardInterrupt
        probe = Probe(rate_per_s, record, self.objective.broken_by(record))
        self.probes.append(probe)
        self.say(probe)
        return probe.holds

    def ceiling_per_s(self) -> float:
        """What the generator and the engine do with no messaging between them: threads that share this memory."""
        made = replace(self.settings, **OF_THE_TRANSPORT, transport="memory", orders_per_s=None, duration_s=None,
                       orders=CEILING_ORDERS, warm_up_s=0.0, window=max(16_384, self.settings.packing))  # fmt: skip
        return float(measure(self._new("ceiling"), made, progress_bar(made))["rates"]["orders_per_s"])

    def _new(self, what: str) -> Path:
        return new_run_folder(self.folder, f"{len(self.probes) + 1:03}-{what}")
