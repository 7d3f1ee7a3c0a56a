"""Sentences that sum up the measured rows of the supply chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from exchange_simulation.messaging.supply_chain.messages import INTERACTIONS
from exchange_simulation.reports.formats.numbers import number_text
from transports.registry import has_broker

WITHOUT_BROKER = (
    "interactions 5, 6 and 7 only: groups a (PUB/SUB) and c (PUSH/PULL); no broker, and nothing is persistent"
)


def summary_sentences(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield sentences: the cells that passed, the cells without a broker, and each interaction of a single cell."""
    passed = [row for row in rows if _has_passed(row)]
    if passed and "lost_not_persistent" in passed[0]["figures"]:
        yield "passed: nothing persistent was lost when the broker was restarted; NP lost were not persistent"
    elif passed:
        yield f"passed, {len(passed)} of {len(rows)}: {'; '.join(row['words'] for row in passed)}"
    for row in rows:
        if not has_broker(row["transport"]):
            yield f"{row['words']}: {WITHOUT_BROKER}"
    if len(rows) == 1:
        (row,) = rows
        yield from _interaction_sentences({name: estimate["median"] for name, estimate in row["figures"].items()})


def _has_passed(row: Mapping[str, Any]) -> bool:
    """True if the cell was measured, and every repeat was right."""
    if not row["figures"]:
        return False
    return not any(repeat["reasons"] for repeat in row["repeats"])


def _interaction_sentences(figures: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence for each interaction that has figures."""
    for number, interaction in INTERACTIONS.items():
        name = f"interaction_{number}"
        if f"{name}_per_s" not in figures:
            continue
        yield (
            f"interaction {number}, {interaction.about}: {number_text(figures[f'{name}_per_s'])} messages/s, "
            f"{figures[f'{name}_off_plan_percent']:+.2f} % off the plan; {_end_in_words(figures, name)}"
        )


def _end_in_words(figures: Mapping[str, float], name: str) -> str:
    """How long the interaction took to its end: p90, or the slowest if there are too few last messages for p90."""
    if f"{name}_p90_ms" in figures:
        return f"90 % ended within {number_text(figures[f'{name}_p90_ms'])} ms of due"
    if f"{name}_max_ms" in figures:
        last_messages = f"{figures[f'{name}_last_messages']:,.0f} last messages"
        return f"the slowest of {last_messages} came {number_text(figures[f'{name}_max_ms'])} ms after due"
    return "none ended within the measured time"
