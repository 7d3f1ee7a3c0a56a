"""The exchange as a load: a probe is a run at a rate, judged by an objective such as `p99 <= 1ms, max <= 20ms`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, inf, log
from pathlib import Path
from typing import Any

from exchange.json_records import Record
from exchange.load_axis import LoadAxis
from exchange.load_shape import LoadShape
from exchange.percentiles import FIGURES, LEAST_ORDERS, PERCENTILES, least_orders
from exchange.search_times import SearchTimes
from exchange.settings import RunSettings
from exchange_simulation.experiments.capacity.search import SearchSettings
from exchange_simulation.experiments.trials.observations import VALID, is_delayed
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import new_run_folder
from exchange_simulation.launching.hosts.checks import check_hosts
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.metrics import (
    expected_orders_measured,
    number_at,
    orders_measured,
    unmeasured_orders,
)
from exchange_simulation.launching.record.noise import noise_share
from exchange_simulation.launching.run import measure
from exchange_simulation.launching.transport_checks import check_transport
from exchange_simulation.reports.progress import progress_bar

CLOCKS = {"due": "due", "": "due", "handed over": "handed_over", "lag": "lag"}
"""The record's clock, by the words before a figure: completion from due time or handing over, or the gateway's lag."""
FIGURES_BY_LABEL = {label: name for name, label in FIGURES.items()}
LEAST_ORDERS_OF_FIGURE = {**LEAST_ORDERS, "mean": LEAST_ORDERS["p99"], "max": LEAST_ORDERS["p99"]}
"""The number of orders that a figure needs to be judged. Mean and maximum need as many as a p99, by convention."""
LEAST_ORDERS_OF_PROBE = 100
"""The number of orders that a probe needs, even if its objective has no figures or needs fewer."""
UNITS_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
TERM = re.compile(
    r"(?:(due|handed over|lag) +)?"
    rf"({'|'.join(re.escape(label) for label in FIGURES_BY_LABEL)})"
    r" *<=? *([0-9]*\.?[0-9]+) *(ns|us|ms|s)"
)
PERCENTILE = re.compile(r"\bp([0-9]+(?:\.[0-9]+)?)\b")
LOSS = re.compile(r"loss *(?:<=|==?) *0")
OBJECTIVE_SYNTAX = "FIGURE <= TIME, with commas between several: p99 <= 1ms, lag p99 <= 500us, max <= 20ms, loss = 0"
CEILING_ORDERS = 500_000
"""The number of orders of the run that measures the ceiling."""
CEILING_S = 20.0
"""The time limit of that run. On an idle processor it takes at most a second."""
ROUNDED_ORDERS = 1
"""Orders that a probe may have less than rate x duration, where the duration is rounded down."""
RANDOM_ARRIVALS_MARGIN = 1.2
"""The factor of offered to needed orders if arrivals are random: a run may get fewer orders than rate x duration."""
MEMORY_SETTINGS: dict[str, Any] = {
    "amqp_client": None,
    "delivery": None,
    "nagle": (),
    "topology": "duplex",
    "network": "local",
    "hosts": None,
    "tape": None,
    "speed": None,
    "arrivals": "fixed",
    "secure": None,
    "insecure": False,
    "cpus": {},
    "subscribers": 0,
    "slow_subscriber": None,
}
"""Settings of the run that measures the ceiling. It runs over memory and without a rate, which exclude other values.

Its components are threads: they have no processor of their own, there is no broker, and there are no subscribers.
"""


@dataclass(frozen=True)
class Term:
    """One figure of a run and its upper bound."""

    clock: str
    figure: str
    most_us: float
    name: str
    """The figure as the user typed it. For example: lag p99"""
    bound: str
    """The bound as the user typed it. For example: 500us"""

    @property
    def words(self) -> str:
        """For example: lag p99 <= 500us"""
        return f"{self.name} <= {self.bound}"

    def value_us(self, record: Record) -> float | None:
        """Return the figure in a run's record, None if it was not measured."""
        if self.clock == "lag":
            read = number_at("lag_us", self.figure)
        else:
            read = number_at("completion_us", self.clock, self.figure)
        return read(record)

    def broken_by(self, record: Record) -> str | None:
        """Return why a run breaks the bound; None if it does not. For example: p99 <= 1ms: 1,200 us."""
        value_us = self.value_us(record)
        if value_us is None:
            return f"{self.words}: not measured"
        if value_us > self.most_us:
            return f"{self.words}: {value_us:,.0f} us"
        return None


@dataclass(frozen=True)
class ExchangeObjective:
    """An objective: all terms must hold, and the run must be complete, which means no loss and the requested rate.

    A run in which only the gateway was late is judged too: it kept its rate, and its figures contain the delay.
    """

    terms: tuple[Term, ...]

    def broken_by(self, record: Record) -> str | None:
        """Return the first reason why the run does not hold the objective; None if it does."""
        why_not_whole = why_run_is_not_whole(record)
        if why_not_whole:
            return why_not_whole
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
        """The objective as `objective_of` reads it."""
        if not self.terms:
            return "loss = 0"
        return ", ".join(term.words for term in self.terms)

    @property
    def needed_orders(self) -> int:
        """The number of orders that a run must measure, so that the objective can be judged: 10 / (1 - p)."""
        needed = [LEAST_ORDERS_OF_FIGURE[term.figure] for term in self.terms]
        return max([LEAST_ORDERS_OF_PROBE, *needed])


