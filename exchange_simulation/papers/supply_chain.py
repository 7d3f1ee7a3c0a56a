"""The workload characterization of a supermarket company's supply chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from exchange_simulation.messaging.supply_chain.paper_figures import PAPERS_MIX, TABLE_4
from exchange_simulation.messaging.supply_chain.plan_tables import OUR_CHOICES
from exchange_simulation.messaging.supply_chain.topologies import HORIZONTAL, VERTICAL
from exchange_simulation.papers.claims import Claim
from exchange_simulation.papers.paper import Absent, BenchPart, Paper, PaperItem
from exchange_simulation.papers.statistics import (
    Read,
    constant,
    figure_at,
    figure_at_highest,
    if_as_long_as,
    quotient,
    ratio,
    scaled,
    sum_of,
    undisturbed,
)

CHAIN = "chain"
LOW_BASE = 10
HIGH_BASE = 20
WITHIN = 0.05
"""Shares and counts are the paper's if they are within this part of them."""
SIZES_WITHIN = 0.1
"""The same of bytes, of which a few large messages decide."""

LEAST_S = 100.0
"""A shorter run has too few messages of the largest size, 1 % of all, for shares of bytes."""
TOO_FEW_LARGE = "too few messages of the largest size came in this time"

PARTS = (
    BenchPart(
        name=CHAIN,
        benchmark="supply-chain",
        items=(
            PaperItem(
                "tables 1 to 3",
                "message types, parameters of sizes, groups",
                "--plan prints them, but no JMS types of bodies; m2, for five cash desks, is part of m1",
            ),
            PaperItem("equations 3.1a, 3.1b", "messages and traffic", "--plan prints what they give"),
            PaperItem(
                "table 4",
                "the three sizes of each message, and averages",
                "sizes are those of the plan, averages those of the messages that came",
                quick="10 seconds have few messages of the third size, which is 1 % of all, so averages lie lower",
            ),
            PaperItem(
                "table 5, figures 3 to 9",
                "mix, messages and traffic by BASE",
                quick="shares of bandwidth lack the largest messages, as averages do",
            ),
        ),
        full="--transport amqp --topology vertical,horizontal --base 10,20,50 --duration 300",
        quick="--transport amqp --topology vertical,horizontal --base 10,20 --warm-up 1 --duration 10 --drain 5",
    ),
)


def _planned(figure: str, **point: Any) -> Read:
    """Read a figure that the plan gives, a count of messages or of their bytes: other work does not change it."""
    return undisturbed(figure_at(figure, **point))


def _planned_at_highest_base(figure: str, topology: str) -> Read:
    """Read the same at the highest BASE that was measured: 20 in the short form, 50 in full."""
    return undisturbed(figure_at_highest("base", figure, above=LOW_BASE, topology=topology))


def _share_claims(topology: str) -> Iterator[Claim]:
    """Table 5: each group's share of messages, and that this share does not change with BASE."""
    for group, share in PAPERS_MIX[topology].items():
        figure = f"{group}_percent"
        here = _planned(figure, topology=topology, base=LOW_BASE)
        yield Claim(
            "table 5",
            f"Group {group} has {share.messages:.2f} % of the messages in the {topology} topology.",
            ratio(
                f"% of messages of group {group}, {topology}, over the paper's", CHAIN, here, constant(share.messages)
            ),
            at_least=1 - WITHIN,
            at_most=1 + WITHIN,
            by_construction=True,
        )
        yield Claim(
            "3.2, figures 5, 6" if topology == HORIZONTAL else "3.3, figures 8, 9",
            f"The share of group {group} does not change with BASE in the {topology} topology.",
            ratio(
                f"% of messages of group {group}, {topology}, highest BASE over {LOW_BASE}",
                CHAIN,
                _planned_at_highest_base(figure, topology),
                here,
            ),
            at_least=1 - WITHIN,
            at_most=1 + WITHIN,
            by_construction=True,
        )


