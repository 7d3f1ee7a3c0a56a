"""The exchange as a load: a probe is a run at a rate, held against an objective such as `p99 <= 1ms, max <= 20ms`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, log
from pathlib import Path
from typing import Any

from exchange.json_records import LoadAxis, Record
from exchange.percentiles import FIGURES, LEAST_ORDERS, PERCENTILES, least_orders
from exchange.settings import RunSettings
from exchange.words import counted
from exchange.workload import Arrivals
from exchange_simulation.experiments.capacity.search import SearchSettings
from exchange_simulation.experiments.trials.observations import VALID, is_delayed
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import new_run_folder
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.metrics import number_at
from exchange_simulation.launching.record.noise import noise_share
from exchange_simulation.launching.run import measure
from exchange_simulation.launching.transport_settings import check_transport
from exchange_simulation.reports.progress import progress_bar

CLOCKS = {"due": "due", "": "due", "handed over": "handed_over", "lag": "lag"}
"""The record's clock by the words before a figure: completion from due time or handing over, or the gateway's lag."""
FIGURES_BY_LABEL = {label: name for name, label in FIGURES.items()}
LEAST_ORDERS_OF_FIGURE = {**LEAST_ORDERS, "mean": LEAST_ORDERS["p99"], "max": LEAST_ORDERS["p99"]}
"""Orders from which on a figure is judged. Mean and maximum have no orders beyond them; they need as many as a p99."""
LEAST_ORDERS_OF_PROBE = 100
"""Orders of a probe, even if its objective has no figures, or those of few orders."""
UNITS_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
TERM = re.compile(
    r"(?:(due|handed over|lag) +)?"
    rf"({'|'.join(re.escape(label) for label in FIGURES_BY_LABEL)})"
    r" *<=? *([0-9]*\.?[0-9]+) *(ns|us|ms|s)"
)
PERCENTILE = re.compile(r"\bp([0-9]+(?:\.[0-9]+)?)\b")
LOSS = re.compile(r"loss *(?:<=|==?) *0")
ALLOWED = "FIGURE <= TIME, with commas between several: p99 <= 1ms, lag p99 <= 500us, max <= 20ms, loss = 0"
CEILING_ORDERS = 500_000
CEILING_S = 20.0
"""The time limit of the run that measures the ceiling; with a processor to spare it takes a second at most."""
LEFT_OUT = 2
"""Orders that a run's figures lack: the last one, and one that rounding the duration may cost."""
SPARE = 1.2
"""The margin for random arrivals, which may bring fewer orders than the rate says."""
NOT_IN_MEMORY: dict[str, Any] = {
    "amqp_client": None,
    "delivery": None,
    "nagle": (),
    "topology": "duplex",
    "network": "local",
    "tape": None,
    "speed": None,
    "arrivals": "fixed",
    "secure": None,
    "insecure": False,
}
"""The defaults of settings that the ceiling's run cannot use: it is over memory, and has no rate."""


@dataclass(frozen=True)
class Term:
    """One figure of a run and its upper bound."""

    clock: str
    figure: str
    most_us: float
    words: str

    def value_us(self, record: Record) -> float | None:
        """Return the figure in a run's record, None if it was not measured."""
        clock = ("lag_us",) if self.clock == "lag" else ("completion_us", self.clock)
        return number_at(*clock, self.figure)(record)

    def broken_by(self, record: Record) -> str | None:
        """Return the measured value as a sentence, None if it is within the bound."""
        value_us = self.value_us(record)
        if value_us is None:
            return f"{self.words}: not measured"
        if value_us > self.most_us:
            return f"{self.words}: {value_us:,.0f} us"
        return None


@dataclass(frozen=True)
class ExchangeObjective:
    """An objective: all terms must hold, and the run must be complete: nothing was lost and the rate was kept.

    A run in which only the gateway was late kept its rate. Its figures from due contain that delay, and are judged.
    """

    terms: tuple[Term, ...]

    def broken_by(self, record: Record) -> str | None:
        """Return the first reason why the run does not hold the objective, None if it does."""
        if record["status"] != "complete" and not is_delayed(record):
            reason = record["reasons"][0] if record["reasons"] else "no reason known"
            return f"{record['status']}: {reason}"
        for term in self.terms:
            reason = term.broken_by(record)
            if reason:
                return reason
        return None

    def log_ratio(self, record: Record) -> float | None:
        """Return the logarithm of figure / bound of the term that is nearest to breaking.

        None if there are no terms, or one was not measured.
        """
        ratios = []
        for term in self.terms:
            value_us = term.value_us(record)
            if not value_us:
                return None
            ratios.append(log(value_us / term.most_us))
        return max(ratios, default=None)

    @property
    def words(self) -> str:
        return ", ".join(term.words for term in self.terms) or "loss = 0"

    @property
    def needed_orders(self) -> int:
        """The orders that a run must have measured before the objective can be judged: 10 / (1 - p)."""
        needed = [LEAST_ORDERS_OF_FIGURE[term.figure] for term in self.terms]
        return max([LEAST_ORDERS_OF_PROBE, *needed])


