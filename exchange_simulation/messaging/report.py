"""Shows a benchmark's record: as tables in the terminal, as a page, and by `exchange report`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange.unique import unique
from exchange.words import counted
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.disk import disk_in_words
from exchange_simulation.launching.record.noise_summary import noise_banner, noise_of
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.measurements import MEASUREMENTS
from exchange_simulation.messaging.measuring import COMPLETE
from exchange_simulation.messaging.network_sentences import network_sentences, unlike_networks
from exchange_simulation.messaging.paced import STEP_COLUMNS
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.peaks import NOTE
from exchange_simulation.messaging.point import MAX, NETWORK, RATE, size_in_words
from exchange_simulation.messaging.presentation import Column
from exchange_simulation.messaging.results import read
from exchange_simulation.messaging.verdicts import comparison_of, judged, main_column, point_in_words, saturated_repeats
from exchange_simulation.repeats.judging import DIFFER
from exchange_simulation.reports.comparison.answer import answers, headline, other_answers
from exchange_simulation.reports.comparison.ratio_plot import ratio_plot
from exchange_simulation.reports.comparison.sentences import how_tested, sureness
from exchange_simulation.reports.comparison.table import show_ratios
from exchange_simulation.reports.formats.numbers import ABSENT, number_text, three_digits, whole_number
from exchange_simulation.reports.report import ReportOptions, outcome_line, print_report, write_html
from exchange_simulation.reports.run.hosts import host_sentences
from exchange_simulation.reports.tables import FoldingTable, key_column, plain_table, terminal, warning

if TYPE_CHECKING:
    from exchange_simulation.reports.drawing.figures import Drawing

PAGE = "bench.html"
MOST_REASONS = 3
"""The largest number of reasons that are shown; the record has all."""
MOST_ROWS = 60
"""The largest number of rows of a table that is printed right after the measurement."""
USAGE = {"cores in use": "_cores", "context switches a message": "_switches_per_message"}
"""Endings of the names of figures on usage, by the title of their table."""
STEPS_TITLE = "each step of the load"
Rows = Sequence[dict[str, Any]]


def show(record: Mapping[str, Any], whole: bool = True) -> None:
    """Print the reasons of an incomplete record and the answer; then tables, or the summary and benchmarks of a suite.

    Unless `whole`, long tables and the benchmarks of a suite are left out: the page and `exchange report` have them.
    """
    record = judged(dict(record))
    parts_below = record.get("parts", []) if whole else []
    _show_reasons(record["status"], _reasons_without(parts_below, record))
    comparison = comparison_of(record)
    if "parts" in record:
        _show_summary(record)
        for part in parts_below:
            _show_benchmark(part, with_tables=True, reasons=part["reasons"])
            _show_verdicts(_of_benchmark(comparison, part["benchmark"]))
        return
    console = terminal()
    console.print(f"[bold]{_headline(record)}[/bold]", highlight=False)
    _show_noise(record)
    for sentence in _other_answers(record, comparison):
        console.print(sentence, highlight=False)
    with_tables = whole or not is_long(record)
    if with_tables:
        _show_verdicts(comparison)
    _show_benchmark(record, with_tables)


def _reasons_without(parts: Sequence[Mapping[str, Any]], record: Mapping[str, Any]) -> list[str]:
    """The record's reasons, without those of these parts."""
    reasons_of_parts = {f"{part['benchmark']}: {reason}" for part in parts for reason in part["reasons"]}
    return [reason for reason in record["reasons"] if reason not in reasons_of_parts]


def line_of(record: Mapping[str, Any]) -> str:
    """The outcome in one line: the status unless it is complete, the headline, and the banner of noise."""
    all_fields = judged(dict(record))
    headline_sentence = _headline(all_fields)
    if record["status"] != COMPLETE:
        headline_sentence = f"{record['status']}: {'; '.join(reasons_in_words(record['reasons']))}; {headline_sentence}"
    return outcome_line(headline_sentence, noise_banner(all_fields, MEASUREMENTS))


def _show_noise(record: Mapping[str, Any]) -> None:
    """Print the banner of a record whose measurements were mostly noisy."""
    noise = noise_banner(record, MEASUREMENTS)
    if noise:
        terminal().print(Text(noise, "bold red"))


def _show_verdicts(comparison: Record) -> None:
    """Print how far transports are apart at each point, as a trial's ratios are printed."""
    if comparison["verdicts"]:
        show_ratios(terminal(), comparison)