def _growth_claims() -> Iterator[Claim]:
    """Messages and traffic grow with BASE, in both topologies."""
    for topology, figure, traffic_figure in ((HORIZONTAL, "figure 5", "figure 6"), (VERTICAL, "figure 8", "figure 9")):
        yield Claim(
            traffic_figure,
            f"Twice the BASE doubles the bandwidth in the {topology} topology.",
            ratio(
                f"kB/s, {topology}, BASE {HIGH_BASE} over twice those of {LOW_BASE}",
                CHAIN,
                _planned("kb_per_s", topology=topology, base=HIGH_BASE),
                scaled(_planned("kb_per_s", topology=topology, base=LOW_BASE), 2.0),
            ),
            at_least=1 - SIZES_WITHIN,
            at_most=1 + SIZES_WITHIN,
            by_construction=True,
        )
        yield Claim(
            figure,
            f"Twice the BASE doubles the messages in the {topology} topology.",
            ratio(
                f"messages/s, {topology}, BASE {HIGH_BASE} over twice those of {LOW_BASE}",
                CHAIN,
                _planned("delivered_per_s", topology=topology, base=HIGH_BASE),
                scaled(_planned("delivered_per_s", topology=topology, base=LOW_BASE), 2.0),
            ),
            at_least=1 - WITHIN,
            at_most=1 + WITHIN,
            by_construction=True,
        )
    yield Claim(
        "3.2",
        "In the horizontal topology the traffic of a supermarket stays the same.",
        ratio(
            f"messages/s of a supermarket, highest BASE over {LOW_BASE}",
            CHAIN,
            _planned_at_highest_base("SM_messages_per_s", HORIZONTAL),
            _planned("SM_messages_per_s", topology=HORIZONTAL, base=LOW_BASE),
        ),
        at_least=1 - WITHIN,
        at_most=1 + WITHIN,
        by_construction=True,
    )


def _style_claims() -> Iterator[Claim]:
    """Shares and sizes of the two styles of messaging: groups a and b publish and subscribe, c and d are queues."""
    for topology, place, percent in ((HORIZONTAL, "3.2", 50.0), (VERTICAL, "3.3", 80.0)):
        yield Claim(
            place,
            f"Point-to-point messages are {percent:.0f} % of all in the {topology} topology.",
            ratio(
                f"% of messages of groups c and d, {topology}, over {percent:.0f}",
                CHAIN,
                _of_groups("cd", "percent", topology),
                constant(percent),
            ),
            at_least=1 - WITHIN,
            at_most=1 + WITHIN,
            by_construction=True,
        )
    for groups, of_groups, style, percent in (
        ("d", "cd", "point-to-point", 50.0),
        ("b", "ab", "publish/subscribe", 25.0),
    ):
        yield Claim(
            "3.2",
            f"Of {style} messages {percent:.0f} % are persistent, the target for the {HORIZONTAL} topology.",
            ratio(
                f"% of groups {' and '.join(of_groups)} that is group {groups}, {HORIZONTAL}, over {percent:.0f}",
                CHAIN,
                scaled(
                    quotient(_of_groups(groups, "per_s", HORIZONTAL), _of_groups(of_groups, "per_s", HORIZONTAL)), 100.0
                ),
                constant(percent),
            ),
            at_least=1 - WITHIN,
            at_most=1 + WITHIN,
            by_construction=True,
        )
    yield Claim(
        "3.2, table 4",
        "Messages that are published to subscribers are generally much smaller than those of point-to-point.",
        ratio(
            f"kB of a message of groups a and b over one of c and d, {HORIZONTAL}",
            CHAIN,
            quotient(_of_groups("ab", "kb_per_s", HORIZONTAL), _of_groups("ab", "per_s", HORIZONTAL)),
            quotient(_of_groups("cd", "kb_per_s", HORIZONTAL), _of_groups("cd", "per_s", HORIZONTAL)),
        ),
        at_most=0.5,
        by_construction=True,
    )


def _of_groups(groups: str, ending: str, topology: str) -> Read:
    """The sum of a figure over groups, at the higher BASE."""
    return sum_of(*(_planned(f"{group}_{ending}", topology=topology, base=HIGH_BASE) for group in groups))


