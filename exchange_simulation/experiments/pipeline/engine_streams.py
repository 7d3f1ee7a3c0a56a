"""The streams that a run with --record keeps of one engine: its messages, their due times, and the recorded answers.

a pair:    orders.bin, orders.due                                             answers.bin
a market:  input.bin, in the engine's order; orders.due, orders.2.due...      answers.bin, answers.2.bin, ...
           of engine 2: input.2.bin                                           answers-2.bin, answers-2.2.bin, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from exchange.instances import answers_file, input_file, orders_file
from exchange.order_mix import CANCEL, REPLACE
from exchange_simulation.experiments.events.tables import Bytes, Longs
from gateway.tape import check_due, due_path, map_file, replayable_records
from matching_engine.encoding import ANSWER_SIZES
from matching_engine.sessions.routing import routed
from matching_engine.tape import offsets_of


@dataclass(kw_only=True)
class EngineStreams:
    """The streams of one engine. Answers are checked from their beginning on, as they are made again."""

    messages: Bytes
    """Orders and requests in the engine's order."""
    counts: Sequence[int]
    """The number of messages of each gateway, at all engines together."""
    answers: Sequence[Bytes]
    """The answers that each gateway recorded from this engine."""
    has_requests: bool
    """Whether there may be cancels and replaces."""
    is_shared: bool = False
    """Whether ids are market ids, and `answers` has those of each gateway."""
    gets_quotes: bool = True
    _due_ns: Longs | None = None
    """The due times of all messages, by place as in order_history.py; None if a gateway has none."""
    _checked: list[int] = field(default_factory=list)
    """The bytes of each gateway's answers that were checked."""
    _latest_due_ns: int = 0

    def __post_init__(self) -> None:
        self._checked = [0] * len(self.answers)

    @classmethod
    def of_pair(cls, folder: Path, pair: int) -> EngineStreams:
        """Return the streams of a gateway and its engine. MalformedMessage, ValueError or OSError if damaged."""
        tape = folder / orders_file(pair)
        records = replayable_records(tape)
        return cls(
            messages=map_file(tape),
            counts=[records.total],
            answers=[map_file(folder / answers_file(pair))],
            has_requests=_has_requests(records.by_kind),
            _due_ns=_due_times(tape, records.total),
        )

    @classmethod
    def of_market(cls, folder: Path, gateways: int, engine: int, *, gets_quotes: bool) -> EngineStreams:
        """Return the streams of one engine of a market. MalformedMessage, ValueError or OSError if damaged."""
        counts: list[int] = []
        answers: list[Bytes] = []
        due_times: list[Longs] = []
        has_requests = False
        for gateway in range(1, gateways + 1):
            tape = folder / orders_file(gateway)
            records = replayable_records(tape)
            counts.append(records.total)
            answers.append(map_file(folder / answers_file(gateway, engine)))
            has_requests = has_requests or _has_requests(records.by_kind)
            due_ns = _due_times(tape, records.total)
            if due_ns is not None:
                due_times.append(due_ns)
        return cls(
            messages=map_file(folder / input_file(engine)),
            counts=counts,
            answers=answers,
            has_requests=has_requests,
            is_shared=True,
            gets_quotes=gets_quotes,
            _due_ns=np.concatenate(due_times) if len(due_times) == gateways else None,
        )

    def due_times(self, places: Longs) -> Longs | None:
        """Return when the next messages were due, by their places; None if that is not known.

        The engine takes the orders of several gateways as they arrive. So that no time is before an earlier message's,
        a message that was due before an earlier one has that one's time.
        """
        if self._due_ns is None:
            return None
        due_ns = self._due_ns[places].astype(np.int64)
        if self.is_shared:
            due_ns = np.maximum(np.maximum.accumulate(due_ns), self._latest_due_ns)
            self._latest_due_ns = int(due_ns[-1])
        return due_ns

    def check_answers(self, answers: Bytes) -> None:
        """Compare the next answers of the engine with the recorded ones. ValueError if they are not the same."""
        if self.is_shared:
            offsets = offsets_of(answers, ANSWER_SIZES)
            answers_by_gateway = routed(answers, offsets, len(self.counts), get_quotes=self.gets_quotes)
        else:
            answers_by_gateway = [answers]
        for place, computed in enumerate(answers_by_gateway):
            first = self._checked[place]
            recorded = self.answers[place][first : first + len(computed)]
            if not np.array_equal(computed, recorded):
                raise ValueError("its answers are not those of the matching engine to its orders")
            self._checked[place] = first + len(computed)

    def check_ends(self) -> None:
        """Raise ValueError if more answers were recorded than the messages cause."""
        for recorded, checked in zip(self.answers, self._checked, strict=True):
            if checked < len(recorded):
                raise ValueError(f"it has {len(recorded) - checked:,} bytes of answers more than its orders cause")


def _has_requests(kinds: dict[str, int]) -> bool:
    return kinds[CANCEL] + kinds[REPLACE] > 0


def _due_times(tape: Path, orders: int) -> Longs | None:
    """Return the due times beside a stream of this many orders; None if there are none. ValueError if damaged."""
    due_file = due_path(tape)
    if not due_file.exists():
        return None
    check_due(due_file, orders)
    due_ns: Longs = map_file(due_file).view("<i8")
    return due_ns
