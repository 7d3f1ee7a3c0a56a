"""A benchmark's page, `bench.html`: one offline file, made of bench.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from messaging.catalogue import benchmark_of
from messaging.figures import drawings_of
from messaging.table import columns_with_something, cpu_columns
from messaging.words import reasons_in_words, short, short_interval, titles_of, values_in_words
from reports.drawing.templates import templates
from reports.rounding import number
from runs.files import write_whole
from runs.interrupts import heeded_at_the_end

FILE = "bench.html"
TEMPLATES = templates(
    Path(__file__).parent, in_words=reasons_in_words, short=short, interval=short_interval, number=number
)


@heeded_at_the_end()
def write_page(folder: Path, record: Mapping[str, Any]) -> Path:
    """Of one benchmark, or of a suite's below each other; it appears whole, by rename."""
    return write_whole(folder / FILE, page_html(record).encode())


def page_html(record: Mapping[str, Any]) -> str:
    """Equal records give equal pages."""
    parts = list(map(_part, record.get("parts", [record])))
    return TEMPLATES.get_template("bench.html").render(parts=parts, record=record)


def _part(record: Mapping[str, Any]) -> dict[str, Any]:
    """A benchmark's share of the page."""
    benchmark, rows = benchmark_of(record["benchmark"]), record["rows"]
    return {
        "record": record, "benchmark": benchmark, "drawings": drawings_of(record),
        "sentences": benchmark.in_short(rows),
        "columns": columns_with_something(rows, benchmark.columns), "cpu": cpu_columns(rows),
        "titles": titles_of(rows), "values": [values_in_words(row["point"]) for row in rows],
    }  # fmt: skip