def _of_benchmark(comparison: Record, benchmark: str) -> Record:
    """A suite's comparison with the verdicts of one benchmark."""
    verdicts = [verdict for verdict in comparison["verdicts"] if verdict["benchmark"] == benchmark]
    return {**comparison, "verdicts": verdicts}


def is_long(record: Mapping[str, Any]) -> bool:
    """True if the record has more rows than fit a terminal."""
    return "parts" in record or len(record["rows"]) > MOST_ROWS


def _headline(record: Mapping[str, Any]) -> str:
    """How far transports are apart; else the first sentence of the benchmark's summary, or the ends of its main figure.

    For example: zeromq carries 6.2 to 33.0 times as much as amqp in 5 of 5 cases (messages/s)

    For example: amqp, messages/s: 59.2 at 1 MiB, to 34.8 k at 16 B
    """
    comparison = comparison_of(record, by_kind="parts" in record)
    if len(comparison["verdicts"]) == 1:
        verdict = comparison["verdicts"][0]
        return f"{verdict['sentence']} ({comparison['metrics'][verdict['metric']]['title']})"
    if comparison["verdicts"]:
        return headline(comparison)
    summary = _summary(record)
    if summary:
        return f"{_doubt(record)}{summary[0]}"
    parts = record.get("parts", [record])
    transports = unique(row["transport"] for part in parts for row in part["rows"])
    if len(parts) > 1 or not transports:
        return f"{counted(len(parts), 'benchmarks')} over {', '.join(transports) or 'nothing'}"
    return _doubt(record) + "; ".join(_ends(parts[0], transport) for transport in transports)


def _doubt(record: Mapping[str, Any]) -> str:
    """The beginning of the headline of a noisy record that compares nothing; empty if the record is not noisy."""
    is_doubtful = bool(record.get("redo_noisy")) and noise_of(record).is_noisy
    return "too noisy to say; measured beside other work: " if is_doubtful else ""


def _other_answers(record: Mapping[str, Any], comparison: Record) -> list[str]:
    """Return further sentences about the transports, for the headline; for a suite, a sentence for each benchmark.

    There are none if no transports differ, since the headline says so.
    """
    differing = [verdict for verdict in comparison["verdicts"] if verdict["outcome"] == DIFFER]
    if len(comparison["verdicts"]) <= 1 or not differing:
        return []
    if "parts" in record:
        return answers(comparison)
    return other_answers(comparison)


def _ends(record: Mapping[str, Any], transport: str) -> str:
    """The lowest and the highest median, each with its interval and its point."""
    column = main_column(record)
    rows = [
        row
        for row in _without_common_values(record["rows"])
        if row["transport"] == transport and column.name in row["figures"]
    ]
    if not rows:
        return f"{transport}: nothing was measured"

    def median(row: Mapping[str, Any]) -> float:
        return float(row["figures"][column.name]["median"])

    ascending = sorted(rows, key=median)
    ends = [
        f"{_in_words(column, row['figures'][column.name])} at {point_in_words(row['point'])}"
        for row in (ascending[0], ascending[-1])
    ]
    return f"{transport}, {column.title}: {', to '.join(unique(ends))}"


def _show_summary(record: Mapping[str, Any]) -> None:
    """Print a line for each benchmark: the range of its main figure over all points, for each transport."""
    console = terminal()
    parts = record["parts"]
    incomplete = [part["benchmark"] for part in parts if part["status"] != "complete"]
    outcome = f"{record['status']}, see {', '.join(incomplete)}" if incomplete else record["status"]
    console.print(f"[bold]{record['name']}[/bold]: {counted(len(parts), 'benchmarks')}, {outcome}")
    console.print(f"[bold]{_headline(record)}[/bold]", highlight=False)
    _show_noise(record)
    for sentence in _other_answers(record, comparison_of(record)):
        console.print(sentence, highlight=False)
    transports = unique(row["transport"] for part in parts for row in part["rows"])
    table = plain_table(key_column("lowest to highest"), *transports)
    for part in parts:
        column = main_column(part)
        ranges = [_range(part["rows"], transport, column) for transport in transports]
        table.add_row(f"{part['benchmark']}, {column.title}", *ranges)
    console.print(table)
    for caveat in record.get("caveats", ()):
        console.print(warning(caveat))


