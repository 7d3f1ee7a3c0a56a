"""The sentence of a check: a figure, and on which side of its bound it lies. All gates make their checks here.

For example:

    passed: p99 of amqp is 3.1 times zeromq's (2.8..3.5), not over 20, at 8,000 orders/s
    failed: p99 of amqp is 25 times zeromq's (22..28), over 20, at 8,000 orders/s
    undecided: p99 of amqp is 19 times zeromq's (15..24), perhaps over 20, at 8,000 orders/s
    failed: p99 of amqp counts as over 20 times zeromq's, at 8,000 orders/s: amqp did not keep its rate
    undecided: whether p99 of amqp is over 20 times zeromq's, at 8,000 orders/s: too noisy to say
"""

from __future__ import annotations

from dataclasses import dataclass

from exchange_simulation.reports.gate_outcomes import FAILED, PASSED, UNDECIDED, GateCheck

WORDS_BEFORE_BOUND = {FAILED: "", PASSED: "not ", UNDECIDED: "perhaps "}
"""The words between a measured figure and its bound, by outcome."""


@dataclass(frozen=True, kw_only=True)
class JudgedBound:
    """A figure, and the bound beyond which it fails the gate, in the words of their sentence."""

    condition: str
    """The condition as the user typed it."""
    figure: str
    """For example: p99 of amqp"""
    bound: str
    """For example: over 20, or: over 1ms"""
    unit_of_bound: str = ""
    """What follows the bound where no measured figure has named it. For example: times zeromq's"""
    place: str = ""
    """Where in the comparison. For example: at 8,000 orders/s"""

    def measured(self, outcome: str, value: str) -> GateCheck:
        """Return the check of a figure that was measured; `value` has its unit and its interval."""
        return self._check(outcome, f"{self.figure} is {value}, {WORDS_BEFORE_BOUND[outcome]}{self.bound}{self._place}")

    def assumed(self, outcome: str, reason: str) -> GateCheck:
        """Return the check of a figure that counts as beyond the bound, or as within it, whatever was measured."""
        words = WORDS_BEFORE_BOUND[outcome]
        return self._check(outcome, f"{self.figure} counts as {words}{self._whole_bound}{self._place}: {reason}")

    def undecided(self, reason: str) -> GateCheck:
        """Return the check of a figure that says nothing about the bound."""
        return self._check(UNDECIDED, f"whether {self.figure} is {self._whole_bound}{self._place}: {reason}")

    def _check(self, outcome: str, sentence: str) -> GateCheck:
        requirement = f"{self.figure} not {self._whole_bound}{self._place}"
        return GateCheck(condition=self.condition, requirement=requirement, outcome=outcome, sentence=sentence)

    @property
    def _whole_bound(self) -> str:
        return f"{self.bound} {self.unit_of_bound}".rstrip()

    @property
    def _place(self) -> str:
        return f", {self.place}" if self.place else ""
