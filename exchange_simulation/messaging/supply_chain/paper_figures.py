"""What the paper printed of the supply chain, and our plots of its figures 3 to 9."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.presentation import Plot
from exchange_simulation.messaging.supply_chain.messages import MESSAGES, AgentKind, Group, sizes_kb
from exchange_simulation.messaging.supply_chain.topologies import HORIZONTAL, VERTICAL


@dataclass(frozen=True)
class GroupShare:
    """A group's share in percent."""

    messages: float
    """The share of the messages received."""
    kilobytes: float
    """The share of the bytes received."""


PAPERS_MIX = {
    HORIZONTAL: {
        "a": GroupShare(messages=37.46, kilobytes=24.66),
        "b": GroupShare(messages=12.45, kilobytes=2.41),
        "c": GroupShare(messages=24.55, kilobytes=49.19),
        "d": GroupShare(messages=25.55, kilobytes=23.74),
    },
    VERTICAL: {
        "a": GroupShare(messages=14.19, kilobytes=7.19),
        "b": GroupShare(messages=5.99, kilobytes=2.25),
        "c": GroupShare(messages=39.09, kilobytes=61.03),
        "d": GroupShare(messages=40.74, kilobytes=29.52),
    },
}
"""Table 5, achieved: the shares of each group, by topology."""
TABLE_4 = {
    "orderConf": 2.63, "statInfoOrderDC": 0.39, "shipInfo": 2.13, "shipDep": 1.96, "order": 2.34, "shipConf": 1.03,
    "callForOffers": 1.93, "offer": 2.50, "pOrder": 2.67, "pShipConf": 1.28, "statInfoShipDC": 1.29, "pOrderConf": 2.86,
    "invoice": 2.33, "pShipInfo": 1.24, "priceUpdate": 0.24, "inventoryInfo": 2.31, "statInfoSM": 5.27,
    "productAnnouncement": 1.26, "creditCardHL": 1.80,
}  # fmt: skip
"""Average sizes of the messages in KByte, in the paper's order."""
SIZES_OF_TABLE_4 = {
    "order": (1.74, 7.10, 41.01),
    "orderConf": (2.02, 7.39, 41.29),
    "shipDep": (1.12, 8.59, 55.79),
    "statInfoOrderDC": (0.22, 1.67, 10.83),
    "shipInfo": (1.28, 8.76, 55.95),
    "shipConf": (0.81, 2.73, 14.83),
    "callForOffers": (1.35, 7.06, 36.52),
    "offer": (1.69, 9.65, 50.71),
    "pOrder": (1.86, 9.85, 51.07),
    "pOrderConf": (2.07, 9.79, 49.56),
    "invoice": (1.70, 7.92, 39.95),
    "pShipInfo": (0.98, 3.62, 17.26),
    "pShipConf": (1.01, 3.65, 17.29),
    "statInfoShipDC": (1.02, 3.68, 17.38),
    "priceUpdate": (0.24, 0.24, 0.24),
    "inventoryInfo": (1.48, 10.22, 49.03),
    "productAnnouncement": (1.21, 0.28, 10.51),
    "creditCardHL": (1.01, 8.49, 50.00),
}
"""The three sizes of each message in KByte. Of statInfoSM the paper gives a range, 4.7 to 24.78."""
TARGETS = {
    HORIZONTAL: {"a": 37.5, "b": 12.5, "c": 25.0, "d": 25.0},
    VERTICAL: {"a": 15.0, "b": 5.0, "c": 40.0, "d": 40.0},
}
"""Table 5, target: the shares of messages of each group in percent, by topology."""

_plot_by_base = partial(Plot, x="base", x_unit="BASE", linear=True)


def _group_lines(ending: str) -> dict[str, str]:
    """Names of lines by figure: a figure of each group."""
    return {f"{group.value}{ending}": f"group {group.value}" for group in Group}