def _range(rows: Rows, transport: str, column: Column) -> str:
    """The lowest and the highest median over a transport's points, or the only one.

    For example: 118 k..3.95 M
    """
    medians = [
        row["figures"][column.name]["median"]
        for row in rows
        if row["transport"] == transport and column.name in row["figures"]
    ]
    if not medians:
        return ABSENT
    return "..".join(unique([short(min(medians)), short(max(medians))]))


def _show_benchmark(record: Mapping[str, Any], with_tables: bool, reasons: Sequence[str] = ()) -> None:
    """Print a benchmark, with the `reasons` of its status below its name."""
    console = terminal()
    benchmark = benchmark_of(record["benchmark"])
    rows = record["rows"]
    console.print(f"\n[bold]{benchmark.name}[/bold]: {benchmark.about}")
    _show_reasons(record["status"], reasons)
    for sentence in _sentences(record):
        console.print(sentence)
    if with_tables:
        _show_tables(rows, benchmark.columns)
    repeats = counted(record["settings"]["repeats"], "repeats")
    console.print(f"[dim]{benchmark.paper}; medians of {repeats}[/dim]")
    # Published values with a figure stand on the page, beside our figures.
    published = [value for value in benchmark.published if not value.figure]
    if published:
        console.print("[dim]the paper, whose rates and times are of other hardware:[/dim]")
        for value in published:
            console.print(Padding(f"[dim]{value.title}: {value.value}[/dim]", (0, 0, 0, 4), expand=False))
    for reason in record.get("left_out", ()):
        console.print(f"left out, {reason}")
    for caveat in record.get("caveats", ()):
        console.print(warning(caveat))


def _show_tables(rows: Rows, columns: Sequence[Column]) -> None:
    """Print the benchmark's figures, then cores in use and context switches."""
    console = terminal()
    shown_rows = _without_common_values(rows)
    console.print(_table(shown_rows, _columns_with_values(rows, columns)))
    common_values = _common_values_in_words(rows)
    if common_values:
        console.print(f"[dim]each row: {common_values}[/dim]")
    steps = rows_of_steps(rows)
    if steps:
        console.print(f"\n{STEPS_TITLE}")
        console.print(_table(steps, _columns_with_values(steps, STEP_COLUMNS)))
    for title, usage_columns in _usage_columns(rows).items():
        console.print(f"\n{title}")
        console.print(_table(shown_rows, usage_columns))


def _show_reasons(status: str, reasons: Sequence[str]) -> None:
    for reason in reasons_in_words(reasons):
        terminal().print(f"[bold red]{status}[/bold red]: {reason}")


def _sentences(record: Mapping[str, Any]) -> list[str]:
    """Return sentences: the summary without the headline, saturated points, networks, hosts, disk."""
    headline_sentence = _headline(record)
    summary = [sentence for sentence in _summary(record) if sentence != headline_sentence]
    networks = record.get("networks", ())
    return [
        *summary,
        *_saturated(record["rows"]),
        *network_sentences(networks),
        *unlike_networks(networks),
        *host_sentences(record),
        *_clocks_in_words(record),
        *_disk(record),
    ]


def _summary(record: Mapping[str, Any]) -> Sequence[str]:
    """The sentences that a benchmark makes of its rows; a suite has none."""
    if "parts" in record:
        return ()
    return benchmark_of(record["benchmark"]).summary_sentences(record["rows"])


