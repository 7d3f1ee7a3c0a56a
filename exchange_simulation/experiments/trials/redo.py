"""Decides which runs of a trial, or of a search, are made again because other work used the machine.

The rule stands in plan.json before the first run. It looks at a run's noise only, never at its figures, so it cannot
prefer a result. A run whose noise is unknown is not made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.launching.record.noise import MOST_SHARE, noise_share, share_words

MOST_TRIES = 3
MOST_NAMES = 3
"""A sentence names at most this many runs; the record names all."""


@dataclass(frozen=True, kw_only=True)
class RedoRule:
    """A run is made again if other work took more than `most_share_of_all_cpus` beside it.

    `most_tries` limits the runs of one step, `most_extra_runs` the runs of the trial beyond its plan.
    """

    most_extra_runs: int
    most_share_of_all_cpus: float = MOST_SHARE
    most_tries: int = MOST_TRIES

    @classmethod
    def of_plan(cls, runs: int) -> RedoRule:
        """At most half as many extra runs as planned ones."""
        return cls(most_extra_runs=max(1, runs // 2))

    def choose(self, valid: Sequence[Record]) -> Record | None:
        """The run that counts: the first quiet one, else the quietest. None if there is none."""
        quiet = next((record for record in valid if not self.is_noisy(record)), None)
        return quiet or min(valid, key=lambda record: noise_share(record) or 0.0, default=None)

    def is_noisy(self, record: Record) -> bool:
        share = noise_share(record)
        return share is not None and share > self.most_share_of_all_cpus

    def wants(self, tries: Sequence[Record], extra_runs: int) -> bool:
        """True if a step with these tries is to be run again: all were noisy, and the limits allow it."""
        within = len(tries) < self.most_tries and extra_runs < self.most_extra_runs
        return within and all(map(self.is_noisy, tries))

    @property
    def words(self) -> str:
        return (
            f"a run beside which others take more than {self.most_share_of_all_cpus:.0%} of all processors is set "
            f"aside and made again: {self.most_tries} tries at most, "
            f"{counted(self.most_extra_runs, 'extra runs')} in all"
        )


def set_aside_words(runs: Sequence[Record], rule: RedoRule) -> str:
    """2 runs set aside for noise: other work or steal took more than 5% ..., with the first ones' names."""
    shares = [noise_share(run) or 0.0 for run in runs]
    names = ", ".join(run["name"] for run in runs[:MOST_NAMES]) + ", ..." * (len(runs) > MOST_NAMES)
    took = _took(shares, rule.most_share_of_all_cpus, "each")
    return f"{counted(len(runs), 'runs')} set aside for noise: {took} ({names})"


def unknown_words(unknown: int, of_all: str) -> str:
    """the noise of the machine is unknown for 2 of 9 runs; empty if it is known of each"""
    return f"the noise of the machine is unknown for {unknown} of {of_all}" if unknown else ""


def noisy_words(shares: Sequence[float], most: float, of_all: str) -> str:
    """other work or steal took more than 5% of the processors beside 2 of 9 runs ...; empty if none was over `most`."""
    noisy = [share for share in shares if share > most]
    return _took(noisy, most, f"{len(noisy)} of {of_all}") if noisy else ""


def _took(shares: Sequence[float], most: float, beside: str) -> str:
    largest = share_words(max(shares))
    return f"other work or steal took more than {most:.0%} of the processors beside {beside}, at most {largest}"
