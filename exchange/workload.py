"""The words by which users choose orders and their due times, and checks of which settings go together.

ARRIVALS and PRICE_MODELS have an entry for each word. The gateway generates the orders and their due times: GENERATORS
in gateway/due_times.py and WRITERS in gateway/seeded_orders.py have the same words, or the gateway does not import.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from exchange.allowed import BadSetting, between, one_of
from exchange.load_shape import LoadSegment, LoadShape

MAX_PRICE = 65_534
"""Prices travel as u16, and one more than the highest price of a book stands for no ask."""
USUAL_PRICES = (450, 549)
MAX_BURST = 1_000_000
LONGEST_SPIN_US = 1_000_000
SPIN = re.compile(r"spin:(?P<microseconds>[0-9]{1,7})")
LATEST_NS = 2**62
"""The latest due time that is possible."""
LEAST_SHARE = 0.001

Prices = tuple[int, int]


@dataclass(frozen=True)
class ArrivalsForm:
    """How a user writes one kind of arrivals: its word, then a colon and parameters where it has any."""

    usage: str
    """The form as an error message shows it."""
    parameters: str = ""
    """A regular expression for the text after the word."""
    read: Callable[..., dict[str, Any]] = dict
    """Turns the expression's groups into fields of `Arrivals`."""
    is_steady: bool = True
    """Whether the mean rate is the same in every second."""


ARRIVALS = {
    "fixed": ArrivalsForm("fixed"),
    "poisson": ArrivalsForm("poisson"),
    "bursts": ArrivalsForm(
        f"bursts:ORDERS (1 to {MAX_BURST:,}, as bursts:100)", r":(\d{1,7})", lambda orders: {"burst": int(orders)}
    ),
    "ramp": ArrivalsForm(
        f"ramp:FROM..TO (shares of the rate, {LEAST_SHARE} to 1, as ramp:0.1..1)",
        r":([\d.]+?)\.\.([\d.]+)",
        lambda first, last: {"shares": (float(first), float(last))},
        is_steady=False,
    ),
    "steps": ArrivalsForm(
        "steps:SHARE@SECONDS,... (shares of the rate, or FROM..TO of them, as steps:0.1@10,1@10)",
        r":([\d.,@e-]+)",
        lambda text: {"shape": LoadShape.parse(text)},
        is_steady=False,
    ),
    "recorded": ArrivalsForm("recorded (as beside a tape)", is_steady=False),
}
*_FIRST_USAGES, _LAST_USAGE = (form.usage for form in ARRIVALS.values())
FORMS = f"{', '.join(_FIRST_USAGES)}, or {_LAST_USAGE}"
"""All forms, for an error message."""


PRICE_MODELS = {"uniform": False, "normal": False, "wide": True, "two-sided": False}
"""For each price model, whether it uses all prices that the book accepts, in place of those within `prices`.

`uniform` draws prices evenly, `normal` around a mid that moves, `wide` evenly over all prices of the book, and
`two-sided` evenly too, but bids from the lower 55 % of the prices, asks from the upper 55 %, so that most orders rest.
"""


@dataclass(frozen=True)
class Arrivals:
    """A schedule of orders without its rate."""

    kind: str = "fixed"
    """One of ARRIVALS."""
    burst: int = 1
    """Orders that are due at once."""
    shares: tuple[float, float] = (1.0, 1.0)
    """Shares of the rate, at the run's start and at its end."""
    shape: LoadShape | None = None
    """The shares of the rate over time, of steps."""

    @classmethod
    def parse(cls, text: object) -> Arrivals:
        """Parse the text that a user wrote. ValueError if it is none of FORMS."""
        kind = text.partition(":")[0] if isinstance(text, str) else ""
        form = ARRIVALS.get(kind)
        if form is None:
            raise ValueError(FORMS)
        parameters = re.fullmatch(form.parameters, str(text).removeprefix(kind))
        if parameters is None:
            raise ValueError(FORMS)
        try:
            return cls(kind, **form.read(*parameters.groups()))
        except ValueError as error:
            raise ValueError(FORMS) from error

    def __post_init__(self) -> None:
        is_burst_allowed = 1 <= self.burst <= MAX_BURST
        are_shares_allowed = all(LEAST_SHARE <= share <= 1 for share in self.shares)
        if not (is_burst_allowed and are_shares_allowed and self._is_shape_allowed):
            raise ValueError(FORMS)

    @property
    def _is_shape_allowed(self) -> bool:
        """True if every share lies within LEAST_SHARE to 1, and every segment has a length."""
        if self.shape is None:
            return True
        shares = [share for segment in self.shape.segments for share in (segment.first, segment.last)]
        return not self.shape.is_open and all(LEAST_SHARE <= share <= 1 for share in shares)

    def share_seconds(self, seconds: float, length_s: float) -> float:
        """Return the share of the rate, summed over the first `seconds` of a run of `length_s`.

        Times the rate, this is how many orders are due in these seconds; with random or recorded arrivals, on average.
        """
        if self.shape is not None:
            return self.shape.amount_after(seconds)
        first, last = self.shares
        return LoadSegment(first, last, length_s).amount_after(seconds)

    def load_at(self, orders_per_s: float) -> LoadShape | None:
        """Return the rates over time of steps, whose highest share is this rate; None for other arrivals."""
        return None if self.shape is None else self.shape.scaled(orders_per_s)

    def mean_rates(self, orders_per_s: float) -> LoadShape:
        """Return the rates over time of steps; for other arrivals their mean rate over the run, without an end."""
        steps = self.load_at(orders_per_s)
        if steps is not None:
            return steps
        mean_share = sum(self.shares) / 2
        return LoadShape.steady(orders_per_s * mean_share)