def _kind_lines(ending: str) -> dict[str, str]:
    """Names of lines by figure: a figure of each kind of location."""
    return {f"{kind.name}{ending}": kind.value for kind in AgentKind}


def _plots_of_topology(topology: str, mix_figure: int, messages_figure: int, traffic_figure: int) -> list[Plot]:
    """The plots of a topology; the numbers are those of the paper's figures."""
    where = {"topology": topology}
    shares = [
        Published("", "", level=share.messages, level_label=f"the paper, {group}")
        for group, share in PAPERS_MIX[topology].items()
    ]
    return [
        _plot_by_base(
            f"{topology}, message mix (figure {mix_figure})",
            "mix",
            "% of messages",
            where=where,
            published=shares,
            series=_group_lines("_percent"),
        ),
        _plot_by_base(
            f"{topology}, messages (figure {messages_figure})",
            "messages",
            "messages/s",
            where=where,
            series=_group_lines("_per_s"),
        ),
        _plot_by_base(
            f"{topology}, traffic (figure {traffic_figure})",
            "traffic",
            "kB/s",
            where=where,
            series=_group_lines("_kb_per_s"),
        ),
        _plot_by_base(
            f"{topology}, traffic of each location",
            "of_each",
            "messages/s, sent and received",
            where=where,
            series=_kind_lines("_messages_per_s"),
        ),
    ]


PLOTS = (
    _plot_by_base("Messages delivered", "delivered_per_s", "messages/s"),
    _plot_by_base("Delivery, 90 %", "delivery_p90_ms", "ms"),
    _plot_by_base("CPU of the broker", "broker_cores", "cores"),
    _plot_by_base(
        "horizontal, locations (figure 3)",
        "locations",
        "locations",
        where={"topology": HORIZONTAL},
        series=_kind_lines("_locations"),
    ),
    *_plots_of_topology(HORIZONTAL, mix_figure=4, messages_figure=5, traffic_figure=6),
    *_plots_of_topology(VERTICAL, mix_figure=7, messages_figure=8, traffic_figure=9),
)


def _published_mix() -> Iterator[Published]:
    """Table 5: for each topology the shares of messages of all groups, then their shares of kilobytes."""
    for topology, mix in PAPERS_MIX.items():
        where = {"topology": topology}
        for group, share in mix.items():
            title = f"{topology}, group {group}: % of messages (table 5; its target)"
            in_words = f"{share.messages:.2f} ({TARGETS[topology][group]:.2f})"
            yield Published(title, in_words, figure=f"{group}_percent", where=where)
        for group, share in mix.items():
            title = f"{topology}, group {group}: % of kB (table 5)"
            yield Published(title, f"{share.kilobytes:.2f}", figure=f"{group}_kb_percent", where=where)


def _published_sizes() -> Iterator[Published]:
    """Table 4: the three sizes of each message, beside those of our plan, and then its average.

    A file gives other sizes to the topology freeform, so sizes stand beside the paper's two topologies alone.
    """
    planned_sizes = {message.name: sizes_kb(message) for message in MESSAGES}
    for name, average in TABLE_4.items():
        planned = ", ".join(f"{size:.2f}" for size in planned_sizes[name])
        papers = SIZES_OF_TABLE_4.get(name)
        in_words = ", ".join(f"{size:.2f}" for size in papers) if papers else "4.7 to 24.78"
        title = f"{name}: kB, sizes 1, 2 and 3 (table 4), ours of the plan"
        yield Published(title, in_words, planned=planned, fits=_is_of_the_papers_topologies)
        title = f"{name}: kB on average (table 4)"
        yield Published(title, f"{average:.2f}", figure=f"{name}_kb", fits=_is_of_the_papers_topologies)


def _is_of_the_papers_topologies(settings: Mapping[str, Any]) -> bool:
    return set(settings["topology"]) <= {HORIZONTAL, VERTICAL}


PUBLISHED = (*_published_mix(), *_published_sizes())
