"""The words that a user reads: the plan by interaction, message, group and location; what passed; the paper's part.

The figures 3 to 9 of the paper are drawn of our measurements; what its tables 4 and 5 print stands beside ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from exchange.words import counted
from exchange_simulation.messaging.paper import Published, ReproducedItem
from exchange_simulation.messaging.presentation import Plot
from exchange_simulation.messaging.supply_chain.chain import Chain
from exchange_simulation.messaging.supply_chain.messages import INTERACTIONS, AgentKind, Group
from exchange_simulation.messaging.supply_chain.plan import SupplyChainPlan
from exchange_simulation.messaging.supply_chain.topologies import HORIZONTAL, PER_BASE, VERTICAL
from exchange_simulation.reports.formats.numbers import number_text
from exchange_simulation.reports.tables import FoldingTable, key, plain_table, terminal, words
from transports.registry import has_broker

WORDS = {Group.A: "a  topic NP NT ND", Group.B: "b  topic P T D", Group.C: "c  queue NP NT", Group.D: "d  queue P T"}
LABEL = "interactions 5, 6 and 7 only: groups a (PUB/SUB) and c (PUSH/PULL); no broker, and nothing is persistent"
OURS = (
    ("interaction rates", f"{PER_BASE:g} messages/s delivered for each unit of BASE; shares from tables 4 and 5"),
    ("a kilobyte", "1,024 bytes; a message has the size of table 2, with the head of our frames in it"),
    ("sizes", "95, 4 and 1 % in an even sequence, not at random; all messages of an interaction have the same x"),
    ("pace", "each location begins its interactions evenly, and neighbours take turns"),
    ("who serves whom", "supermarket n has centre n modulo the number of centres"),
    ("families", "each supplier offers as many, in changing company; a centre calls for all in turn"),
    ("which offer wins", "that of the supplier whose turn it is, once it has come; the others are only received"),
    ("what causes what", "order: orderConf, shipDep; shipDep: statInfoOrderDC, shipInfo; shipInfo: shipConf; pOrder:"
     " pOrderConf, invoice, pShipInfo; pShipInfo: pShipConf, statInfoShipDC"),
    ("the headquarters", "statistics and invoices go to its instances in turn; each instance begins its share"),
    ("agents", "a process for each location, up to --agents; beyond, locations of a kind share processes"),
    ("P and T", "persistent messages in durable queues; a message is acknowledged once the broker has confirmed all"
     " that was sent because of it: at least once, and a copy would be counted"),
    ("NP and NT", "no acknowledgement, no confirm"),
    ("passed", "counts within 5 % of the plan, or 2 initiations; nothing lost, doubled, or left in a queue;"
     " 90 % of each message delivered within --bound"),
)  # fmt: skip
"""Choices of ours where the paper leaves something open."""
PAPERS_MIX = {
    HORIZONTAL: {"a": (37.46, 24.66), "b": (12.45, 2.41), "c": (24.55, 49.19), "d": (25.55, 23.74)},
    VERTICAL: {"a": (14.19, 7.19), "b": (5.99, 2.25), "c": (39.09, 61.03), "d": (40.74, 29.52)},
}
"""Table 5, achieved: percent of the messages received, and of their bytes."""
_by_base = partial(Plot, x="base", x_unit="BASE", linear=True)


def _of_groups(ending: str) -> dict[str, str]:
    return {f"{group.value}{ending}": f"group {group.value}" for group in Group}


def _of_kinds(ending: str) -> dict[str, str]:
    return {f"{kind.name}{ending}": kind.value for kind in AgentKind}


def _of_topology(name: str, mix: int, amount: int, size: int) -> list[Plot]:
    """The paper's figures of a topology, which have these numbers."""
    mine = {"topology": name}
    paper = [Published("the paper", "", level=each) for each, _ in PAPERS_MIX[name].values()]
    of_each = "messages/s, sent and received"
    return [
        _by_base(
            f"{name}, message mix (figure {mix})",
            "mix",
            "% of messages",
            where=mine,
            published=paper,
            series=_of_groups("_percent"),
        ),
        _by_base(
            f"{name}, messages (figure {amount})", "messages", "messages/s", where=mine, series=_of_groups("_per_s")
        ),
        _by_base(f"{name}, traffic (figure {size})", "traffic", "kB/s", where=mine, series=_of_groups("_kb_per_s")),
        _by_base(
            f"{name}, traffic of each location", "of_each", of_each, where=mine, series=_of_kinds("_messages_per_s")
        ),
    ]


