"""A benchmark's record as a reader sees it: a table in the terminal, a page, and what `exchange report` makes of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.padding import Padding

from exchange.grouping import grouped
from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.benchmarks import benchmark_of, coverage
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.point import size_in_words
from exchange_simulation.messaging.presentation import Column
from exchange_simulation.messaging.results import read
from exchange_simulation.messaging.verdicts import comparison_of, judged, main_column, point_in_words, saturated_repeats
from exchange_simulation.repeats.judging import DIFFER
from exchange_simulation.reports.comparison.answer import answers, headline, other_answers
from exchange_simulation.reports.comparison.ratio_plot import ratio_plot
from exchange_simulation.reports.comparison.sentences import how_tested, sureness
from exchange_simulation.reports.comparison.table import show_ratios
from exchange_simulation.reports.formats.numbers import ABSENT, number_text
from exchange_simulation.reports.report import ReportOptions, print_report, write_html
from exchange_simulation.reports.tables import FoldingTable, key, plain_table, terminal, warning

PAGE = "bench.html"
MOST_REASONS, MOST_ROWS = 3, 60
USAGE = {"cores in use": "_cores", "context switches a message": "_switches_per_message"}
Rows = Sequence[dict[str, Any]]


def show(record: Mapping[str, Any], whole: bool = True) -> None:
    """Print why it is not complete, and what was found; then tables, or a suite's summary and each of its benchmarks.

    If not whole, tables of many rows are left out, and a suite's benchmarks: the page and `exchange report` have them.
    """
    record = judged(dict(record))
    shown_parts = record.get("parts", []) if whole else []
    of_parts = {f"{part['benchmark']}: {reason}" for part in shown_parts for reason in part["reasons"]}
    _show_reasons(record["status"], [reason for reason in record["reasons"] if reason not in of_parts])
    comparison = comparison_of(record)
    if "parts" in record:
        _show_summary(record)
        for part in shown_parts:
            _show_benchmark(part, True, part["reasons"])
            _show_verdicts(_of_benchmark(comparison, part["benchmark"]))
        return
    console = terminal()
    console.print(f"[bold]{_headline(record)}[/bold]", highlight=False)
    for sentence in _other_answers(record, comparison):
        console.print(sentence, highlight=False)
    with_tables = whole or not is_long(record)
    if with_tables:
        _show_verdicts(comparison)
    _show_benchmark(record, with_tables)


def _show_verdicts(comparison: Record) -> None:
    """Print how far transports are apart at each point, as a trial's ratios are printed."""
    if comparison["verdicts"]:
        show_ratios(terminal(), comparison)


def _of_benchmark(comparison: Record, benchmark: str) -> Record:
    """A suite's comparison with the verdicts of one benchmark."""
    own = [verdict for verdict in comparison["verdicts"] if verdict["benchmark"] == benchmark]
    return {**comparison, "verdicts": own}


def is_long(record: Mapping[str, Any]) -> bool:
    """The record has more rows than fit a terminal."""
    return "parts" in record or len(record["rows"]) > MOST_ROWS


def _headline(record: Mapping[str, Any]) -> str:
    """How far transports are apart; else what the benchmark says first, or the ends of its main figure.

    For example: zeromq carries 6.2 to 33.0 times as much as amqp in 5 of 5 cases (messages/s)

    For example: amqp, messages/s: 59.2 at 1 MiB, to 34.8 k at 16 B
    """
    comparison = comparison_of(record, by_kind="parts" in record)
    if len(comparison["verdicts"]) == 1:
        (verdict,) = comparison["verdicts"]
        return f"{verdict['sentence']} ({comparison['metrics'][verdict['metric']]['title']})"
    if comparison["verdicts"]:
        return headline(comparison)
    if summary := _summary(record):
        return summary[0]
    parts = record.get("parts", [record])
    transports = list(dict.fromkeys(row["transport"] for part in parts for row in part["rows"]))
    if len(parts) > 1 or not transports:
        return f"{counted(len(parts), 'benchmarks')} over {', '.join(transports) or 'nothing'}"
    return "; ".join(_ends(parts[0], transport) for transport in transports)


def _other_answers(record: Mapping[str, Any], comparison: Record) -> list[str]:
    """Return what the headline leaves out about the transports; for a suite, a sentence for each benchmark.

    Where nothing differs, the headline has said it all.
    """
    differ = [verdict for verdict in comparison["verdicts"] if verdict["outcome"] == DIFFER]
    if len(comparison["verdicts"]) <= 1 or not differ:
        return []
    if "parts" in record:
        return answers(comparison)
    return other_answers(comparison)


def _ends(record: Mapping[str, Any], transport: str) -> str:
    """The lowest and the highest median, each with its interval and its point."""
    column, (_, rows) = main_column(record), _without_what_is_the_same(record["rows"])
    own = [row for row in rows if row["transport"] == transport and column.name in row["figures"]]
    if not own:
        return f"{transport}: nothing was measured"
    own.sort(key=lambda row: row["figures"][column.name]["median"])
    ends = [
        f"{_in_words(column, row['figures'][column.name])} at {point_in_words(row['point'])}"
        for row in (own[0], own[-1])
    ]
    return f"{transport}, {column.title}: {', to '.join(dict.fromkeys(ends))}"


