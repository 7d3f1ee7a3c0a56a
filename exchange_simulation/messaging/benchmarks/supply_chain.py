"""The supply chain: seven interactions between headquarters, distribution centres, supermarkets and suppliers.

    supplier   ◀── calls for offers [topics] ──   centre    ◀── orders ──   supermarket
               ── offers, invoices, shipments ──▶           ── goods ──▶
    headquarters  ── prices, products, hot lists [topics] ──▶ supermarket;   ◀── statistics, invoices ── all others

Every location begins its interactions at the times of a fixed plan, whether or not earlier ones have ended.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.option_types import OneOf, Seconds
from exchange_simulation.launching.options import refused_parameter
from exchange_simulation.messaging.benchmark import BenchmarkDefinition, CapacityScale
from exchange_simulation.messaging.cell import Cell, Figures, Results
from exchange_simulation.messaging.options import SAMPLE_SECONDS, EachOnce, numbers_option
from exchange_simulation.messaging.point import LOCAL, Point, Settings
from exchange_simulation.messaging.presentation import Column
from exchange_simulation.messaging.roles import Links, Role, check_descriptors
from exchange_simulation.messaging.supply_chain.chain import Chain, ChainTimes
from exchange_simulation.messaging.supply_chain.deployment import (
    BROKERLESS,
    MOST_AGENTS,
    descriptors_of_broker,
    restarting,
    roles_of,
)
from exchange_simulation.messaging.supply_chain.interaction_rows import INTERACTIONS_PLOT, interaction_rows
from exchange_simulation.messaging.supply_chain.judging import (
    figures_of,
    losses_of,
    strain_of,
    wrong_with,
    wrong_with_restarted,
)
from exchange_simulation.messaging.supply_chain.messages import INTERACTIONS, Group
from exchange_simulation.messaging.supply_chain.paper_figures import PLOTS, PUBLISHED
from exchange_simulation.messaging.supply_chain.plan import SupplyChainPlan
from exchange_simulation.messaging.supply_chain.plan_tables import print_plan
from exchange_simulation.messaging.supply_chain.summary import summary_sentences
from exchange_simulation.messaging.supply_chain.topologies import FREEFORM, TOPOLOGIES, VERTICAL, Topology, topology_of
from transports.base import Pattern
from transports.registry import has_broker

MOST_BASE = 1000
"""The highest value of `--base`."""
NO_RATE = refused_parameter(
    "--rate",
    "the interactions of a supply chain begin at the rates of its plan, whether or not earlier ones have ended: "
    "scale them with --base, or give rates in --config with --topology freeform",
)
OPTIONS = (
    click.Option(
        ["--topology"],
        type=EachOnce(OneOf(TOPOLOGIES)),
        default=VERTICAL,
        show_default=True,
        help="vertical: more traffic; horizontal: more locations; freeform: as --config says.",
    ),
    numbers_option(
        "--base",
        noun="bases",
        most=MOST_BASE,
        default="10",
        metavar="B[,...]",
        help="The scale: each unit stands for 20 messages delivered a second.",
    ),
    click.Option(
        ["--interactions"],
        type=EachOnce(OneOf([str(number) for number in INTERACTIONS])),
        default=",".join(map(str, INTERACTIONS)),
        show_default=True,
        help="The numbers of the interactions that take place.",
    ),
    click.Option(
        ["--config"],
        type=click.Path(),
        metavar="FILE.toml",
        help="Locations, families, rates, sizes and persistence, with --topology freeform.",
    ),
    click.Option(["--warm-up", "warm_up_s"], type=Seconds(0, 3600), default=2.0, show_default=True, help="Seconds."),
    click.Option(
        ["--duration", "duration_s"],
        type=SAMPLE_SECONDS,
        default=20.0,
        show_default=True,
        help="Seconds that are measured.",
    ),
    click.Option(
        ["--drain", "drain_s"],
        type=SAMPLE_SECONDS,
        default=10.0,
        show_default=True,
        help="The longest time to wait for late messages after --duration, in seconds.",
    ),
    click.Option(
        ["--bound", "bound_s"],
        type=SAMPLE_SECONDS,
        default=0.5,
        show_default=True,
        help="The seconds within which 90 % of the deliveries of each message must come.",
    ),
    click.Option(
        ["--agents"],
        type=click.IntRange(4, 200),
        default=MOST_AGENTS,
        show_default=True,
        help="The largest number of processes; locations of a kind share them.",
    ),
    click.Option(
        ["--restart-after", "restart_after_s"],
        type=SAMPLE_SECONDS,
        help="Restart the private broker after this many measured seconds; then only losses are judged.",
    ),
    NO_RATE,
    click.Option(["--plan"], is_flag=True, help="Print what will flow, and measure nothing."),
)


def points(settings: Settings) -> list[Point]:
    """A point for each topology with each base. UserError for an impossible workload."""
    restart_after_s = settings.get("restart_after_s")
    duration_s = settings["duration_s"]
    if restart_after_s is not None and restart_after_s >= duration_s:
        raise UserError(
            f"--restart-after is {restart_after_s:g}; it takes less than --duration, which is {duration_s:g}"
        )
    planned_points: list[Point] = []
    for name in settings["topology"]:
        bases = (1,) if name == FREEFORM else settings["base"]
        planned_points += [{"topology": name, "base": base} for base in bases]
    for point in planned_points:
        topology = _topology(point, settings)
        SupplyChainPlan.of(topology)
        if any(map(has_broker, settings["transport"])):
            needed = descriptors_of_broker(Chain(topology), settings["agents"])
            check_descriptors(needed, f"the broker needs {needed:,} descriptors for queues and connections")
    return planned_points


def _topology(point: Point, settings: Settings) -> Topology:
    interactions = set(map(int, settings["interactions"]))
    return topology_of(point["topology"], point["base"], settings.get("config"), interactions)


def chain_of(cell: Cell) -> Chain:
    """The chain of a cell; without a broker it has only the interactions that need none."""
    topology = _topology(cell.point, cell.settings)
    return Chain(topology if cell.has_broker else topology.only(BROKERLESS))


def times_of(settings: Settings) -> ChainTimes:
    return ChainTimes(settings["warm_up_s"], settings["duration_s"], settings["drain_s"])


def why_unsupported(cell: Cell) -> str | None:
    """Return why the cell cannot be measured, as a sentence; None if it can be."""
    if cell.settings.get("hosts"):
        return f"--hosts is {cell.settings['hosts']}, and its locations talk with each other on this host: leave it out"
    if not cell.has_broker and not chain_of(cell).topology.interactions:
        return "nothing is persistent or durable without a broker: --interactions 5,6,7 need neither"
    if not cell.has_broker and any(message.group.is_assured for message in chain_of(cell).topology.messages):
        return "nothing is persistent without a broker: leave the messages of interactions 5 to 7 out of [persistent]"
    if not cell.has_broker and cell.network != LOCAL:
        return "its locations share a host of the network, so nothing would cross it without a broker"
    return None


def restarts_broker(cell: Cell) -> bool:
    return cell.settings.get("restart_after_s") is not None


def roles(cell: Cell, links: Links) -> list[Role]:
    return roles_of(chain_of(cell), times_of(cell.settings), links, cell.settings["agents"], restarts_broker(cell))


def judge(cell: Cell, results: Results) -> list[str]:
    """Return the reasons for which the results are invalid, as sentences; empty if there are none."""
    chain = chain_of(cell)
    times = times_of(cell.settings)
    if restarts_broker(cell):
        return wrong_with_restarted(chain, times, results)
    return wrong_with(chain, times, cell.settings["bound_s"], results)


def figures(cell: Cell, results: Results) -> Figures:
    losses = losses_of(chain_of(cell), results) if restarts_broker(cell) else {}
    return {**figures_of(chain_of(cell), times_of(cell.settings), results), **losses}


def patterns(cell: Cell) -> Sequence[Pattern]:
    return (Pattern.ROUTED,) if cell.has_broker else (Pattern.QUEUE, Pattern.FANOUT)


def print_plans(settings: Settings) -> bool:
    """Print the plan of each point if the user gave `--plan`. Returns whether it printed."""
    if not settings["plan"]:
        return False
    for point in points(settings):
        title = f"supply chain, {point['topology']}"
        if point["topology"] != FREEFORM:
            title += f", base {point['base']}"
        print_plan(SupplyChainPlan.of(_topology(point, settings)), title)
    return True


def _group_columns() -> list[Column]:
    """A column with the share of each group of messages; the first one's title says what the columns are."""
    columns: list[Column] = []
    for group in Group:
        title = f"{group.value} %" if columns else f"groups: {group.value} %"
        columns.append(Column(f"{group.value}_percent", title))
    return columns


