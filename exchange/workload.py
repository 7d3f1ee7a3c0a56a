"""Which orders are offered, and when: what goes together of a run's settings."""

from __future__ import annotations

from exchange.allowed import BadSetting, between
from exchange.arrivals import FORMS, Arrivals

MAX_PRICE = 65_534
USUAL_PRICES = (450, 549)
PRICE_MODELS = ("uniform", "normal", "wide")
"""Uniform within the prices, around a mid that moves within them, or uniform over all that the book accepts."""

Prices = tuple[int, int]


def check_arrivals(arrivals: str, orders_per_s: float | None, tape: str | None) -> None:
    try:
        kind = Arrivals.parse(arrivals).kind
    except ValueError as error:
        raise BadSetting("arrivals", arrivals, FORMS) from error
    if kind != "fixed" and orders_per_s is None:
        raise BadSetting("arrivals", arrivals, "fixed, where there is no rate: give one, as 8000")
    if kind == "recorded" and tape is None:
        raise BadSetting("arrivals", arrivals, "recorded only where a tape says when its orders are due: name it")


def check_prices(prices: object) -> None:
    allowed = f"LOW..HIGH, whole ticks within 0..{MAX_PRICE + 1}"
    if not isinstance(prices, tuple | list) or len(prices) != 2:
        raise BadSetting("prices", prices, allowed)
    low, high = prices
    whole = isinstance(low, int) and isinstance(high, int)
    if not (whole and 0 <= low <= high <= MAX_PRICE + 1):
        raise BadSetting("prices", f"{low}..{high}", allowed)


def settled_prices(prices: Prices, model: str, max_price: int) -> Prices:
    """Wide prices are those of the book, so nothing else can have been asked for."""
    if model not in PRICE_MODELS:
        raise BadSetting("price_model", model, " or ".join(PRICE_MODELS))
    if model != "wide":
        return prices
    if tuple(prices) not in (USUAL_PRICES, (1, max_price)):
        raise BadSetting("prices", f"{prices[0]}..{prices[1]}", f"1..{max_price}, where the price model is wide")
    return 1, max_price


def check_tape(tape: object, prices: Prices, model: str) -> None:
    """It has prices of its own."""
    if tape is None:
        return
    if not isinstance(tape, str) or not tape:
        raise BadSetting("tape", tape, "a file of orders")
    if model != "uniform":
        raise BadSetting("price_model", model, "uniform, the default: the prices are the tape's")
    if tuple(prices) != USUAL_PRICES:
        raise BadSetting("prices", f"{prices[0]}..{prices[1]}", "the default: the prices are the tape's")


def settled_speed(speed: float | None, arrivals: str) -> float | None:
    """Of what was recorded: 1 where nothing else was asked for."""
    if Arrivals.parse(arrivals).kind == "recorded":
        between("speed", 1.0 if speed is None else speed, 0.001, 1_000_000)
        return speed or 1.0
    if speed is not None:
        raise BadSetting("speed", speed, "none, unless a tape's due times say when orders are due")
    return None
