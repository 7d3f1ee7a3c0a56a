"""What a simulation is: one frozen value that refuses nonsense at birth, and is sent to whoever does a part of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from exchange.allowed import BadSetting, whole
from exchange.settings import MAX_ORDERS, POLICIES
from exchange.workload import MAX_PRICE, USUAL_PRICES, check_prices, settled_prices

MAX_INSTRUMENTS = 1_000_000
"""A row of each comes back to where the simulation was asked for."""


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """As simulation.json's `settings` has it: all that the result depends on."""

    instruments: int = 1_000
    orders: int = 100_000_000
    """Of all instruments together."""
    seed: int = 1
    prices: tuple[int, int] = USUAL_PRICES
    price_model: str = "uniform"
    max_price: int = 999
    policy: str = "price-time"

    def __post_init__(self) -> None:
        whole("instruments", self.instruments, 1, MAX_INSTRUMENTS)
        whole("orders", self.orders, self.instruments, self.instruments * MAX_ORDERS)
        whole("seed", self.seed, 0, 2**64 - 1)
        whole("max_price", self.max_price, 1, MAX_PRICE)
        check_prices(self.prices)
        object.__setattr__(self, "prices", settled_prices(self.prices, self.price_model, self.max_price))
        if self.policy not in POLICIES:
            raise BadSetting("policy", self.policy, " or ".join(POLICIES))

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "prices": list(self.prices)}
