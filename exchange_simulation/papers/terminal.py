"""A paper's measurement in the terminal: how many claims hold, what contradicts the paper, then every claim."""

from __future__ import annotations

from exchange.json_records import Record
from exchange_simulation.papers.sentences import contradictions, headline, in_readers_order, problems, seen
from exchange_simulation.reports.tables import figure, key, plain_table, terminal, warning, words


def show(record: Record) -> None:
    console = terminal()
    console.print(f"[bold]{record['title']}[/bold]", highlight=False)
    console.print(f"[bold]{headline(record)}[/bold]", highlight=False)
    for sentence in problems(record):
        console.print(warning(sentence))
    for sentence in contradictions(record):
        console.print(f"- {sentence}", highlight=False)
    console.print()
    table = plain_table(key("where"), figure("outcome"), figure("seen"), figure("expected"), words("claim"))
    for claim in in_readers_order(record):
        table.add_row(claim["place"], claim["outcome"], seen(claim), claim["expected"], claim["sentence"])
    console.print(table)
    for caveat in record["caveats"]:
        console.print(warning(caveat))