BENCHMARK = BenchmarkDefinition(
    about="a supermarket company's supply chain: seven interactions at planned rates, judged",
    paper="Sachs, Kounev, Bacon and Buchmann, a supply chain workload, tables 1 to 5, figures 3 to 9",
    points=points,
    roles=roles,
    judge=judge,
    figures=figures,
    columns=(
        Column("delivered_per_s", "delivered/s", with_interval=True),
        Column("off_plan_percent", "% off plan"),
        Column("kb_per_s", "kB/s"),
        Column("lost_not_persistent", "NP lost"),
        Column("redelivered", "redelivered"),
        Column("delivery_p50_ms", "p50 ms"),
        Column("delivery_p90_ms", "p90 ms"),
        Column("delivery_p99_ms", "p99 ms"),
        Column("lag_p99_ms", "lag p99 ms"),
        *_group_columns(),
    ),
    plots=(INTERACTIONS_PLOT, *PLOTS),
    derived_rows=interaction_rows,
    published=PUBLISHED,
    options=OPTIONS,
    transports="amqp",
    summary_sentences=lambda rows: list(summary_sentences(rows)),
    why_unsupported=why_unsupported,
    patterns=patterns,
    around_roles=restarting,
    run_without_measuring=print_plans,
    scale=CapacityScale(
        option="base",
        start=10,
        highest=MOST_BASE,
        ceiling_in_words="the highest base that the plan allows",
        objective=lambda settings: f"its plan with p90 <= {settings['bound_s']:g} s",
        strain=lambda cell, results: strain_of(cell.settings["bound_s"], results),
        columns=("delivered_per_s", "delivery_p90_ms", "lag_p99_ms", "broker_cores"),
    ),
    repeats=1,
    quick_values={"repeats": 1, "warm_up_s": 3.0, "duration_s": 5.0},
    quick_help="A warm-up of 3 s, then 5 s measured: to see how it looks.",
    options_left_out={"delivery"},  # each group of messages has its own
)
