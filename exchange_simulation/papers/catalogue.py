"""The papers by name, and what each shows, with the commands that make it."""

from __future__ import annotations

from exchange.allowed import meant
from exchange_simulation.launching.errors import UserError
from exchange_simulation.papers import amqp, mrg, request_reply, supply_chain, zeromq
from exchange_simulation.papers.extent import FULL
from exchange_simulation.papers.paper import Absent, Paper, PaperItem

PAPERS = {paper.name: paper for paper in (amqp.PAPER, mrg.PAPER, zeromq.PAPER, request_reply.PAPER, supply_chain.PAPER)}


def paper_of(name: str) -> Paper:
    """Return the paper. UserError if there is none of this name, which may be from a record."""
    if name not in PAPERS:
        raise UserError(f"{name!r} is no paper; there are {', '.join(PAPERS)}{meant(name, list(PAPERS))}")
    return PAPERS[name]


def item_in_words(item: PaperItem) -> str:
    """The item with its differences from the paper. For example: figure 4b: CPU of broker and clients by pairs."""
    differences = f"; {item.differences}" if item.differences else ""
    return f"{item.name}: {item.title}{differences}"


def coverage(paper: Paper) -> list[tuple[str, list[str]]]:
    """Return the paper's commands, each with its items in words; last, under an empty command, what nothing measures.

    An item that nothing measures has the reason in its words.
    """
    rows = [(part.command(FULL), [item_in_words(item) for item in part.items]) for part in paper.parts]
    absent = [
        f"{item_in_words(content.item)}: {content.reason}" for content in paper.contents if isinstance(content, Absent)
    ]
    return [*rows, ("", absent)]
