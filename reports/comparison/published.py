"""The paper's printed values, which are of other hardware, with ours beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reports.comparison.completion_figures import rate_of
from reports.comparison.paper import IPOIB_CPU_PERCENT, IPOIB_MEAN_US, IPOIB_RATE
from reports.comparison.paper_figures import Arms, groups

Record = dict[str, Any]


@dataclass(frozen=True)
class Published:
    """A row: what, the paper's value in words, and ours of each transport; None where it was not measured."""

    what: str
    paper: str
    ours: list[Record | None]


def published(record: Record) -> list[Published]:
    """Empty where there is no figure of the paper to set them beside."""
    found = groups(record)
    completion = [_completion(words, arms) for words, arms in found.items()]
    return [*completion, _busiest(next(iter(found.values())))] if found else []


def transports(record: Record) -> list[str]:
    """The columns."""
    return list(next(iter(groups(record).values()), {}))


def _completion(words: str, arms: Arms) -> Published:
    held_back = any(arm["settings"]["nagle"] for own in arms.values() for arm in own)
    what = f"mean completion in µs, at {IPOIB_RATE:,.0f} orders/s{words}"
    at_rate = {name: next((arm for arm in own if rate_of(arm) == IPOIB_RATE), None) for name, own in arms.items()}
    ours = [arm["metrics"].get("handed_over_mean_us") if arm else None for arm in at_rate.values()]
    return Published(what, f"{IPOIB_MEAN_US['on' if held_back else 'off']:,}", ours)


def _busiest(arms: Arms) -> Published:
    what = "CPU of the busiest component at any rate, in % of a core"
    return Published(what, f"up to {IPOIB_CPU_PERCENT}", [_most(own) for own in arms.values()])


def _most(arms: list[Record]) -> Record | None:
    used = [found for arm in arms for name, found in arm["metrics"].items() if name.endswith("_cpu_percent")]
    return max(used, key=lambda estimate: float(estimate["median"]), default=None)
