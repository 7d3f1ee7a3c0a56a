"""The rule on noise: which measurements are made again because other work used the machine, and which of them count.

A trial's rule stands in plan.json before the first run, a benchmark's in bench.json from the first repeat on. The rule
looks at noise only, never at figures, so it cannot prefer a result. A measurement whose noise is unknown is not made
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Generic, Protocol, TypeVar

from exchange.json_records import Record
from exchange.words import counted, noun
from exchange_simulation.launching.record.noise import MOST_SHARE, is_noisy_share, noise_share, share_words

MOST_TRIES = 3
MOST_NAMES = 3
"""A sentence names at most this many runs; the record names all."""


@dataclass(frozen=True, kw_only=True)
class RedoRule:
    """A measurement is made again if other work took more than `most_share_of_all_cpus` meanwhile.

    `most_tries` limits the tries of one step, and `most_extra_runs` the measurements beyond the plan.
    """

    most_extra_runs: int
    most_share_of_all_cpus: float = MOST_SHARE
    most_tries: int = MOST_TRIES

    @classmethod
    def of_plan(cls, measurements: int) -> RedoRule:
        """At most half as many extra measurements as planned ones."""
        return cls(most_extra_runs=max(1, measurements // 2))

    def choose(self, valid: Sequence[Record]) -> Record | None:
        """The try of a step that counts. None if there is none.

        The first quiet try counts; if no try was quiet, the quietest counts. If the noise of the first try is unknown,
        that try counts: the noise of short measurements is unknown, and these are the fast ones of a benchmark. A later
        try whose noise is unknown never counts.
        """
        if not valid:
            return None
        least_share = noise_share(valid[0])
        if least_share is None:
            return valid[0]
        quietest = valid[0]
        for record in valid:
            if self.is_quiet(record):
                return record
            share = noise_share(record)
            if share is not None and share < least_share:
                quietest = record
                least_share = share
        return quietest

    def is_noisy(self, record: Record) -> bool:
        return is_noisy_share(noise_share(record), self.most_share_of_all_cpus)

    def is_quiet(self, record: Record) -> bool:
        share = noise_share(record)
        return share is not None and share <= self.most_share_of_all_cpus

    def wants(self, tries: Sequence[Record], extra_runs: int) -> bool:
        """True if a step with these tries is to be measured again.

        Its first try was noisy, none since then was quiet, and the limits allow it.
        """
        if len(tries) >= self.most_tries or extra_runs >= self.most_extra_runs:
            return False
        return self.is_noisy(tries[0]) and not any(map(self.is_quiet, tries))

    def use_as_dict(self, set_aside: int, counting: Iterable[Record]) -> Record:
        """The rule as it stands in a record, with the number of measurements that were set aside.

        `counting` are the measurements that count; "still_noisy" is the number of noisy ones among them.
        """
        still_noisy = sum(self.is_noisy(record) for record in counting)
        return {**asdict(self), "set_aside": set_aside, "still_noisy": still_noisy}

    def in_words(self, plural: str = "runs") -> str:
        """The rule as a sentence; `plural` is the noun for what is measured."""
        return (
            f"a {noun(1, plural)} beside which others take more than {self.most_share_of_all_cpus:.0%} of all "
            f"processors is set aside and made again: {self.most_tries} tries at most, "
            f"{counted(self.most_extra_runs, f'extra {plural}')} in all"
        )


class RepeatStep(Protocol):
    """One planned measurement. Steps of one repeat follow each other; repeat 0 warms up and never counts."""

    @property
    def repeat(self) -> int: ...

    @property
    def name(self) -> str: ...


SomeStep = TypeVar("SomeStep", bound=RepeatStep)


class Redos(Generic[SomeStep]):
    """The tries of each step, while steps are measured; and which steps must be measured again."""

    def __init__(self, rule: RedoRule | None, valid: Mapping[str, Iterable[Record]]) -> None:
        """`valid`: usable measurements of an interrupted trial, by the name of their step.

        Without a rule no step is measured again.
        """
        self._rule = rule
        self._tries = {name: list(records) for name, records in valid.items()}
        self._failed: set[str] = set()

    def note(self, step: SomeStep, record: Record, *, is_valid: bool) -> None:
        """Add a try, unless the step is a warm-up. A step with a failed try is not measured again."""
        if step.repeat and is_valid:
            self._tries.setdefault(step.name, []).append(record)
        elif step.repeat:
            self._failed.add(step.name)

    def wants(self, step: SomeStep) -> bool:
        """True if the step is to be measured again."""
        tries = self._tries.get(step.name, [])
        if self._rule is None or not step.repeat or not tries or step.name in self._failed:
            return False
        extra_runs = sum(max(0, len(step_tries) - 1) for step_tries in self._tries.values())
        return self._rule.wants(tries, extra_runs)

    def in_turn(self, steps: Iterable[SomeStep]) -> Iterator[SomeStep]:
        """Yield the steps, and at the end of each repeat those of its steps that must be measured again.

        Call `note` for each step before the next step is asked for.
        """
        for _, group in groupby(steps, key=lambda step: step.repeat):
            steps_of_repeat = list(group)
            for step in steps_of_repeat:
                if not self._tries.get(step.name) or self.wants(step):
                    yield step
            while any(self.wants(step) for step in steps_of_repeat):
                for step in steps_of_repeat:
                    if self.wants(step):
                        yield step


def set_aside_words(records: Sequence[Record], rule: RedoRule, plural: str = "runs") -> str:
    """How many records were set aside for noise, with the names of the first MOST_NAMES.

    For example: 2 runs set aside for noise: other work or steal took more than 5% of the processors beside each, at
    most 20% (01-tcp-at-1000, 01-zeromq-at-1000)
    """
    shares = [noise_share(record) or 0.0 for record in records]
    names = [str(record["name"]) for record in records[:MOST_NAMES]]
    if len(records) > MOST_NAMES:
        names.append("...")
    took = _took(shares, rule.most_share_of_all_cpus, "each")
    return f"{counted(len(records), plural)} set aside for noise: {took} ({', '.join(names)})"


def unknown_words(unknown: int, of_all: str) -> str:
    """The number of measurements whose noise is unknown; empty if there are none.

    For example: the noise of the machine is unknown for 2 of 9 runs
    """
    return f"the noise of the machine is unknown for {unknown} of {of_all}" if unknown else ""


def noisy_words(shares: Sequence[float], most: float, of_all: str) -> str:
    """How many of the measurements that count were disturbed by a share above `most`; empty if there are none.

    For example: other work or steal took more than 5% of the processors beside 2 of 9 runs, at most 20%
    """
    noisy = [share for share in shares if is_noisy_share(share, most)]
    return _took(noisy, most, f"{len(noisy)} of {of_all}") if noisy else ""


def noise_caveats(
    shares: Sequence[float | None], set_aside: int, rule: RedoRule | None, plural: str = "runs"
) -> Iterator[str]:
    """Sentences about noise: how many measurements that count were noisy, and for how many the noise is unknown.

    `shares`: noise shares of the measurements that count. `set_aside`: number of measurements that do not count.
    """
    known = [share for share in shares if share is not None]
    most = rule.most_share_of_all_cpus if rule else MOST_SHARE
    words = noisy_words(known, most, counted(len(known), plural))
    if words and rule is None:
        yield words
    elif words and rule is not None and set_aside >= rule.most_extra_runs:
        be = "was" if rule.most_extra_runs == 1 else "were"
        yield f"{words}; the plan's {counted(rule.most_extra_runs, f'extra {plural}')} {be} not enough"
    elif words and rule is not None:
        yield f"{words}; each was tried up to {rule.most_tries} times, and the machine was not quiet"
    unknown = unknown_words(len(shares) - len(known), counted(len(shares), plural))
    if unknown:
        yield unknown


def _took(shares: Sequence[float], most: float, measurements: str) -> str:
    """The clause on other work; `measurements` names those that it disturbed."""
    largest = share_words(max(shares))
    return f"other work or steal took more than {most:.0%} of the processors beside {measurements}, at most {largest}"