def objective_of(text: str) -> ExchangeObjective:
    """Return the objective that `text` describes. UserError names the part that is not understood."""
    parts = [part.strip() for part in text.split(",")]
    return ExchangeObjective(tuple(_term(part, text) for part in parts if not LOSS.fullmatch(part)))


def _term(part: str, text: str) -> Term:
    """Return the term of one part of `text`. UserError if it is none, or names a percentile that runs do not have."""
    percentile = PERCENTILE.search(part)
    if percentile and percentile[0] not in FIGURES_BY_LABEL and float(percentile[1]) < 100:
        needed = least_orders(float(percentile[1]))
        *lower, highest = PERCENTILES
        raise UserError(
            f"--slo is {text!r}, but runs have no {percentile[0]}, which needs {needed:,} orders; they have "
            f"{', '.join(percentile.label for percentile in lower)} and {highest.label}, which needs "
            f"{highest.least_orders:,}"
        )
    written = TERM.fullmatch(part)
    if written is None:
        raise UserError(f"--slo is {text!r}, of which {part!r} is not understood; it takes {ALLOWED}")
    clock, figure, number, unit = written.groups()
    if not float(number):
        raise UserError(f"--slo is {text!r}, of which {part!r} allows no time at all; it takes {ALLOWED}")
    words = " ".join(filter(None, (clock, figure, "<=", number + unit)))
    return Term(CLOCKS[clock or ""], FIGURES_BY_LABEL[figure], float(number) * UNITS_US[unit], words)


@dataclass
class ExchangeRates:
    """The load of a search over the exchange: runs at rates of orders."""

    settings: RunSettings
    objective: ExchangeObjective
    search: SearchSettings
    axis = LoadAxis()

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        with Brokers() as self._brokers:
            yield

    def known(self) -> Record:
        return {
            "objective": self.objective.words,
            "needed_orders": self.objective.needed_orders,
            "settings": self.settings.as_dict(),
        }

    def least(self) -> float:
        """Return the lowest rate at which a probe has as many orders as the objective needs.

        UserError if --from is lower, or if the run is impossible.
        """
        self._refuse_few_orders(self.settings.orders, f"--tape {self.settings.tape}", "has")
        needed = self._offered_orders
        start_per_s = self.search.start_per_s
        longest_s = max(self.search.longest_s, self.search.seconds)
        least_per_s = needed / longest_s
        if start_per_s < least_per_s:
            raise UserError(
                f"--from is {start_per_s:,g} orders/s, at which {longest_s:g} s have {start_per_s * longest_s:,.0f} "
                f"orders; {self.objective.words} needs {ceil(needed):,}: take --from {ceil(least_per_s)} or more, or "
                f"--longest {ceil(needed / start_per_s)}"
            )
        check_transport(self.settings)
        return least_per_s

    def _refuse_few_orders(self, orders: int | None, source: str, has: str) -> None:
        """Raise UserError if the tape or run has too few `orders` for the objective; None stands for any number."""
        needed = self.objective.needed_orders
        if orders is not None and orders < needed:
            raise UserError(
                f"{source} {has} {counted(orders, 'orders')}; {self.objective.words} needs {needed:,}: offer more, or "
                f"judge a lower percentile"
            )

    @property
    def _offered_orders(self) -> float:
        """The number of orders that a probe must offer, at its mean rate, to measure as many as the objective needs."""
        arrivals = Arrivals.parse(self.settings.arrivals)
        spare = 1.0 if self.settings.arrivals == "fixed" else SPARE
        return spare * (self.objective.needed_orders + LEFT_OUT) / arrivals.mean_share

    def probe_s(self, rate_per_s: float) -> float:
        """Return how long a probe offers orders: longer at a low rate, so it has as many as the objective needs."""
        return self.settings.warm_up_s + max(self.search.seconds, self._offered_orders / rate_per_s)

    def probe(self, folder: Path, value: float) -> Record:
        """Run the exchange at the rate `value` and judge it. UserError if the run cannot start or is too short."""
        settings = replace(self.settings, orders_per_s=value, duration_s=self.probe_s(value))
        record = measure(folder, settings, progress_bar(settings), self._brokers)
        why = self.objective.broken_by(record)
        if why is None:
            self._refuse_few_orders(record["completion_us"]["due"]["count"], record["name"], "measured")
        figures = {name: record.get(name) for name in ("status", "completion_us", "lag_us")}
        return {
            "orders_per_s": value,
            "holds": why is None,
            "why": why,
            "log_ratio": self.objective.log_ratio(record),
            "noise_share": noise_share(record),
            **figures,
        }

    def ceiling(self, folder: Path) -> float:
        """Measure orders/s of generator and engine with no messaging between them, in threads that share memory.

        On a machine that is too busy for all orders, the run ends after CEILING_S.
        """
        settings = replace(
            self.settings,
            **NOT_IN_MEMORY,
            transport="memory",
            orders_per_s=None,
            duration_s=CEILING_S,
            orders=CEILING_ORDERS,
            warm_up_s=0.0,
            window=max(16_384, self.settings.packing),
        )
        record = measure(new_run_folder(folder.parent, folder.name), settings, progress_bar(settings))
        if record["status"] not in VALID:
            raise UserError(f"the generator's ceiling was not measured: {'; '.join(record['reasons'])}")
        return float(record["rates"]["orders_per_s"])