def why_run_is_not_whole(record: Record) -> str | None:
    """Return why a run breaks every objective, whatever its figures are.

    None if it is complete, or if only the gateway was late.
    """
    if record["status"] == "complete" or is_delayed(record):
        return None
    reason = record["reasons"][0] if record["reasons"] else "no reason known"
    return f"{record['status']}: {reason}"


def objective_of(text: str) -> ExchangeObjective:
    """Return the objective that `text` describes. UserError names the part that is not understood."""
    parts = [part.strip() for part in text.split(",")]
    terms = [_term(part, text) for part in parts if not LOSS.fullmatch(part)]
    return ExchangeObjective(tuple(terms))


def _term(part: str, text: str) -> Term:
    """Return the term of one part of `text`. UserError if the part is no term, or runs do not have its percentile."""
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
        raise UserError(f"--slo is {text!r}, of which {part!r} is not understood; it takes {OBJECTIVE_SYNTAX}")
    clock, figure, number, unit = written.groups()
    if not float(number):
        raise UserError(f"--slo is {text!r}, of which {part!r} allows no time at all; it takes {OBJECTIVE_SYNTAX}")
    return Term(
        clock=CLOCKS[clock or ""],
        figure=FIGURES_BY_LABEL[figure],
        most_us=float(number) * UNITS_US[unit],
        name=f"{clock} {figure}" if clock else figure,
        bound=f"{number}{unit}",
    )


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

    def record_header(self) -> Record:
        return {
            "objective": self.objective.words,
            "needed_orders": self.objective.needed_orders,
            "settings": self.settings.as_dict(),
        }

    def lowest_value(self) -> float:
        """Return the lowest rate at which a probe has as many orders as the objective needs.

        UserError if --from is lower, or if the run is impossible.
        """
        if self.settings.tape is not None:
            self._refuse_short_tape(self.search.start_per_s)
        needed = self._needed_orders
        start_per_s = self.search.start_per_s
        longest_s = self._longest_s
        least_per_s = self._least_per_s
        if start_per_s < least_per_s:
            orders_at_start = start_per_s * self._shares.amount_after(longest_s)
            long_enough_s = self._shares.seconds_until(needed / start_per_s)
            raise UserError(
                f"--from is {start_per_s:,g} orders/s, at which {longest_s:g} s have {orders_at_start:,.0f} "
                f"orders; {self.objective.words} needs {ceil(needed):,}: take --from {ceil(least_per_s)} or more, or "
                f"--longest {ceil(long_enough_s)}"
            )
        check_transport(self.settings)
        check_hosts(self.settings)
        return least_per_s

    def _refuse_short_tape(self, rate_per_s: float) -> None:
        """Raise UserError if a probe at this rate would measure too few orders of the tape for the objective."""
        whole_tape = replace(self.settings, orders_per_s=rate_per_s, duration_s=None)
        measured = expected_orders_measured(whole_tape)
        if measured < self.objective.needed_orders:
            raise UserError(
                f"of the {whole_tape.order_limit:,} orders of --tape {self.settings.tape}, {measured:,} are measured "
                f"at {rate_per_s:,.10g} orders/s; {self._needed_in_words}"
            )

    @property
    def _needed_in_words(self) -> str:
        """The end of an error's sentence about too few orders."""
        needed = f"{self.objective.words} needs {self.objective.needed_orders:,}"
        return f"{needed}: offer more, or judge a lower percentile"

    @property
    def _needed_orders(self) -> float:
        """Orders that a probe is offered after its warm-up, so that it measures as many as the objective needs."""
        margin = 1.0 if self.settings.arrivals == "fixed" else RANDOM_ARRIVALS_MARGIN
        return margin * (self.objective.needed_orders + unmeasured_orders(self.settings) + ROUNDED_ORDERS)

    @property
    def _shares(self) -> LoadShape:
        """The load of a probe over time, in shares of its rate."""
        return self.settings.arriving.mean_rates(1.0)

    @property
    def _longest_s(self) -> float:
        """The longest time for which a probe offers orders after its warm-up."""
        return max(self.search.longest_s, self.search.seconds)

    @property
    def _least_per_s(self) -> float:
        """The lowest rate at which a probe has as many orders as the objective needs."""
        return self._needed_orders / self._shares.amount_after(self._longest_s)

    def probe_s(self, rate_per_s: float) -> float:
        """Return the length of a probe. At a low rate it is longer, so that it measures enough orders.

        Figures leave out whole seconds of the warm-up, in each of which at most rate x 1 s orders are due.
        """
        left_out_s = ceil(self.settings.warm_up_s)
        enough_s = self._shares.seconds_until(left_out_s + self._needed_orders / rate_per_s)
        return max(left_out_s + self.search.seconds, enough_s)

    def times(self) -> SearchTimes:
        """Return how long a probe and the run of the ceiling take."""
        return SearchTimes(
            shortest_probe_s=self.probe_s(inf),
            longest_probe_s=self.probe_s(self._least_per_s),
            longest_ceiling_s=CEILING_S,
        )

    def probe(self, folder: Path, value: float) -> Record:
        """Run the exchange at the rate `value` and judge it. UserError if the run cannot start or is too short."""
        if self.settings.tape is not None:
            self._refuse_short_tape(value)
        settings = replace(self.settings, orders_per_s=value, duration_s=self.probe_s(value))
        record = measure(folder, settings, progress_bar(settings), self._brokers)
        why = self.objective.broken_by(record)
        measured = orders_measured(record) or 0
        if why is None and measured < self.objective.needed_orders:
            raise UserError(f"{record['name']} measured {measured:,.0f} orders; {self._needed_in_words}")
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
            **MEMORY_SETTINGS,
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