def _traffic_claims() -> Iterator[Claim]:
    """Table 5: each group's share of the bandwidth; table 4: statistics of sales, which are the largest messages."""
    for topology in (HORIZONTAL, VERTICAL):
        for group, share in PAPERS_MIX[topology].items():
            yield Claim(
                "table 5",
                f"Group {group} uses {share.kilobytes:.2f} % of the bandwidth in the {topology} topology.",
                ratio(
                    f"% of kB of group {group}, {topology}, over the paper's",
                    CHAIN,
                    if_as_long_as(
                        LEAST_S, _planned(f"{group}_kb_percent", topology=topology, base=HIGH_BASE), TOO_FEW_LARGE
                    ),
                    constant(share.kilobytes),
                ),
                at_least=1 - SIZES_WITHIN,
                at_most=1 + SIZES_WITHIN,
                by_construction=True,
            )
    size = TABLE_4["statInfoSM"]
    yield Claim(
        "table 4",
        f"A message of sales statistics has {size:.2f} kB on average.",
        ratio(
            "kB of statInfoSM over the paper's",
            CHAIN,
            _planned("statInfoSM_kb", topology=VERTICAL, base=HIGH_BASE),
            constant(size),
        ),
        at_least=1 - SIZES_WITHIN,
        at_most=1 + SIZES_WITHIN,
        by_construction=True,
    )


PAPER = Paper(
    name="supply-chain",
    title="Sachs, Kounev, Bacon and Buchmann: the workload of a supermarket company's supply chain",
    citation=(
        "Kai Sachs, Samuel Kounev, Jean Bacon, Alejandro Buchmann: Workload Characterization of the SPECjms2007 "
        "Benchmark. European Performance Engineering Workshop, 2007."
    ),
    contents=(
        *PARTS,
        Absent(PaperItem("figures 1, 2", "drawings of interactions 1 and 2"), "drawn in docs/supply-chain.md"),
        Absent(
            PaperItem("event handlers", "several handlers of one location's messages, in parallel"),
            "a location here is one loop; --agents says how many processes share the locations",
        ),
        Absent(
            PaperItem("section 2.4, freeform", "a workload of one's own choice"),
            "--topology freeform takes it from a file; the paper has no figures of one",
        ),
        Absent(
            PaperItem("section 2.2, JMS", "types of bodies, and a second server"),
            "messages here are AMQP's, of one kind of body, through one broker",
        ),
        Absent(
            PaperItem("complete hot list", "a hot list of all cards once an hour"), "runs here are shorter than an hour"
        ),
    ),
    claims=(
        *_share_claims(HORIZONTAL),
        *_share_claims(VERTICAL),
        *_growth_claims(),
        *_style_claims(),
        *_traffic_claims(),
    ),
    open_questions=(
        "Every sentence is marked: rates and sizes were recovered from tables 2, 4 and 5 and scaled by the paper's "
        "rules, so the sentences test that the plan was delivered. Other work cannot change these counts.",
        "The paper prints no rates: figures 5, 6, 8 and 9 show proportions, and the scale of their axes is ours.",
        "In the horizontal topology the traffic of a location stays the same but for the headquarters: by the paper's "
        "equations an instance has more with every supermarket, until there is one instance more.",
        "x and the number of cash desks are not printed: ours are recovered from table 4's sizes. Its chances of 95, 4 "
        "and 1 % are the paper's, but it says no sizes of statInfoSM beyond a range: 2, 7 and 13 lines are ours.",
        "The sizes of table 4 are up to 0.03 kB off those of table 2, whose parameters are rounded.",
        "The text of 3.2 and 3.3 says table 4 for table 5, and Interaction 4 for 3 of priceUpdate.",
        "priceUpdate has 0.24 kB in table 4, and 0.23 by table 2 and here. So group b has less bandwidth here than in "
        "table 5, which goes with 0.24. productAnnouncement's size 2 is below its size 1.",
        *(f"Ours, {subject}: {choice}." for subject, choice in OUR_CHOICES),
    ),
    notice=(
        "This is a workload after the paper's description: no figure of it is a result of that standard, or comparable "
        "with one."
    ),
)
