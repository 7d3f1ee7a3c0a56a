"""A paper's page, `paper.html`: its claims with what was seen, then its figures and tables in its own order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.launching.record.noise import MOST_SHARE
from exchange_simulation.launching.record.noise_summary import noise_banner
from exchange_simulation.messaging.measurements import MEASUREMENTS
from exchange_simulation.papers.beside_ours import NOT_PRINTED, BesideOurs
from exchange_simulation.papers.extent import Extent, recorded_extent
from exchange_simulation.papers.paper import Absent, Paper, PaperItem, PaperPart
from exchange_simulation.papers.paper_folder import paper_in, read_parts
from exchange_simulation.papers.sentences import (
    contradictions,
    headline,
    in_readers_order,
    outcome_in_words,
    problems,
    seen,
)
from exchange_simulation.repeats.judging import ALPHA
from exchange_simulation.repeats.sign_flips import repeats_needed
from exchange_simulation.reports.drawing.figures import Drawing
from exchange_simulation.reports.drawing.templates import templates
from exchange_simulation.reports.report import write_html

TEMPLATES = templates(Path(__file__).parent, seen=seen, outcome_in_words=outcome_in_words)
PAGE = "paper.html"


@dataclass(frozen=True)
class Section:
    """A part of the paper on the page: its items, our command, our figures, and the paper's values beside ours."""

    name: str
    items: Sequence[PaperItem]
    left_out: Mapping[str, str] = field(default_factory=dict)
    """What the short form leaves out, by the item's name."""
    command: str = ""
    page: str = ""
    """The address of the part's own page, from the paper's page; empty if there is none."""
    drawings: Sequence[Drawing] = ()
    values: Sequence[BesideOurs] = ()
    remarks: Sequence[str] = ()
    """Sentences below the figures."""
    missing: str = ""
    """Why the section shows nothing; empty if it does."""

    @property
    def title_of_values(self) -> str:
        """What stands above the values."""
        if all(value.paper == NOT_PRINTED for value in self.values):
            return "Ours, of which the paper prints no value"
        return "What the paper printed, and ours; rates and times depend on the hardware"

    @property
    def has_ranges(self) -> bool:
        """Whether a value of ours is a range of several points."""
        return any(value.of_points and ".." in value.ours for value in self.values)


def page_html(folder: Path, record: Record) -> str:
    """Return the page. Equal folders give equal pages."""
    paper = paper_in(record)
    return TEMPLATES.get_template(PAGE).render(
        record=record,
        paper=paper,
        title=headline(record),
        noise=noise_banner(record, MEASUREMENTS),
        repeats_needed=repeats_needed(ALPHA),
        alpha=ALPHA,
        most_noise=MOST_SHARE,
        contradictions=list(contradictions(record)),
        problems=list(problems(record)),
        repeats=counted(record["repeats"], "repeats") if record.get("repeats") else "",
        claims=in_readers_order(record),
        sections=list(_sections(folder, record, paper)),
    )


def write_page(folder: Path, record: Record) -> Path:
    """Write the page into the paper's folder, and return the page's path."""
    return write_html(folder / PAGE, page_html(folder, record))


def _sections(folder: Path, record: Record, paper: Paper) -> Iterator[Section]:
    extent = recorded_extent(record)
    entries = {entry["part"]: entry for entry in record["parts"]}
    records = read_parts(folder, paper)
    for content in paper.contents:
        if isinstance(content, Absent):
            yield Section(content.item.name, [content.item], missing=_as_sentence(content.reason))
        else:
            yield _section(content, entries[content.name], records.get(content.name), extent)


def _as_sentence(reason: str) -> str:
    """The reason with a capital and a full stop; commands in it lose the marks that a page does not show."""
    return f"{reason[0].upper()}{reason[1:]}.".replace("`", "")


def _section(part: PaperPart, entry: Record, record: Record | None, extent: Extent) -> Section:
    """Return the section of a part; `entry` is what the paper's record says of it, and `record` its own record."""
    if record is None:
        reasons = "; ".join(entry["reasons"]) or "it has not been measured yet"
        return Section(part.name, part.items, command=entry["command"], missing=f"Nothing is here: {reasons}.")
    remarks = part.remarks(record)
    if extent.repeats and part.why_no_repeats:
        remarks = [*remarks, f"no repeats here: {part.why_no_repeats}"]
    if extent.goes_beyond_loopback and part.why_loopback_alone:
        remarks = [*remarks, f"on loopback alone: {part.why_loopback_alone}"]
    return Section(
        name=part.name,
        items=part.items,
        left_out={item.name: item.left_out(extent) for item in part.items},
        command=entry["command"],
        page=f"{part.name}/{part.page}",
        drawings=part.drawings(record),
        values=part.values(record),
        remarks=remarks,
    )
