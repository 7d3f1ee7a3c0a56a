"""A benchmark's page, `bench.html`: one offline file, made of bench.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import ChainableUndefined, Environment, FileSystemLoader

from experiments.bench.catalogue import benchmark_of
from experiments.bench.figures import drawings_of
from experiments.bench.table import columns_with_something, cpu_columns
from experiments.bench.words import reasons_in_words, titles_of, values_in_words
from experiments.compare.rounding import interval, number, rounded
from experiments.errors import cannot_write
from experiments.page.formats import FORMATS, condition
from experiments.page.writer import TEMPLATES
from experiments.whole_file import whole_file

FILE = "bench.html"


def write_page(folder: Path, record: Mapping[str, Any]) -> Path:
    """Of one benchmark, or of a suite's below each other; it appears whole, by rename."""
    html, page = page_html(record), folder / FILE
    try:
        with whole_file(page) as file:
            file.write(html.encode())
    except OSError as error:
        raise cannot_write(page, error) from error
    return page


def page_html(record: Mapping[str, Any]) -> str:
    """Equal records give equal pages."""
    parts = list(map(_part, record.get("parts", [record])))
    return _environment().get_template("bench.html").render(parts=parts, record=record)


def _part(record: Mapping[str, Any]) -> dict[str, Any]:
    """A benchmark's share of the page."""
    benchmark, rows = benchmark_of(record["benchmark"]), record["rows"]
    tables = {"figures": columns_with_something(rows, benchmark.columns), **cpu_columns(rows)}
    return {
        "record": record, "benchmark": benchmark, "drawings": drawings_of(record),
        "sentences": benchmark.in_short(rows),
        "tables": tables, "titles": titles_of(rows), "values": [values_in_words(row["point"]) for row in rows],
    }  # fmt: skip


def _environment() -> Environment:
    """Its own template, and the style and macros of a run's page."""
    environment = Environment(
        loader=FileSystemLoader([Path(__file__).parent, TEMPLATES]), autoescape=True, undefined=ChainableUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.globals.update(formats=FORMATS, condition=condition)
    environment.filters.update(in_words=reasons_in_words, rounded=rounded, interval=interval, number=number)
    return environment
