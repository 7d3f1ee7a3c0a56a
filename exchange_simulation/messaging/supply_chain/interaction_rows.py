"""A plot of the seven interactions of one cell: how long 90 % of each took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exchange.percentiles import LEAST_ORDERS
from exchange_simulation.messaging.presentation import Plot
from exchange_simulation.messaging.supply_chain.messages import INTERACTIONS

INTERACTION_P90 = "interaction_p90_ms"
INTERACTIONS_PLOT = Plot(
    "Time to the end of each interaction, 90 %",
    INTERACTION_P90,
    "ms from due",
    x="interaction",
    linear=True,
    log_y=True,
    separate=True,
    caption="; ".join(f"{number} {interaction.about}" for number, interaction in INTERACTIONS.items())
    + f". An interaction with fewer than {LEAST_ORDERS['p90']} last messages is left out.",
)


def interaction_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each interaction of each cell, with the number of the interaction in its point."""
    rows_of_interactions: list[dict[str, Any]] = []
    for row in rows:
        for number in INTERACTIONS:
            estimate = row["figures"].get(f"interaction_{number}_p90_ms")
            if estimate is not None:
                point = {**row["point"], "interaction": number}
                rows_of_interactions.append({**row, "point": point, "figures": {INTERACTION_P90: estimate}})
    return rows_of_interactions
