"""A run's last minute as lines of text: what is the case now, a graph, its scale."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from reports.live.figures import SECONDS, Figures
from reports.live.graph import BLOCKS, graph
from reports.live.short import short

LABEL, NOW, TOP = 9, 5, 4
"""Characters of a row beside its graph."""
COLUMNS = LABEL + NOW + 1 + SECONDS + 1 + TOP

Rows = dict[str, str]
RATES: Rows = {"sent": "sent", "answered": "answered", "answers": "answers"}
CPU: Rows = {"gateway": "gateway", "engine": "engine", "reporter": "reporter", "broker": "broker"}


def groups(is_scheduled: bool) -> dict[str, Rows]:
    """By title: figures, and what each is called. Without a schedule nothing is due, and nothing late."""
    clock, since = ("due", "due") if is_scheduled else ("handed_over", "handing over")
    times = {f"{clock} p50": "p50", f"{clock} p99": "p99", f"{clock} max": "max"}
    lag = {"lag p99": "lag p99"} if is_scheduled else {}
    return {"orders and answers a second": RATES, f"us from {since}": times | lag, "cores in use": CPU}


def picture(headline: str, figures: Figures, is_scheduled: bool, columns: int = COLUMNS, blocks: str = BLOCKS) -> Text:
    """At most `columns` wide: what a narrow terminal has no room for are the seconds that are longest ago."""
    seconds = min(max(columns - (COLUMNS - SECONDS), 1), SECONDS)
    text = Text(headline, no_wrap=True, overflow="crop")
    for title, rows in groups(is_scheduled).items():
        heading = _heading(title, seconds) if rows is RATES else title
        text.append(f"\n{heading}", "bold")
        for row in _rows(rows, figures, seconds, blocks):
            text.append_tokens(row)
    return text


def _heading(title: str, seconds: int) -> str:
    """With that of the scale, which stands for all."""
    return f"{title:<{COLUMNS - SECONDS - TOP + seconds}}0 to"


def _rows(rows: Rows, figures: Figures, seconds: int, blocks: str) -> Iterator[list[tuple[str, str | None]]]:
    """Only a broker that is ours has a row."""
    for name, label in rows.items():
        if name == "broker" and name not in figures.minutes:
            continue
        values = figures.minutes[name].until(figures.newest, seconds)
        top = max((value for value in values if value is not None), default=None)
        now = "-" if values[-1] is None else short(values[-1], NOW)
        yield [
            (f"\n{label:<{LABEL}}{now:>{NOW}} ", None),
            (graph(values, top or 0.0, blocks), "cyan"),
            (f" {'' if top is None else short(top, TOP):>{TOP}}", "dim"),
        ]