def show_coverage() -> None:
    """Print every figure, table and experiment of the papers with its command, or the reason why there is none."""
    console = terminal()
    rows = coverage()
    rows_with_command = sum(bool(row.command) for row in rows)
    console.print(f"{rows_with_command} of {len(rows)} rows have a command; each other says why not")
    for paper, own in itertools.groupby(rows, lambda row: row.paper):
        console.print(f"\n[bold]{paper}[/bold]")
        for row in own:
            console.print(f"{row.item}: {row.title}", style=None if row.command else "dim", highlight=False)
            if row.command:
                console.print(f"    {row.command}", highlight=False, soft_wrap=True)
            if row.note:
                console.print(Padding(row.note, (0, 0, 0, 4), expand=False), highlight=False)


def _show_summary(record: Mapping[str, Any]) -> None:
    """Print a line for each benchmark: the range of its main figure over all points, for each transport."""
    console = terminal()
    parts = record["parts"]
    wrong = [part["benchmark"] for part in parts if part["status"] != "complete"]
    outcome = f"{record['status']}, see {', '.join(wrong)}" if wrong else record["status"]
    console.print(f"[bold]{record['name']}[/bold]: {counted(len(parts), 'benchmarks')}, {outcome}")
    console.print(f"[bold]{_headline(record)}[/bold]", highlight=False)
    for sentence in _other_answers(record, comparison_of(record)):
        console.print(sentence, highlight=False)
    transports = list(dict.fromkeys(row["transport"] for part in parts for row in part["rows"]))
    table = plain_table(key("lowest to highest"), *transports)
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
    own = [
        row["figures"][column.name]["median"]
        for row in rows
        if row["transport"] == transport and column.name in row["figures"]
    ]
    return "..".join(dict.fromkeys(map(short, (min(own), max(own))))) if own else ABSENT


def _show_benchmark(record: Mapping[str, Any], with_tables: bool, reasons: Sequence[str] = ()) -> None:
    """Print a benchmark. `reasons` of its status stand below its name, unless they were said before."""
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
    if printed := [each for each in benchmark.published if not each.figure]:  # others stand on the page, beside ours
        console.print("[dim]the paper, on other hardware:[/dim]")
        for each in printed:
            console.print(Padding(f"[dim]{each.title}: {each.value}[/dim]", (0, 0, 0, 4), expand=False))
    for reason in record.get("left_out", ()):
        console.print(f"left out, {reason}")
    for caveat in record.get("caveats", ()):
        console.print(warning(caveat))


def _show_tables(rows: Rows, columns: Sequence[Column]) -> None:
    """Print the benchmark's figures, then cores in use and context switches."""
    console = terminal()
    same, shown = _without_what_is_the_same(rows)
    console.print(_table(shown, _columns_with_values(rows, columns)))
    if same:
        console.print(f"[dim]each row: {same}[/dim]")
    for title, own in _usage_columns(rows).items():
        console.print(f"\n{title}")
        console.print(_table(shown, own))


def _show_reasons(status: str, reasons: Sequence[str]) -> None:
    for reason in reasons_in_words(reasons):
        terminal().print(f"[bold red]{status}[/bold red]: {reason}")


def _sentences(record: Mapping[str, Any]) -> list[str]:
    """Return the benchmark's summary without its headline, the points that did not keep their rate, and the network."""
    first = _headline(record)
    rest = [sentence for sentence in _summary(record) if sentence != first]
    return [*rest, *_saturated(record["rows"]), *_network_in_words(record.get("network"))]


def _summary(record: Mapping[str, Any]) -> Sequence[str]:
    """A benchmark's own sentences; a suite has none."""
    return () if "parts" in record else benchmark_of(record["benchmark"]).summary_sentences(record["rows"])


def _network_in_words(network: Mapping[str, Any] | None) -> list[str]:
    """Return sentences on the network between the roles, and why it is not the one that was asked for."""
    if network is None:
        return []
    trips = "; ".join(f"{roles} {number_text(each['median'])} us" for roles, each in network["round_trip_us"].items())
    others = [f"not the network that was asked for: {'; '.join(network['flags'])}"] if network["flags"] else []
    return [f"network {network['profile']}, by {network['mechanism']}; round trips: {trips}", *others]


def _saturated(rows: Rows) -> Iterator[str]:
    """Yield a sentence for each transport that did not keep its rate at some points.

    For example: amqp, saturated at 2 of 5 points: 64 B (2 of 3 repeats); 1 KiB. At the first, 81,204 of 90,000 offered
    """
    for transport, own in grouped(_without_what_is_the_same(rows)[1], lambda row: str(row["transport"])).items():
        saturated = [row for row in own if saturated_repeats(row)]
        if saturated:
            why = "; ".join(saturated_repeats(saturated[0])[0]["saturated"])
            at = "; ".join(map(_saturated_point, saturated))
            how_many = f"{len(saturated)} of {counted(len(own), 'points')}"
            yield f"{transport}, saturated at {how_many}: {at}. At the first, {why}"