PLOTS = (
    _by_base("Messages delivered", "delivered_per_s", "messages/s"),
    _by_base("Delivery, 90 %", "delivery_p90_ms", "ms"),
    _by_base("CPU of the broker", "broker_cores", "cores"),
    _by_base(
        "horizontal, locations (figure 3)",
        "locations",
        "locations",
        where={"topology": HORIZONTAL},
        series=_of_kinds("_locations"),
    ),
    *_of_topology(HORIZONTAL, 4, 5, 6),
    *_of_topology(VERTICAL, 7, 8, 9),
)
TABLE_4 = {
    "order": 2.34, "orderConf": 2.63, "shipDep": 1.96, "statInfoOrderDC": 0.39, "shipInfo": 2.13, "shipConf": 1.03,
    "callForOffers": 1.93, "offer": 2.50, "pOrder": 2.67, "pOrderConf": 2.86, "invoice": 2.33, "pShipInfo": 1.24,
    "pShipConf": 1.28, "statInfoShipDC": 1.29, "priceUpdate": 0.24, "inventoryInfo": 2.31, "statInfoSM": 5.27,
    "productAnnouncement": 1.26, "creditCardHL": 1.80,
}  # fmt: skip
"""Average sizes, KByte."""
PUBLISHED = (
    *(
        Published(
            f"{name}, group {group}: % of {what} (table 5)",
            f"{percents[place]:.2f}",
            figure=f"{group}{ending}",
            where={"topology": name},
        )
        for name, mix in PAPERS_MIX.items()
        for place, what, ending in ((0, "messages", "_percent"), (1, "kB", "_kb_percent"))
        for group, percents in mix.items()
    ),
    *(
        Published(f"{name}: kB on average (table 4)", f"{size:.2f}", figure=f"{name}_kb")
        for name, size in TABLE_4.items()
    ),
)
MAKES = (
    ReproducedItem("tables 1 to 3", "messages, sizes, interactions", "--plan"),
    ReproducedItem("table 4", "average sizes", "--topology vertical,horizontal"),
    ReproducedItem(
        "table 5, figures 3 to 9", "mix, messages and traffic by BASE", "--topology vertical,horizontal --base 10,20,50"
    ),
)


def print_plan(plan: SupplyChainPlan, head: str) -> None:
    console = terminal()
    topology = plan.topology
    console.print(
        f"{head}: {number_text(plan.received)} messages/s delivered of {number_text(plan.sent)}/s sent, "
        f"{number_text(plan.received_kb)} kB/s"
    )
    locations = ", ".join(f"{topology.locations[kind]} {kind.name}" for kind in AgentKind)
    console.print(f"{locations}; {counted(topology.families, 'product families')}")
    for table in (_interactions(plan), _messages(plan), _groups(plan), _locations(plan), _ours()):
        console.print()
        console.print(table)


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}" if whole else "0"


def _interactions(plan: SupplyChainPlan) -> FoldingTable:
    table = plain_table(
        key(from_right=True), key("interaction"), key("by"), "each/s", "all/s", "sent/s", "received/s", "%"
    )
    for each in plan.topology.interactions:
        interaction = INTERACTIONS[each]
        topology = plan.topology
        table.add_row(
            str(each),
            interaction.about,
            interaction.initiator.name,
            number_text(topology.rates[each]),
            number_text(topology.initiations_per_s(each)),
            *_traffic(plan.of_interaction(each), plan),
        )
    return table