def _clocks_in_words(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence on the bound of one-way times if publishers and consumers have the clocks of two machines."""
    bounds_us = []
    for row in record["rows"]:
        for repeat in row["repeats"]:
            bounds_us += [host["clock_bound_us"] for host in repeat.get("hosts", ()) if "clock_bound_us" in host]
    bound_us = max(bounds_us, default=0.0)
    if bound_us:
        yield f"one-way times are between the clocks of two machines, each time +- {whole_number(bound_us)} us"


def _disk(record: Mapping[str, Any]) -> list[str]:
    """A sentence on the disk, if messages survive the end of their broker."""
    return [disk_in_words(record["disk"])] if record.get("disk") else []


def _saturated(rows: Rows) -> Iterator[str]:
    """Yield a sentence for each transport that did not keep its rate at some points.

    For example: amqp, saturated at 2 of 5 points: 64 B (2 of 3 repeats); 1 KiB. At the first, 81,204 of 90,000 offered
    """
    rows_by_transport = grouped(_without_common_values(rows), lambda row: str(row["transport"]))
    for transport, rows_of_transport in rows_by_transport.items():
        saturated = [row for row in rows_of_transport if saturated_repeats(row)]
        if saturated:
            first_repeat = saturated_repeats(saturated[0])[0]
            reasons = "; ".join(first_repeat["saturated"])
            points = "; ".join(_saturated_point(row) for row in saturated)
            share = f"{len(saturated)} of {counted(len(rows_of_transport), 'points')}"
            yield f"{transport}, saturated at {share}: {points}. At the first, {reasons}"


def _saturated_point(row: Mapping[str, Any]) -> str:
    """A point with the number of its saturated repeats, unless all were saturated.

    For example: 64 B, 90,000/s (2 of 3 repeats)
    """
    saturated = len(saturated_repeats(row))
    repeats = len(row["repeats"])
    point = point_in_words(row["point"])
    return f"{point} ({saturated} of {repeats} repeats)" if saturated < repeats else point


def _table(rows: Rows, columns: Sequence[Column]) -> FoldingTable:
    table = plain_table(
        *(key_column(title, from_right=True) for title in _titles(rows)),
        key_column(),
        *(column.title for column in columns),
    )
    for row in rows:
        cells = [_in_words(column, row["figures"].get(column.name)) for column in columns]
        table.add_row(*_values(row["point"]), row["transport"], *cells)
    return table


def _in_words(column: Column, estimate: Mapping[str, Any] | None) -> str:
    """A figure's median, with its interval if the column shows one.

    For example: 3.07 M (1.42 M..5.83 M)
    """
    if estimate is None:
        return ABSENT
    value = number_text(estimate["median"]) if column.exact else short(estimate["median"])
    return f"{value} {_short_interval(estimate)}".rstrip() if column.with_interval else value


def short(value: float) -> str:
    """Three digits of a large number: 10.0 k, 50.4 k, 3.07 M."""
    if value >= 999_500:  # 1 M, once it is rounded to three digits
        return f"{three_digits(value / 1e6)} M"
    if value >= 9_995:  # 10 k, once it is rounded to three digits
        return f"{three_digits(value / 1e3)} k"
    return number_text(value)


def _short_interval(estimate: Mapping[str, Any]) -> str:
    """The interval in brackets; empty if there is none.

    For example: (1.42 M..5.83 M)
    """
    return "" if estimate["low"] is None else f"({short(estimate['low'])}..{short(estimate['high'])})"


def reasons_in_words(reasons: Sequence[str]) -> list[str]:
    """The first reasons, and how many more there are."""
    others = len(reasons) - MOST_REASONS
    words = list(reasons[:MOST_REASONS])
    if others > 0:
        words.append(f"and {counted(others, 'more reasons')}")
    return words


def _titles(rows: Rows) -> list[str]:
    """Titles of the columns that hold the points: size, pairs, ..."""
    if not rows:
        return []
    return [name.removesuffix("_bytes").replace("_per_s", "/s") for name in rows[0]["point"]]


def _common_values(rows: Rows) -> dict[str, Any]:
    """The values that all points have in common; none if all values are, as with a single point."""
    if not rows:
        return {}
    first_point = rows[0]["point"]
    common: dict[str, Any] = {}
    for name, value in first_point.items():
        if all(row["point"].get(name) == value for row in rows):
            common[name] = value
    return {} if common == first_point else common


def _common_values_in_words(rows: Rows) -> str:
    """The values that all points have in common.

    For example: match indexed, threads 1
    """
    common = _common_values(rows)
    titles = _titles([{"point": common}])
    return ", ".join(f"{title} {value}" for title, value in zip(titles, _values(common), strict=True))


def _without_common_values(rows: Rows) -> Rows:
    """The rows, whose points lack the values that all points have in common."""
    common = _common_values(rows)
    shortened: list[dict[str, Any]] = []
    for row in rows:
        point = {name: value for name, value in row["point"].items() if name not in common}
        shortened.append({**row, "point": point})
    return shortened


def rows_of_steps(rows: Rows) -> Rows:
    """A row for each step of each row whose load changes over time; none for rows of one rate.

    Steps are numbered from 1, since a load may have the same step twice, as 1000@2s,8000@2s,1000@2s.
    """
    steps: list[dict[str, Any]] = []
    for row in _without_common_values(rows):
        point = {name: value for name, value in row["point"].items() if name != RATE}
        for number, step in enumerate(row.get("steps", ()), start=1):
            point_of_step = {**point, "step": number, "rate": step["step"]}
            steps.append({"transport": row["transport"], "point": point_of_step, "figures": step["figures"]})
    return steps


def _values(point: Mapping[str, Any]) -> list[str]:
    """A point's values, in the order of the columns that hold points."""
    words: list[str] = []
    for name, value in point.items():
        if name.endswith("_bytes"):
            words.append(size_in_words(value))
        elif isinstance(value, int):
            words.append(f"{value:,}")
        else:
            words.append(str(value))
    return words


def _columns_with_values(rows: Rows, columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if any(column.name in row["figures"] for row in rows)]


def _usage_columns(rows: Rows) -> dict[str, list[Column]]:
    """Columns of the broker and of each kind of role, by the title of their table in USAGE."""
    names = unique(name for row in rows for name in row["figures"])
    columns_by_title: dict[str, list[Column]] = {}
    for title, ending in USAGE.items():
        columns = [Column(name, name.removesuffix(ending)) for name in names if name.endswith(ending)]
        if columns:
            columns_by_title[title] = columns
    return columns_by_title


def page_html(record: Mapping[str, Any]) -> str:
    """The page of a record; equal records give equal pages."""
    from exchange_simulation.reports.drawing.templates import templates

    environment = templates(
        Path(__file__).parent, in_words=reasons_in_words, short=short, interval=_short_interval, number=number_text
    )
    record = judged(dict(record))
    comparison = comparison_of(record)
    parts = [_part(part, comparison) for part in record.get("parts", [record])]
    return environment.get_template(PAGE).render(
        parts=parts,
        failures=_reasons_without(record["parts"], record) if "parts" in record else [],
        record=record,
        headline=_headline(record),
        noise=noise_banner(record, MEASUREMENTS),
        answers=_other_answers(record, comparison),
        sureness=sureness(comparison) if comparison["verdicts"] else "",
        test=how_tested(comparison),
    )


def write_page(folder: Path, record: Mapping[str, Any]) -> Path:
    """Write a record's page into its folder, and return the page's path."""
    return write_html(folder / PAGE, page_html(record))


def _part(record: Mapping[str, Any], comparison: Record) -> dict[str, Any]:
    """The values of the template for one benchmark; `comparison` is that of the whole record."""
    from exchange_simulation.messaging.plots import drawings_of

    benchmark = benchmark_of(record["benchmark"])
    rows = record["rows"]
    drawings = drawings_of(record)
    comparison_of_part = _of_benchmark(comparison, benchmark.name)
    transports = sorted({row["transport"] for row in rows})
    return {
        "record": record,
        "benchmark": benchmark,
        "drawings": drawings,
        "plot": ratio_plot(comparison_of_part),
        "verdicts": comparison_of_part["verdicts"],
        "tile": tile_of(record, drawings),
        "sentences": _sentences(record),
        "ranges": {transport: _range(rows, transport, main_column(record)) for transport in transports},
        "columns": _columns_with_values(rows, benchmark.columns),
        "cpu": _usage_columns(rows),
        "titles": _titles(rows),
        "values": [_values(row["point"]) for row in rows],
        "steps": _steps_of_page(rows),
        "published": published_beside_ours(record),
    }


@dataclass(frozen=True)
class Tile:
    """A benchmark's part of a suite's first page: the figure that is compared."""

    title: str
    drawing: Drawing | None
    """None if no drawing shows that figure."""


def tile_of(record: Mapping[str, Any], drawings: Sequence[Drawing]) -> Tile:
    """Return the tile of one benchmark. If its drawing shows some lines alone, the title names them, as ", amqp"."""
    column = main_column(record)
    benchmark = benchmark_of(record["benchmark"])
    for drawing in drawings:
        for plot in benchmark.plots:
            title = f"{benchmark.name}: {plot.title}"
            if plot.figure == column.name and drawing.title.startswith(title):
                return Tile(column.title + drawing.title.removeprefix(title), drawing)
    return Tile(column.title, None)


def _steps_of_page(rows: Rows) -> dict[str, Any]:
    """The values of the template's table of steps; empty without steps."""
    steps = rows_of_steps(rows)
    if not steps:
        return {}
    return {
        "record": {"rows": steps},
        "title": STEPS_TITLE,
        "columns": _columns_with_values(steps, STEP_COLUMNS),
        "titles": _titles(steps),
        "values": [_values(step["point"]) for step in steps],
    }


def published_beside_ours(
    record: Mapping[str, Any], published: Sequence[Published] | None = None
) -> list[tuple[Published, str]]:
    """The values that a paper prints, by default the benchmark's own, each with our figure of the same thing, as text.

    A value of cells that were not measured is left out, unless we have no figure of it at all. So is a value of other
    settings.
    """
    benchmark = benchmark_of(record["benchmark"])
    rows = [*record["rows"], *benchmark.derived_rows(record["rows"])]
    if published is None:
        published = benchmark.published
    beside_ours = []
    for value in published:
        if value.fits is not None and not value.fits(record["settings"]):
            continue
        ours = value.planned or our_range(value, rows)
        if ours or not value.figure:
            beside_ours.append((value, ours))
    return beside_ours


def our_range(published: Published, rows: Rows) -> str:
    """Our figure for a published value, lowest to highest over the cells, or the highest of a peak; empty if none.

    Transports, networks, and ways to find a reply, have a range each. A cell at a rate has none: the papers send as
    fast as they can.

    For example: amqp, indexed 498..510; amqp, scan 122
    """
    measured = [
        row
        for row in rows
        if published.figure in row["figures"]
        and published.where.items() <= row["point"].items()
        and published.transport in ("", row["transport"])
        and row["point"].get(RATE, MAX) == MAX
    ]
    ranges: dict[str, str] = {}
    for subject, rows_of_subject in grouped(measured, _subject).items():
        medians = [row["figures"][published.figure]["median"] for row in rows_of_subject]
        if published.is_reciprocal:
            medians = [1e6 / median for median in medians if median]
        values = _range_in_words([max(medians)] if published.is_peak else medians)
        notes = unique(row[NOTE] for row in rows_of_subject if row.get(NOTE))
        ranges[subject] = " ".join([values, *notes])
    if len(ranges) < 2:
        return "".join(ranges.values())
    clauses = [f"{subject} {values}" for subject, values in ranges.items()]
    if published.ratio_of:
        clauses += _ratios_in_words(published.figure, published.ratio_of, measured)
    return "; ".join(clauses)


def _ratios_in_words(figure: str, ways: tuple[str, str], rows: Rows) -> list[str]:
    """The ratio of a figure by two ways to find a reply, over each transport and network that has both.

    For example: 11.5 times
    """
    sentences: list[str] = []
    by_place = grouped(rows, lambda row: " ".join([row["transport"], row["point"].get(NETWORK) or ""]))
    first, second = ways
    for place, rows_of_place in by_place.items():
        medians = {row["point"].get("match"): row["figures"][figure]["median"] for row in rows_of_place}
        if first in medians and medians.get(second):
            subject = f"{place.strip()} " if len(by_place) > 1 else ""
            sentences.append(f"{subject}{number_text(medians[first] / medians[second])} times")
    return sentences


def _subject(row: Mapping[str, Any]) -> str:
    """The transport of a row, its network if there are several, and how it finds replies if it does."""
    names = [row["transport"], row["point"].get(NETWORK), row["point"].get("match")]
    return ", ".join(name for name in names if name)


def _range_in_words(medians: Sequence[float]) -> str:
    ends = [f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" for value in (min(medians), max(medians))]
    return "..".join(unique(ends))


def report_benchmark(folder: Path, options: ReportOptions) -> int:
    """Show a folder's table, or its record, and make its page and figures; returns the exit code.

    A benchmark that was killed has the measurements that were written before.
    """
    if options.hlog or options.as_csv:
        option = "--hlog" if options.hlog else "--csv"
        raise UserError(f"{option} is of a run, and {folder} is a benchmark's: say --json, or --figures for CSVs")
    record = read(folder)

    def write_figures() -> Path:
        from exchange_simulation.messaging.plots import figures_of
        from exchange_simulation.reports.drawing import figures

        return figures.write_figures(folder, figures_of(record))

    return print_report(
        folder,
        "benchmark",
        record,
        json_value=record,
        csv_rows=[],
        options=options,
        show=show,
        write_page=write_page,
        write_figures=write_figures,
    )
