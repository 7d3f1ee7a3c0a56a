"""A run's result in the terminal: counts, completion times, CPU, and packets if they were captured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from exchange.confirms import confirm_rows
from exchange.percentiles import LABELS
from exchange.words import counted, participants_clause
from exchange_simulation.launching.record.backlog import backlog_words
from exchange_simulation.launching.record.broker_pauses import pause_words
from exchange_simulation.launching.record.noise_summary import noise_banner
from exchange_simulation.launching.transport_urls import guarantee_of
from exchange_simulation.reports.formats.engines import engine_rows
from exchange_simulation.reports.formats.fairness import fairness_rows
from exchange_simulation.reports.formats.few_orders import has_enough_orders, max_of
from exchange_simulation.reports.formats.numbers import ABSENT, number_text, rate_text, whole_number
from exchange_simulation.reports.run.hosts import host_sentences
from exchange_simulation.reports.run.market_data import COLUMNS, SubscriberRow, published_words, subscriber_rows
from exchange_simulation.reports.run.offered_load import load_in_words, load_over_time
from exchange_simulation.reports.tables import FoldingTable, indented, key_column, plain_table, terminal
from transports.guarantees import Fate

if TYPE_CHECKING:
    from exchange_simulation.launching.packets.rows import PacketRow

COMPLETION_COLUMNS = {**LABELS, "max": "max"}
CLOCKS = {"due": "completion from due time", "handed_over": "completion from handing over"}
PACKETS = ("orders/s", "packets", "mean\nbytes", "with\nheaders", "mean\ngap us", "per\norder", "resent")


def show_record(record: dict[str, Any]) -> None:
    """Print run.json's content."""
    console = terminal()
    console.print(headline(record), markup=False)
    for warning in _warnings(record):
        console.print(indented(warning, "bold red"))
    for line in (*_breaks(record), *host_sentences(record), *_guarantee(record), *_traffic(record)):
        console.print(indented(line))
    if record.get("completion_us"):
        console.print(_completion_table(record))
    if len(record.get("pairs", ())) > 1:
        console.print(_pairs_table(record["pairs"]))
    if record.get("gateways"):
        console.print(gateways_table(record["gateways"]))
    if record.get("engines"):
        console.print(_engines_table(record["engines"]))
    subscribers = subscriber_rows(record)
    if subscribers:
        console.print(_subscribers_table(subscribers))
    if record.get("components"):
        console.print(_usage(record["components"]), markup=False)
    if record.get("capture"):
        _show_capture(record)


def _warnings(record: dict[str, Any]) -> Iterator[str]:
    """Yield the reasons of the status, and the disturbances that spoilt the figures."""
    yield from record["reasons"]
    for flag in record.get("network", {}).get("flags", ()):
        yield f"the network: {flag}"
    pause = pause_words(record.get("broker"))
    if pause and not any(pause in reason for reason in record["reasons"]):
        yield pause
    noise = noise_banner(record, "runs")
    if noise:
        yield noise


def headline(record: dict[str, Any]) -> str:
    """Return the first line: status, transport, load, where the orders come from, and completion times.

    For example: complete: zeromq at 8,000 orders/s, seed 1: p50 121 us, p99 629 us from due
    """
    settings = record.get("settings", {})
    if "orders_per_s" not in settings:
        return f"{record['status']}: {record['name']}, settings unknown"
    numbers = [settings.get(name, 1) for name in ("pairs", "gateways", "engines")]
    words = settings["transport"] + participants_clause(*numbers)
    if settings.get("secure"):
        words += " encrypted"
    if settings.get("priority") == "real-time":
        words += " in real-time priority"
    return f"{record['status']}: {words} {_offered(settings)}, {_origin(settings)}{_completion(record)}"


def _completion(record: dict[str, Any]) -> str:
    """Return the end of the headline: the first two of p50, p99 and max that have enough orders.

    Empty if the run's times are not valid. For example: ": p50 121 us, p99 629 us from due"
    """
    times = record.get("completion_us") or {}
    clock = "due" if "due" in times else "handed_over"
    if record["status"] not in ("complete", "saturated") or clock not in times:
        return ""
    figures = times[clock]
    names = [name for name in ("p50", "p99", "max") if has_enough_orders(name, figures.get("count"))]
    words = [f"{name} {whole_number(figures[name])} us" for name in names[:2]]
    since = "due" if clock == "due" else "handing over"
    return f": {', '.join(words)} from {since}"


