"""The figures 3 to 9 of the paper, of our measurements; what its tables 4 and 5 print, beside ours; the commands."""

from __future__ import annotations

from functools import partial

from messaging.benchmark import Makes, Plot, Published
from messaging.supply_chain.messages import Group, Kind
from messaging.supply_chain.topologies import HORIZONTAL, VERTICAL

PAPERS_MIX = {
    HORIZONTAL: {"a": (37.46, 24.66), "b": (12.45, 2.41), "c": (24.55, 49.19), "d": (25.55, 23.74)},
    VERTICAL: {"a": (14.19, 7.19), "b": (5.99, 2.25), "c": (39.09, 61.03), "d": (40.74, 29.52)},
}
"""Table 5, achieved: percent of the messages received, and of their bytes."""
_by_base = partial(Plot, x="base", x_unit="BASE", linear=True)


def _of_groups(ending: str) -> dict[str, str]:
    return {f"{group.value}{ending}": f"group {group.value}" for group in Group}


def _of_kinds(ending: str) -> dict[str, str]:
    return {f"{kind.name}{ending}": kind.value for kind in Kind}


def _of_topology(name: str, mix: int, amount: int, size: int) -> list[Plot]:
    """The paper's figures of a topology, which have these numbers."""
    mine, paper = {"topology": name}, [Published("the paper", "", level=each) for each, _ in PAPERS_MIX[name].values()]
    of_each = "messages/s, sent and received"
    return [
        _by_base(f"{name}, message mix (figure {mix})", "mix", "% of messages", where=mine, beside=paper,
                 series=_of_groups("_percent")),
        _by_base(f"{name}, messages (figure {amount})", "messages", "messages/s", where=mine,
                 series=_of_groups("_per_s")),
        _by_base(f"{name}, traffic (figure {size})", "traffic", "kB/s", where=mine, series=_of_groups("_kb_per_s")),
        _by_base(f"{name}, traffic of each location", "of_each", of_each, where=mine,
                 series=_of_kinds("_messages_per_s")),
    ]  # fmt: skip


PLOTS = (
    _by_base("Messages delivered", "delivered_per_s", "messages/s"),
    _by_base("Delivery, 90 %", "delivery_p90_ms", "ms"),
    _by_base("CPU of the broker", "broker_cores", "cores"),
    _by_base("horizontal, locations (figure 3)", "locations", "locations", where={"topology": HORIZONTAL},
             series=_of_kinds("_locations")),
    *_of_topology(HORIZONTAL, 4, 5, 6),
    *_of_topology(VERTICAL, 7, 8, 9),
)  # fmt: skip
TABLE_4 = {
    "order": 2.34, "orderConf": 2.63, "shipDep": 1.96, "statInfoOrderDC": 0.39, "shipInfo": 2.13, "shipConf": 1.03,
    "callForOffers": 1.93, "offer": 2.50, "pOrder": 2.67, "pOrderConf": 2.86, "invoice": 2.33, "pShipInfo": 1.24,
    "pShipConf": 1.28, "statInfoShipDC": 1.29, "priceUpdate": 0.24, "inventoryInfo": 2.31, "statInfoSM": 5.27,
    "productAnnouncement": 1.26, "creditCardHL": 1.80,
}  # fmt: skip
"""Average sizes, KByte."""
PUBLISHED = (
    *(
        Published(f"{name}, group {group}: % of {what} (table 5)", f"{percents[place]:.2f}",
                  figure=f"{group}{ending}", where={"topology": name})
        for name, mix in PAPERS_MIX.items()
        for place, what, ending in ((0, "messages", "_percent"), (1, "kB", "_kb_percent"))
        for group, percents in mix.items()
    ),
    *(Published(f"{name}: kB on average (table 4)", f"{size:.2f}", figure=f"{name}_kb")
      for name, size in TABLE_4.items()),
)  # fmt: skip
MAKES = (
    Makes("tables 1 to 3", "messages, sizes, interactions", "--plan"),
    Makes("table 4", "average sizes", "--topology vertical,horizontal"),
    Makes("table 5, figures 3 to 9", "mix, messages and traffic by BASE",
          "--topology vertical,horizontal --base 10,20,50"),
)  # fmt: skip