def _traffic(own: SupplyChainPlan, plan: SupplyChainPlan) -> list[str]:
    """Messages sent, and received, a second; percent of all that are received."""
    return [number_text(own.sent), number_text(own.received), _share(own.received, plan.received)]


def _messages(plan: SupplyChainPlan) -> FoldingTable:
    chain = Chain(plan.topology)
    table = plain_table(
        key(from_right=True), key("message"), key("from, to"), key(""), "sent/s", "received/s", "kB", "destinations"
    )
    for flow in plan.flows:
        message = flow.message
        kind = "topics" if message.group.is_published else "queues"
        table.add_row(
            str(message.interaction),
            message.name,
            f"{message.source.name} {message.target.name}",
            message.group.value,
            number_text(flow.sent),
            number_text(flow.received),
            f"{flow.kb:.2f}",
            counted(len(chain.destinations(message)), kind),
        )
    return table


def _groups(plan: SupplyChainPlan) -> FoldingTable:
    paper = PAPERS_MIX.get(plan.topology.name, {})
    table = plain_table(key("group"), "sent/s", "received/s", "%", "paper's", "kB/s", "% of kB", "paper's")
    for group in Group:
        own, (messages, kilobytes) = plan.of_group(group), paper.get(group.value, ("-", "-"))
        table.add_row(
            WORDS[group],
            *_traffic(own, plan),
            f"{messages}",
            number_text(own.received_kb),
            _share(own.received_kb, plan.received_kb),
            f"{kilobytes}",
        )
    return table


def _locations(plan: SupplyChainPlan) -> FoldingTable:
    names = [f"{way} {group.value}" for way in ("sends", "gets") for group in Group]
    table = plain_table(key("each, a second"), *names, gap=1)
    for kind in AgentKind:
        if plan.topology.locations[kind]:
            parts = [plan.of_group(group) for group in Group]
            rates = [*(part.sent_by(kind) for part in parts), *(part.received_by(kind) for part in parts)]
            table.add_row(kind.value, *(number_text(rate) if rate else "-" for rate in rates))
    return table


def _ours() -> FoldingTable:
    table = plain_table(key("ours, where the paper is silent"), words())
    for what, choice in OURS:
        table.add_row(what, choice)
    return table


def by_interaction(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Say what passed; label what ran without a broker; sum up one cell interaction by interaction."""
    passed = [row for row in rows if row["figures"] and not any(repeat["reasons"] for repeat in row["repeats"])]
    if passed and "lost_not_persistent" in passed[0]["figures"]:
        yield "passed: nothing persistent was lost when the broker was restarted; NP lost were not persistent"
    elif passed:
        yield f"passed, {len(passed)} of {len(rows)}: {'; '.join(row['words'] for row in passed)}"
    for row in rows:
        if not has_broker(row["transport"]):
            yield f"{row['words']}: {LABEL}"
    if passed:
        yield "mix and average sizes: on the page, beside the paper's tables 4 and 5"
    for row in rows if len(rows) == 1 else ():
        yield from _each_interaction({name: estimate["median"] for name, estimate in row["figures"].items()})


def _each_interaction(found: Mapping[str, float]) -> Iterator[str]:
    for each, interaction in INTERACTIONS.items():
        name = f"interaction_{each}"
        if f"{name}_per_s" in found:
            p90_ms = found.get(f"{name}_p90_ms")
            ended = "none ended within the measured time"
            if p90_ms is not None:
                ended = f"90 % ended within {number_text(p90_ms)} ms of due"
            yield (
                f"interaction {each}, {interaction.about}: {number_text(found[f'{name}_per_s'])} messages/s, "
                f"{found[f'{name}_off_plan_percent']:+.2f} % off the plan; {ended}"
            )
