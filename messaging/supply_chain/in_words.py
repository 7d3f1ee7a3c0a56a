"""The plan as a user reads it: how much flows in all, by interaction, message, group and location. What passed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from exchange.words import counted
from messaging.supply_chain.chain import Chain
from messaging.supply_chain.messages import INTERACTIONS, Group, Kind
from messaging.supply_chain.paper import PAPERS_MIX
from messaging.supply_chain.plan import Plan
from messaging.supply_chain.topologies import PER_BASE
from reports.formats import number
from reports.tables import FoldingTable, key, plain_table, terminal, words
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
"""What the paper leaves open, and what we chose."""


def print_plan(plan: Plan, head: str) -> None:
    console, topology = terminal(), plan.topology
    console.print(
        f"{head}: {number(plan.received)} messages/s delivered of {number(plan.sent)}/s sent, "
        f"{number(plan.received_kb)} kB/s"
    )
    many = ", ".join(f"{topology.locations[kind]} {kind.name}" for kind in Kind)
    console.print(f"{many}; {counted(topology.families, 'product families')}")
    for table in (_interactions(plan), _messages(plan), _groups(plan), _locations(plan), _ours()):
        console.print()
        console.print(table)


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}" if whole else "0"


def _interactions(plan: Plan) -> FoldingTable:
    table = plain_table(key(from_right=True), key("interaction"), key("by"), "each/s", "all/s", "sent/s",
                        "received/s", "%")  # fmt: skip
    for each in plan.topology.interactions:
        interaction, topology = INTERACTIONS[each], plan.topology
        table.add_row(
            str(each), interaction.about, interaction.initiator.name, number(topology.rates[each]),
            number(topology.initiations_per_s(each)), *_traffic(plan.of_interaction(each), plan),
        )  # fmt: skip
    return table


def _traffic(own: Plan, plan: Plan) -> list[str]:
    """Messages sent, and received, a second; percent of all that are received."""
    return [number(own.sent), number(own.received), _share(own.received, plan.received)]


def _messages(plan: Plan) -> FoldingTable:
    chain = Chain(plan.topology)
    table = plain_table(key(from_right=True), key("message"), key("from, to"), key(""), "sent/s", "received/s",
                        "kB", "destinations")  # fmt: skip
    for flow in plan.flows:
        message = flow.message
        kind = "topics" if message.group.is_published else "queues"
        table.add_row(
            str(message.interaction), message.name, f"{message.source.name} {message.target.name}", message.group.value,
            number(flow.sent), number(flow.received), f"{flow.kb:.2f}",
            counted(len(chain.destinations(message)), kind),
        )  # fmt: skip
    return table


def _groups(plan: Plan) -> FoldingTable:
    paper = PAPERS_MIX.get(plan.topology.name, {})
    table = plain_table(key("group"), "sent/s", "received/s", "%", "paper's", "kB/s", "% of kB", "paper's")
    for group in Group:
        own, (messages, kilobytes) = plan.of_group(group), paper.get(group.value, ("-", "-"))
        table.add_row(
            WORDS[group], *_traffic(own, plan), f"{messages}", number(own.received_kb),
            _share(own.received_kb, plan.received_kb), f"{kilobytes}",
        )  # fmt: skip
    return table


def _locations(plan: Plan) -> FoldingTable:
    names = [f"{way} {group.value}" for way in ("sends", "gets") for group in Group]
    table = plain_table(key("each, a second"), *names, gap=1)
    for kind in Kind:
        if plan.topology.locations[kind]:
            parts = [plan.of_group(group) for group in Group]
            rates = [*(part.sent_by(kind) for part in parts), *(part.received_by(kind) for part in parts)]
            table.add_row(kind.value, *(number(rate) if rate else "-" for rate in rates))
    return table


def _ours() -> FoldingTable:
    table = plain_table(key("ours, where the paper is silent"), words())
    for what, choice in OURS:
        table.add_row(what, choice)
    return table


def by_interaction(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Say what passed; label what ran without a broker; sum up one cell interaction by interaction."""
    passed = [row for row in rows if row["figures"]]
    if passed and "lost_not_persistent" in passed[0]["figures"]:
        yield "passed: nothing persistent was lost when the broker was restarted; NP lost promised nothing"
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
                ended = f"90 % ended within {number(p90_ms)} ms of due"
            yield (
                f"interaction {each}, {interaction.about}: {number(found[f'{name}_per_s'])} messages/s, "
                f"{found[f'{name}_off_plan_percent']:+.2f} % off the plan; {ended}"
            )
