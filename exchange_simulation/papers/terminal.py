"""A paper's measurement in the terminal: how many claims hold; the claims, first those that contradict the paper."""

from __future__ import annotations

from rich.text import Text

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.launching.record.noise_summary import noise_banner
from exchange_simulation.messaging.measurements import MEASUREMENTS
from exchange_simulation.papers.claims import DOES_NOT_HOLD, NOT_MEASURED
from exchange_simulation.papers.sentences import headline, in_readers_order, outcome_in_words, problems, seen
from exchange_simulation.reports.tables import indented, terminal, warning


def show(record: Record) -> None:
    console = terminal()
    console.print(f"[bold]{record['title']}[/bold]", highlight=False)
    console.print(f"[bold]{headline(record)}[/bold]", highlight=False)
    noise = noise_banner(record, MEASUREMENTS)
    if noise:
        console.print(Text(noise, "bold red"))
    for sentence in problems(record):
        console.print(warning(sentence))
    measured = [claim for claim in in_readers_order(record) if claim["why"] != NOT_MEASURED]
    for outcome, claims in grouped(measured, outcome_in_words).items():
        console.print(f"\n[bold]{outcome}[/bold]")
        for claim in claims:
            console.print(indented(claim_line(claim)))
    unmeasured = len(record["claims"]) - len(measured)
    if unmeasured:
        console.print(f"\nnot measured: {counted(unmeasured, 'claims')}")
    for caveat in record["caveats"]:
        console.print(warning(caveat))


def claim_line(claim: Record) -> str:
    """A claim in a line.

    For example: Its packets are larger on average, at 8,000 orders/s (table 1). Seen 1.9 (1.7 to 2.1), expected at
    least 1: mean bytes of a packet at 8,000 orders/s with Nagle over without
    """
    sentence = f"{claim['sentence'].removesuffix('.')} ({claim['place']})."
    line = f"{sentence} Seen {seen(claim)}, expected {claim['expected']}: {claim['statistic']}"
    if claim.get("by_construction"):
        line += "; by construction: it tests that the plan was delivered"
    if claim["of_hardware"] and claim["outcome"] == DOES_NOT_HOLD:
        line += "; this claim is about the paper's hardware"
    return line