def is_steady(text: object) -> bool:
    """Whether the mean rate of these arrivals is the same in every second."""
    return ARRIVALS[Arrivals.parse(text).kind].is_steady


def check_arrivals(arrivals: str, orders_per_s: float | None, tape: str | None) -> None:
    """Raise BadSetting for unknown arrivals, or if the rate or tape that they need is missing."""
    try:
        kind = Arrivals.parse(arrivals).kind
    except ValueError as error:
        raise BadSetting("arrivals", arrivals, FORMS) from error
    if kind != "fixed" and orders_per_s is None:
        raise BadSetting("arrivals", arrivals, "fixed, where there is no rate: give one, as 8000")
    if kind == "recorded" and tape is None:
        raise BadSetting("arrivals", arrivals, "recorded only where a tape says when its orders are due: name it")


def check_pace(pace: object) -> None:
    """Raise BadSetting for a pace that is none of the allowed words."""
    spin_us(pace)


def spin_us(pace: object) -> int:
    """Return how many microseconds before a due time a gateway spins; 0 for `sleep`. BadSetting for other words."""
    if pace == "sleep":
        return 0
    spin = SPIN.fullmatch(str(pace))
    microseconds = int(spin["microseconds"]) if spin else 0
    if not 1 <= microseconds <= LONGEST_SPIN_US:
        raise BadSetting("pace", pace, f"sleep, or spin:US with 1..{LONGEST_SPIN_US} microseconds, as spin:100")
    return microseconds


def check_prices(prices: object) -> None:
    """Raise BadSetting unless these are a lowest and a highest price."""
    allowed = f"LOW..HIGH, whole ticks within 0..{MAX_PRICE + 1}"
    if not isinstance(prices, tuple | list) or len(prices) != 2:
        raise BadSetting("prices", prices, allowed)
    low, high = prices
    are_whole = isinstance(low, int) and isinstance(high, int)
    if not (are_whole and 0 <= low <= high <= MAX_PRICE + 1):
        raise BadSetting("prices", f"{low}..{high}", allowed)


def settled_prices(prices: Prices, model: str, max_price: int) -> Prices:
    """Return the range of a run's prices. BadSetting for an unknown model, or for prices with the model `wide`."""
    one_of("price_model", model, PRICE_MODELS)
    spans_book = PRICE_MODELS[model]
    if not spans_book:
        return prices
    if tuple(prices) not in (USUAL_PRICES, (1, max_price)):
        raise BadSetting("prices", f"{prices[0]}..{prices[1]}", f"1..{max_price}, where the price model is {model}")
    return 1, max_price


def check_tape(tape: object, prices: Prices, model: str) -> None:
    """Raise BadSetting if prices or a price model are set together with a tape, which has its own prices."""
    if tape is None:
        return
    if not isinstance(tape, str) or not tape:
        raise BadSetting("tape", tape, "a file of orders")
    if model != "uniform":
        raise BadSetting("price_model", model, "uniform, the default: the prices are the tape's")
    if tuple(prices) != USUAL_PRICES:
        raise BadSetting("prices", f"{prices[0]}..{prices[1]}", "the default: the prices are the tape's")


def settled_speed(speed: float | None, arrivals: str) -> float | None:
    """Return how many times faster than recorded orders are due, by default 1; None if arrivals are not recorded."""
    if Arrivals.parse(arrivals).kind == "recorded":
        return recorded_speed(speed)
    if speed is not None:
        raise BadSetting("speed", speed, "none, unless a tape's due times say when orders are due")
    return None


def recorded_speed(speed: float | None) -> float:
    """Return how many times faster than recorded orders are due, by default 1. BadSetting if that is not allowed."""
    if speed is None:
        return 1.0
    between("speed", speed, 0.001, 1_000_000)
    return speed
