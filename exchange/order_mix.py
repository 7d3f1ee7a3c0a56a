"""The mix of an order stream: how many of its messages are of each kind. gateway/mixed_orders.py makes the stream."""

from __future__ import annotations

import re
from dataclasses import dataclass

from exchange.allowed import BadSetting, meant

LIMIT = "limit"
POST_ONLY = "post"
CANCEL = "cancel"
REPLACE = "replace"
KINDS = (LIMIT, "market", "ioc", "fok", POST_ONLY, CANCEL, REPLACE)
RESTING_KINDS = (LIMIT, POST_ONLY)
"""Kinds whose orders may rest, so that a request can name them."""
PRESETS = {
    "paper": "limit=100",
    "exchange-core": "limit=9,ioc=3,cancel=6,replace=82",
    "itch": "limit=47,ioc=4,cancel=42,replace=7",
}
"""Mixes by name.

The project exchange-core publishes its speed for 9 % good-till-cancel orders, 3 % immediate-or-cancel orders, 6 %
cancels and 82 % moves. `itch` is made, not measured: like an ITCH day, nearly every order is cancelled or replaced. The
mix of a real day is that of its tape, by `--mix from:TAPE`.
"""
ALLOWED = f"percentages that add up to 100, as limit=60,cancel=30,replace=10, or {' or '.join(PRESETS)}"
ROUNDING = 1e-9


@dataclass(frozen=True)
class OrderMix:
    """The percentage of each of KINDS, in their order. They add up to 100, and some orders may rest."""

    percentages: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> OrderMix:
        """Read the name of a preset, or KIND=PERCENT,... BadSetting if the text is no mix."""
        percent_of: dict[str, float] = {}
        for part in PRESETS.get(text, text).split(","):
            kind, _, percent = (word.strip() for word in part.partition("="))
            if kind not in KINDS:
                raise BadSetting("mix", text, f"{ALLOWED}; {kind!r} is no kind: {', '.join(KINDS)}{meant(kind, KINDS)}")
            if not re.fullmatch(r"\d+(\.\d+)?", percent):
                raise BadSetting("mix", text, f"{ALLOWED}; {part!r} has no percentage")
            if kind in percent_of:
                raise BadSetting("mix", text, f"{ALLOWED}; {kind} stands there twice")
            percent_of[kind] = float(percent)
        total = sum(percent_of.values())
        if abs(total - 100) > ROUNDING:
            raise BadSetting("mix", text, f"{ALLOWED}; these add up to {total:g}")
        if not any(percent_of.get(kind, 0) for kind in RESTING_KINDS):
            raise BadSetting("mix", text, f"{ALLOWED}; here no order can rest, so none would trade: add limit orders")
        return cls(tuple(percent_of.get(kind, 0.0) for kind in KINDS))

    @property
    def has_cancels_or_replaces(self) -> bool:
        """Whether some messages are cancels or replaces, which name earlier orders."""
        return self.percentages[KINDS.index(CANCEL)] + self.percentages[KINDS.index(REPLACE)] > 0


def check_mix(text: str) -> None:
    """Raise BadSetting if the text is no mix."""
    OrderMix.parse(text)
