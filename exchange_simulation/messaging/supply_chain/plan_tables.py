"""`exchange bench supply-chain --plan`: the planned traffic by interaction, message, group and location, as tables."""

from __future__ import annotations

from exchange.words import counted
from exchange_simulation.messaging.supply_chain.chain import Chain
from exchange_simulation.messaging.supply_chain.messages import (
    INTERACTIONS,
    PROBABILITIES,
    AgentKind,
    Group,
    mean_kb,
    sizes_kb,
)
from exchange_simulation.messaging.supply_chain.paper_figures import PAPERS_MIX
from exchange_simulation.messaging.supply_chain.plan import SupplyChainPlan
from exchange_simulation.messaging.supply_chain.topologies import PER_BASE
from exchange_simulation.reports.formats.numbers import number_text
from exchange_simulation.reports.tables import FoldingTable, key_column, plain_table, terminal, words_column

GROUP_IN_WORDS = {
    Group.A: "a  topic NP NT ND",
    Group.B: "b  topic P T D",
    Group.C: "c  queue NP NT",
    Group.D: "d  queue P T",
}
OUR_CHOICES = (
    ("interaction rates", f"{PER_BASE:g} messages/s delivered for each unit of BASE; shares from tables 4 and 5"),
    ("a kilobyte", "1,024 bytes; a message has the size of table 2, with the head of our frames in it"),
    ("sizes", "95, 4 and 1 % in an even sequence, not at random; all messages of an interaction have the same x; the"
     " values of x, and five cash desks in statInfoSM (m1 and b hold them), follow from table 4"),
    ("table 5", "counts receipts: a message to four subscribers counts four times"),
    ("a misprint", "equation 3.1a has interaction 5 in group d; the text, tables 1, 5 and 3.1b have group c, as here"),
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
"""Our choices where the paper leaves something open: the subject, and the choice."""


def print_plan(plan: SupplyChainPlan, title: str) -> None:
    """Print a plan and our choices."""
    console = terminal()
    topology = plan.topology
    console.print(
        f"{title}: {number_text(plan.received)} messages/s delivered of {number_text(plan.sent)}/s sent, "
        f"{number_text(plan.received_kb)} kB/s"
    )
    locations = ", ".join(f"{topology.locations[kind]} {kind.name}" for kind in AgentKind)
    console.print(f"{locations}; {counted(topology.families, 'product families')}")
    for table in (
        _interactions(plan),
        _messages(plan),
        _sizes(plan),
        _groups(plan),
        _locations(plan),
        _our_choices(),
    ):
        console.print()
        console.print(table)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}" if whole else "0"


def _interactions(plan: SupplyChainPlan) -> FoldingTable:
    table = plain_table(
        key_column(from_right=True),
        key_column("interaction"),
        key_column("by"),
        "each/s",
        "all/s",
        "sent/s",
        "received/s",
        "%",
    )
    topology = plan.topology
    for number in topology.interactions:
        interaction = INTERACTIONS[number]
        table.add_row(
            str(number),
            interaction.about,
            interaction.initiator.name,
            number_text(topology.rates[number]),
            number_text(topology.initiations_per_s(number)),
            *_traffic(plan.of_interaction(number), plan),
        )
    return table


def _traffic(part: SupplyChainPlan, plan: SupplyChainPlan) -> list[str]:
    """The cells of a part of the plan: messages sent and received a second, and their share in % of all received."""
    return [number_text(part.sent), number_text(part.received), _percent(part.received, plan.received)]


def _messages(plan: SupplyChainPlan) -> FoldingTable:
    chain = Chain(plan.topology)
    table = plain_table(
        key_column(from_right=True),
        key_column("message"),
        key_column("from, to"),
        key_column(""),
        "sent/s",
        "received/s",
        "kB",
        "destinations",
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


def _sizes(plan: SupplyChainPlan) -> FoldingTable:
    """Tables 2 and 4: the parameters of each message's size, its three sizes with their chances, and their average."""
    chances = [f"{share:.0%}" for share in PROBABILITIES]
    table = plain_table(key_column("size, m1 x + b, kB"), "m1", "b", "x", *chances, "average")
    for flow in plan.flows:
        message = flow.message
        x = INTERACTIONS[message.interaction].x
        table.add_row(
            message.name,
            "-" if message.sizes else f"{message.m1:.4f}",
            "-" if message.sizes else f"{message.b:.4f}",
            "-" if message.sizes or not any(x) else ", ".join(f"{value:,}" for value in x),
            *(f"{size:.2f}" for size in sizes_kb(message)),
            f"{mean_kb(message):.2f}",
        )
    return table


def _groups(plan: SupplyChainPlan) -> FoldingTable:
    paper_mix = PAPERS_MIX.get(plan.topology.name, {})
    table = plain_table(key_column("group"), "sent/s", "received/s", "%", "paper's", "kB/s", "% of kB", "paper's")
    for group in Group:
        part = plan.of_group(group)
        share = paper_mix.get(group.value)
        table.add_row(
            GROUP_IN_WORDS[group],
            *_traffic(part, plan),
            str(share.messages) if share else "-",
            number_text(part.received_kb),
            _percent(part.received_kb, plan.received_kb),
            str(share.kilobytes) if share else "-",
        )
    return table


def _locations(plan: SupplyChainPlan) -> FoldingTable:
    sent_titles = [f"sends {group.value}" for group in Group]
    received_titles = [f"gets {group.value}" for group in Group]
    table = plain_table(key_column("each, a second"), *sent_titles, *received_titles, gap=1)
    for kind in AgentKind:
        if plan.topology.locations[kind]:
            parts = [plan.of_group(group) for group in Group]
            rates = [*(part.sent_by(kind) for part in parts), *(part.received_by(kind) for part in parts)]
            table.add_row(kind.value, *(number_text(rate) if rate else "-" for rate in rates))
    return table


def _our_choices() -> FoldingTable:
    table = plain_table(key_column("ours, where the paper is silent"), words_column())
    for subject, choice in OUR_CHOICES:
        table.add_row(subject, choice)
    return table