def _breaks(record: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence on the breaks that the run recovered from, if there were any."""
    recovered = record.get("recovered")
    if not recovered:
        return
    clauses = []
    takeovers = recovered.get("takeovers")
    if takeovers:
        clauses.append(f"standbys took over {takeovers:,}")
    clauses.append(f"processes started again {recovered['restarts']:,}")
    clauses.append(f"orders sent again {recovered['orders_resent']:,}")
    without_service = f"{recovered['without_service_s']:.2f} s without service, in the times below"
    yield f"recovered: {', '.join(clauses)}; {without_service}"


def _guarantee(record: dict[str, Any]) -> Iterator[str]:
    """Yield what becomes of messages over a server that dies, or whose reader dies; nothing without a server.

    For example: guarantee: lossy; what is under way is lost if its reader dies, and lost if the server dies
    """
    settings = record.get("settings", {})
    guarantee = guarantee_of(settings["transport"], settings) if "transport" in settings else None
    if guarantee is None or guarantee.server_dies is Fate.NO_SERVER:
        return
    yield (
        f"guarantee: {guarantee.level}; what is under way is {guarantee.peer_dies.value} if its reader dies, and "
        f"{guarantee.server_dies.value} if the server dies"
    )


def _offered(settings: dict[str, Any]) -> str:
    """Return the offered load. For example: at 8,000 orders/s, poisson"""
    orders_per_s = settings["orders_per_s"]
    arrivals = settings.get("arrivals", "fixed")
    if orders_per_s is None:
        return "as fast as it goes"
    if arrivals == "recorded":
        return f"as recorded, speed {settings['speed']:g}"
    if arrivals == "fixed":
        return f"at {rate_text(orders_per_s)} orders/s"
    load = load_over_time(settings)
    if load is not None:
        return f"at {load_in_words(load)}"
    return f"at {rate_text(orders_per_s)} orders/s, {arrivals}"


def _origin(settings: dict[str, Any]) -> str:
    tape = settings.get("tape")
    return f"tape {tape}" if tape else f"seed {settings['seed']}"


def _traffic(record: dict[str, Any]) -> Iterator[str]:
    """Yield sentences on orders, answers, checksums, and on handshakes and frames that were turned away."""
    counts = record.get("counts", {})
    rates = record.get("rates", {})
    sums = record.get("checksums", {})
    if "orders_sent" in counts:
        yield f"{_both_ends(counts, 'orders')}, {_answered(rates)}"
        yield f"{_both_ends(counts, 'answers')}, {_rate(rates, 'answers_per_s')}"
        instruments = record["settings"].get("instruments", 1)  # runs of older versions have no such setting
        if instruments > 1:
            yield f"{instruments:,} instruments, by Zipf's law"
        mix = record["settings"].get("mix")
        if mix:
            yield f"mix {mix}: {_outcomes_of_mix(counts)}"
        summed = "sum of " if len(record.get("pairs", ())) > 1 else ""
        if "orders" in sums:
            yield f"{summed}{sums['hash']}: orders {sums['orders']}, answers {sums['answers']}"
        if not record["completion_us"] and record["settings"].get("warm_up_s"):
            yield f"nothing is left to analyse after a warm-up of {record['settings']['warm_up_s']:g} s"
    backlog = backlog_words(record)
    if backlog:
        yield backlog
    published = published_words(record)
    if published:
        yield published
    refused = counts.get("handshakes_refused") or 0
    junk = counts.get("junk_frames") or 0
    if refused or junk:
        yield f"turned away: {counted(refused, 'handshakes')}, {counted(junk, 'junk frames')}"


def _outcomes_of_mix(counts: dict[str, int]) -> str:
    """Return what became of cancels, replaces and orders that cannot rest. Most rejected ones came too late."""
    cancelled = counts.get("cancelled", 0)
    replaced = counts.get("replaced", 0)
    rejected = counts.get("rejections", 0)
    return f"{cancelled:,} cancelled, {replaced:,} replaced, {rejected:,} rejected"


def _both_ends(counts: dict[str, int], kind: str) -> str:
    """Return how many orders or answers were sent and received. For example: 80,000 orders sent and received"""
    sent = counts.get(f"{kind}_sent")
    received = counts.get(f"{kind}_received")
    if sent is not None and sent == received:
        return f"{counted(sent, kind)} sent and received"
    clauses = []
    if sent is not None:
        clauses.append(f"{counted(sent, kind)} sent")
    if received is not None:
        clauses.append(f"{counted(received, kind)} received")
    return ", ".join(clauses)


def _answered(rates: dict[str, float | None]) -> str:
    """Return the offered rate, if orders were due, and the rate that was answered.

    For example: 8,000/s offered, 7,996/s answered
    """
    offered = rates.get("offered_orders_per_s")
    answered = _rate(rates, "orders_per_s")
    if "orders_per_s" in rates:
        answered += " answered"
    return answered if offered is None else f"{offered:,.0f}/s offered, {answered}"


def _rate(rates: dict[str, float | None], name: str) -> str:
    return f"{rates[name]:,.0f}/s" if name in rates else "rate not measured"


def _completion_table(record: dict[str, Any]) -> FoldingTable:
    table = plain_table(key_column("microseconds"), *COMPLETION_COLUMNS.values())
    times = record["completion_us"]
    rows = {title: times[clock] for clock, title in CLOCKS.items() if clock in times}
    if record.get("lag_us"):
        rows["lag of the gateway itself"] = record["lag_us"]
    rows |= dict(confirm_rows(record))
    for title, figures in rows.items():
        table.add_row(title, *(_figure(figures, name) for name in COMPLETION_COLUMNS))
    return table


def _figure(figures: dict[str, Any], name: str) -> str:
    """Return a figure, or "max of 499" in place of a percentile of too few orders. For example: 1,240"""
    orders = figures.get("count")
    if not has_enough_orders(name, orders):
        return max_of(orders or 0)
    return whole_number(figures.get(name))


def _pairs_table(pairs: list[dict[str, Any]]) -> FoldingTable:
    """Return a table with a row for each pair; completion times are from due time, if orders were due."""
    table = plain_table(key_column("pair", from_right=True), key_column("status"), "orders/s", "p50", "p99", "max")
    for pair in pairs:
        times = pair["completion_us"].get("due") or pair["completion_us"].get("handed_over")
        figures = [ABSENT, ABSENT, ABSENT]
        if times:
            figures = [_figure(times, name) for name in ("p50", "p99", "max")]
        table.add_row(str(pair["pair"]), pair["status"], whole_number(pair["rates"].get("orders_per_s")), *figures)
    return table


def gateways_table(gateways: list[dict[str, Any]]) -> FoldingTable:
    """Return a table with a row for each gateway of a market; of many, for the best, the median and the worst."""
    table = plain_table(key_column("gateway"), key_column("status"), "orders", "share", "p50", "p99", "max")
    for row in fairness_rows(gateways):
        figures = [_figure(row.times, name) if row.times else ABSENT for name in ("p50", "p99", "max")]
        share = ABSENT if row.share is None else f"{row.share:.2%}"
        table.add_row(row.title, row.status, whole_number(row.orders), share, *figures)
    return table


def _engines_table(engines: list[dict[str, Any]]) -> FoldingTable:
    """Return a table with a row for each of several engines."""
    table = plain_table(key_column("engine"), "orders", "share", "answers", "CPU")
    for row in engine_rows(engines):
        share = ABSENT if row.share is None else f"{row.share:.2%}"
        cpu = ABSENT if row.cpu_s is None else f"{row.cpu_s:.2f} s"
        table.add_row(row.title, whole_number(row.orders), share, whole_number(row.answers), cpu)
    return table


def _subscribers_table(rows: Sequence[SubscriberRow]) -> FoldingTable:
    """Return a table with a row for each subscriber, or for some of many; times are from the engine's reading."""
    table = plain_table(key_column("subscriber", from_right=True), *COLUMNS, gap=1)
    for row in rows:
        table.add_row(row.label, *row.cells)
    return table


def _usage(components: dict[str, dict[str, Any]]) -> str:
    """Return the CPU time and peak memory of each component.

    For example: CPU and most memory: gateway 5.70 s, 179 MB; engine 3.21 s, 158 MB
    """
    clauses = []
    for role, usage in components.items():
        clauses.append(f"{role} {usage['cpu_s']:.2f} s, {usage['max_rss_bytes'] / 1e6:.0f} MB")
    return f"CPU and most memory: {'; '.join(clauses)}"


def _show_capture(record: dict[str, Any]) -> None:
    """Print the packets of the captured connections, and how tcpdump's counts compare with the kernel's."""
    from exchange_simulation.launching.packets.rows import packet_rows

    captured = {(direction["source"], direction["destination"]) for direction in record["capture"]["directions"]}
    rows = [row for row in packet_rows(record) if (row.source, row.destination) in captured]
    if rows:
        show_packets(rows)
    for line in capture_sentences(record["capture"]):
        click.echo(line)


def capture_sentences(capture: dict[str, Any]) -> Iterator[str]:
    """Yield sentences that compare tcpdump's counts with the kernel's."""
    for direction in capture["directions"]:
        segments = f"{direction['segments_captured']:,} segments, kernel {direction['segments']:,}"
        payload = f"{direction['bytes_captured']:,} bytes, {direction['bytes']:,}"
        yield f"tcpdump, {direction['from']} to {direction['to']}: {segments}; {payload}"
    if capture["directions"]:
        off = capture["off_by"]
        yield f"off by {off['segments']:.3%} and {off['bytes']:.3%}; tcpdump saw the handshakes, too"
    if capture["problem"]:
        yield f"the capture cannot be read: {capture['problem']}"
    elif not capture["directions"]:
        yield "tcpdump saw none of the run's connections"
    if capture["dropped"]:
        yield f"tcpdump lost {capture['dropped']:,} packets: what it counted is too little"


def show_packets(rows: Sequence[PacketRow]) -> None:
    """Print table 1 of the paper, with sender and receiver in front."""
    table = plain_table(key_column("from"), key_column("to"), key_column("Nagle"), *PACKETS)
    for row in rows:
        table.add_row(*_packet_cells(row))
    terminal().print(table)


def _packet_cells(row: PacketRow) -> list[str]:
    """Return the cells of a row: sender, receiver, Nagle's algorithm, and the columns PACKETS."""
    if row.tcp_nodelay is None:
        nagle = ABSENT
    else:
        nagle = "without" if row.tcp_nodelay else "with"
    cells = [row.sender, row.receiver, nagle, rate_text(row.orders_per_s), f"{row.segments:,}"]
    for mean in (row.mean_bytes, row.mean_wire_bytes, row.mean_gap_us, row.per_order):
        cells.append(ABSENT if mean is None else number_text(mean))
    cells.append(whole_number(row.retransmits))
    return cells