def _saturated_point(row: Mapping[str, Any]) -> str:
    """A point with the number of its saturated repeats, unless all were saturated.

    For example: 64 B, 90,000/s (2 of 3 repeats)
    """
    lost = len(saturated_repeats(row))
    repeats = len(row["repeats"])
    point = point_in_words(row["point"])
    return f"{point} ({lost} of {repeats} repeats)" if lost < repeats else point


def _table(rows: Rows, columns: Sequence[Column]) -> FoldingTable:
    table = plain_table(
        *(key(title, from_right=True) for title in _titles(rows)), key(), *(column.title for column in columns)
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
    """Three digits of a large number: 50.4 k, 3.07 M."""
    for least, factor, letter in ((999_500, 1e6, "M"), (9_995, 1e3, "k")):
        if value >= least:
            return f"{value / factor:.3g} {letter}"
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
    return [name.removesuffix("_bytes").replace("_per_s", "/s") for name in rows[0]["point"]] if rows else []


def _without_what_is_the_same(rows: Rows) -> tuple[str, Rows]:
    """Return (what all points have in common, in words; the rows without it). One point alone keeps everything."""
    if not rows:
        return "", rows
    points = [row["point"] for row in rows]
    same = {name: value for name, value in points[0].items() if all(each.get(name) == value for each in points)}
    if not same or same == points[0]:
        return "", rows
    words = map(" ".join, zip(_titles([{"point": same}]), _values(same), strict=True))
    varied = [{name: value for name, value in each.items() if name not in same} for each in points]
    return ", ".join(words), [{**row, "point": point} for row, point in zip(rows, varied, strict=True)]


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
    """Columns of the broker and each kind of role, by what they count; nothing where none was measured."""
    names = dict.fromkeys(name for row in rows for name in row["figures"])
    return {
        title: [Column(name, name.removesuffix(ending)) for name in names if name.endswith(ending)]
        for title, ending in USAGE.items()
        if any(name.endswith(ending) for name in names)
    }


def page_html(record: Mapping[str, Any]) -> str:
    """Equal records give equal pages."""
    from exchange_simulation.reports.drawing.templates import templates

    of_pages = templates(
        Path(__file__).parent, in_words=reasons_in_words, short=short, interval=_short_interval, number=number_text
    )
    record = judged(dict(record))
    comparison = comparison_of(record)
    parts = [_part(part, comparison) for part in record.get("parts", [record])]
    return of_pages.get_template(PAGE).render(
        parts=parts,
        record=record,
        headline=_headline(record),
        answers=_other_answers(record, comparison),
        sureness=sureness(comparison) if comparison["verdicts"] else "",
        test=how_tested(comparison),
    )


def write_page(folder: Path, record: Mapping[str, Any]) -> Path:
    """Write a record's page into its folder, and return the page's path."""
    return write_html(folder / PAGE, page_html(record))


def _part(record: Mapping[str, Any], comparison: Record) -> dict[str, Any]:
    """A benchmark's share of the page; `comparison` is that of the whole record."""
    from exchange_simulation.messaging.plots import drawings_of

    benchmark = benchmark_of(record["benchmark"])
    rows = record["rows"]
    drawings = drawings_of(record)
    own_comparison = _of_benchmark(comparison, benchmark.name)
    main = [f"{benchmark.name}: {plot.title}" for plot in benchmark.plots if plot.figure == main_column(record).name]
    names = sorted({row["transport"] for row in rows})
    of_main = (drawing for drawing in drawings if drawing.title.startswith(tuple(main)))
    return {
        "record": record,
        "benchmark": benchmark,
        "drawings": drawings,
        "plot": ratio_plot(own_comparison),
        "verdicts": own_comparison["verdicts"],
        "first": next(of_main, drawings[0] if drawings else None),
        "sentences": _sentences(record),
        "main": main_column(record).title,
        "ranges": {name: _range(rows, name, main_column(record)) for name in names},
        "columns": _columns_with_values(rows, benchmark.columns),
        "cpu": _usage_columns(rows),
        "titles": _titles(rows),
        "values": [_values(row["point"]) for row in rows],
        "published": [(each, our_range(each, [*rows, *benchmark.derived_rows(rows)])) for each in benchmark.published],
    }


def our_range(published: Published, rows: Rows) -> str:
    """Our figure of what the paper printed, lowest to highest over the cells; empty if there is none."""
    own = [
        row["figures"][published.figure]["median"]
        for row in rows
        if published.figure in row["figures"] and published.where.items() <= row["point"].items()
    ]
    ends = (f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" for value in (min(own), max(own))) if own else ()
    return "..".join(dict.fromkeys(ends))


def report_benchmark(folder: Path, options: ReportOptions) -> int:
    """Show a folder's table, or its record, and make its page and figures; returns the exit code.

    A benchmark that was killed has what it had measured.
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
