"""The words of a comparison: its title, its circumstances, the names of its arms; and what the paper printed.

The paper's values are of other hardware: a stock exchange over Apache Qpid, InfiniBand (IPoIB).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, NamedTuple

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange_simulation.reports.formats.estimates import median_text
from exchange_simulation.reports.formats.few_orders import has_enough_orders, max_of
from exchange_simulation.reports.formats.numbers import rate_text
from exchange_simulation.reports.formats.times import date_and_time


def title(record: Record) -> str:
    """Return the title of a comparison: its contenders, transports and rates.

    For example: zeromq against tcp, at 1,000 to 16,000 orders/s
    For example: Nagle off against Nagle on over tcp, at 1,000 orders/s
    """
    between = " against " if len(record["contenders"]) == 2 else ", "
    words = between.join(record["contenders"])
    transports = [arm["settings"]["transport"] for arm in record["arms"]]
    if not all(arm["settings"]["transport"] in arm["contender"] for arm in record["arms"]):
        words += f" over {', '.join(dict.fromkeys(transports))}"
    rates = {arm["settings"]["orders_per_s"] for arm in record["arms"]} - {None}
    if rates:
        ends = dict.fromkeys([rate_text(min(rates)), rate_text(max(rates))])
        words += f", at {' to '.join(ends)} orders/s"
    return words


def circumstances(record: Record) -> list[str]:
    """Return sentences on when and how often runs were made, in which order, and what an interval means."""
    sentences = []
    started = record["conditions"].get("started_at")
    if started:
        sentences.append(f"Measured from {date_and_time(started)}.")
    arms = len(record["arms"])
    sentences.append(f"{record['repeats']} interleaved repeats of {arms} arms, shuffled by seed {record['seed']}.")
    if record.get("seed_by_repeat"):
        sentences.append("Each repeat has orders of its own, the same for all its arms.")
    sentences.append("Figures are medians over repeats, in brackets the middle half of the repeats.")
    sentences.append("A ratio is taken within each repeat, between runs close in time.")
    sentences.append(how_tested(record))
    sentences.append(sureness(record))
    return sentences


def how_tested(record: Record) -> str:
    """Return a sentence on the test behind the verdicts, and how it is corrected for their number."""
    tests = record["statistics"]
    return f"Test: {tests['test']}; {tests['correction']}."


def sureness(record: Record) -> str:
    """Return a sentence on how sure the intervals and the verdicts are."""
    rows = sum(verdict.get("low") is not None for verdict in record["verdicts"])
    confidence = record["statistics"]["confidence"]
    if not rows:
        few = any(verdict["outcome"] == "cannot tell" for verdict in record["verdicts"])
        return f"There is no interval: {'too few repeats' if few else 'nothing was compared'}."
    if rows == 1:
        return f"The interval holds the true ratio in {confidence:.0%} of trials."
    all_of_them = "Both" if rows == 2 else f"All {rows}"
    return f"{all_of_them} intervals together hold the true ratios in {confidence:.0%} of trials."


def common_settings(record: Record) -> Record:
    """Return the settings that all arms share."""
    return _same([arm["settings"] for arm in record["arms"]], {})


def own_settings(record: Record) -> dict[str, Record]:
    """Return the settings of each contender that are the same at every rate and not shared by the others."""
    shared = common_settings(record)
    arms = grouped(record["arms"], lambda arm: str(arm["contender"]))
    return {name: _same([arm["settings"] for arm in arms[name]], shared) for name in record["contenders"]}


def _same(settings: list[Record], shared: Record) -> Record:
    """Return the settings with the same value everywhere, without the `shared` ones."""
    first, *others = settings
    return {
        name: value
        for name, value in first.items()
        if name not in shared and all(other[name] == value for other in others)
    }


def beside_the_rate(arm: Record) -> str:
    """Return the factors that the arm's block holds fixed beside the rate, with a comma in front; often none.

    For example: , packing 10
    """
    _, _, factors = arm["block"].partition(", ")
    return f", {factors}" if factors else ""


def rate_and_name(arm: Record) -> tuple[str, str]:
    """Return an arm's rate, and its contender with the factors beside the rate.

    For example: ("8,000", "amqp, packing 10, arrivals poisson"), or ("max", "amqp")
    """
    return rate_text(arm["settings"]["orders_per_s"]), arm["contender"] + beside_the_rate(arm)


def cpu_metric(component: str) -> str:
    """Return the name of a component's CPU metric."""
    return f"{component}_cpu_s_per_million"


def cpu_beyond(record: Record, arm: Record) -> Record | None:
    """Return the CPU that an arm takes beyond the first arm of its block, repeat by repeat; None for the first one.

    The exchange's own work is in both and cancels, while a ratio has it on both sides of the stroke.
    """
    first = next(other for other in record["arms"] if other["block"] == arm["block"])
    if arm is first:
        return None
    cpu = _cpu_by_repeat(arm)
    cpu_of_first = _cpu_by_repeat(first)
    beyond = {repeat: cpu[repeat] - cpu_of_first[repeat] for repeat in cpu if repeat in cpu_of_first}
    if not beyond:
        return None
    return {"median": median(beyond.values()), "by_repeat": beyond}


def _cpu_by_repeat(arm: Record) -> dict[str, float]:
    """Return an arm's CPU seconds per million orders in each repeat; empty if they were not measured."""
    by_repeat: dict[str, float] = arm["metrics"].get("cpu_s_per_million", {}).get("by_repeat", {})
    return by_repeat


def completion(arm: Record, clock: str, name: str, words: Callable[[Record | None], str]) -> str:
    """Return an arm's completion time in these words; if it had too few orders for the percentile, the maximum.

    For example: 162 (151..180), or 1,240 (max of 499)
    """
    orders = arm.get("orders_measured")
    if not has_enough_orders(name, orders):
        return f"{median_text(arm['metrics'].get(f'{clock}_max_us'))} ({max_of(orders or 0)})"
    return words(arm["metrics"].get(f"{clock}_{name}_us"))


class PaperRow(NamedTuple):
    """A row of table 1: packets to and from the broker for 1,000,000 orders."""

    nagle: str
    orders_per_s: int
    packets: int
    mean_bytes: int
    mean_gap_us: int

    @property
    def per_order(self) -> float:
        return self.packets / 1_000_000


def has_its_roles(record: Mapping[str, Any]) -> bool:
    """Return whether an arm has Nagle's algorithm on where the paper had it: at the broker alone."""
    return any(list(arm["settings"].get("nagle") or ()) == ["broker"] for arm in record["arms"])


TABLE_1 = (
    PaperRow("off", 1000, 5_097_597, 159, 196),
    PaperRow("on", 1000, 2_269_111, 359, 440),
    PaperRow("off", 8000, 4_775_966, 170, 26),
    PaperRow("on", 8000, 2_277_870, 358, 55),
)
FIGURES_8 = (
    "The paper, on IPoIB: at 8,000 orders/s Nagle at the broker took the mean from handing over from 9,300 to 7,000 us "
    "(figures 8b, 8c), and made it far worse at 1,000 and 2,000."
)
NOT_BESIDE = "The paper turned Nagle on at the broker alone. Its figures appear here with --roles broker over amqp."
IPOIB_MEAN_US = {"off": 9300, "on": 7000}
"""Mean completion at IPOIB_RATE by Nagle's algorithm: figures 8 (b) and (c), as the text has them."""
IPOIB_RATE = 8000.0
IPOIB_CPU_PERCENT = 35
"""The most CPU that any component used at any rate, from the text to figure 9."""
