"""A run's result in the terminal: counts, completion times, CPU, and packets if they were captured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from exchange.percentiles import LABELS
from exchange.words import counted, each_of, noun
from exchange_simulation.launching.record.noise import MOST_SHARE, noise_words
from exchange_simulation.reports.formats import ABSENT, has_enough_orders, max_of, number, rate, whole
from exchange_simulation.reports.tables import FoldingTable, indented, key, plain_table, terminal

if TYPE_CHECKING:
    from exchange_simulation.launching.packets.rows import PacketRow

COMPLETION_COLUMNS = {**LABELS, "max": "max"}
CLOCKS = {"due": "completion from due time", "handed_over": "completion from handing over"}
PACKETS = ("orders/s", "packets", "mean\nbytes", "with\nheaders", "mean\ngap us", "per\norder", "resent")


def show_record(record: dict[str, Any]) -> None:
    """Print run.json's content."""
    console = terminal()
    console.print(_headline(record), markup=False)
    for warning in _warnings(record):
        console.print(indented(warning, "bold red"))
    for line in (*_breaks(record), *_traffic(record)):
        console.print(indented(line))
    if record.get("completion_us"):
        console.print(_completion_table(record))
    if len(record.get("pairs", ())) > 1:
        console.print(_pairs_table(record["pairs"]))
    if record.get("components"):
        console.print(_usage(record["components"]), markup=False)
    if record.get("capture"):
        _show_capture(record)


def _warnings(record: dict[str, Any]) -> Iterator[str]:
    """The reasons of the status, and what spoilt the figures."""
    yield from record["reasons"]
    yield from (f"the network: {flag}" for flag in record.get("network", {}).get("flags", ()))
    if words := noise_words(record, MOST_SHARE):
        yield f"the machine: {words}, which shows in the figures"


def _headline(record: dict[str, Any]) -> str:
    settings = record.get("settings", {})
    if "orders_per_s" not in settings:
        return f"{record['status']}: {record['name']}, settings unknown"
    who = settings["transport"] + each_of(settings.get("pairs", 1)) + (" encrypted" if settings.get("secure") else "")
    who += " in real-time priority" if settings.get("priority") == "real-time" else ""
    return f"{record['status']}: {who} {_offered(settings)}, {_origin(settings)}{_found(record)}"


def _found(record: dict[str, Any]) -> str:
    """: p50 121 us, p99 629 us from due; the maximum in place of a percentile that too few orders tell."""
    times = record.get("completion_us") or {}
    clock, since = ("due", "due") if "due" in times else ("handed_over", "handing over")
    if record["status"] not in ("complete", "saturated") or clock not in times:
        return ""
    names = [name for name in ("p50", "p99", "max") if has_enough_orders(name, times[clock].get("count"))][:2]
    return f": {', '.join(f'{name} {whole(times[clock][name])} us' for name in names)} from {since}"


def _breaks(record: dict[str, Any]) -> Iterator[str]:
    """A sentence on the breaks that the run recovered from."""
    if found := record.get("recovered"):
        took = f"standbys took over {n:,}, " if (n := found.get("takeovers")) else ""
        again = f"{took}processes started again {found['restarts']:,}, orders sent again {found['orders_resent']:,}"
        yield f"recovered: {again}; {found['without_service_s']:.2f} s without service, in the times below"


def _offered(settings: dict[str, Any]) -> str:
    orders_per_s, arrivals = settings["orders_per_s"], settings.get("arrivals", "fixed")
    if orders_per_s is None:
        return "as fast as it goes"
    if arrivals == "recorded":
        return f"as recorded, speed {settings['speed']:g}"
    return f"at {rate(orders_per_s)} orders/s" + ("" if arrivals == "fixed" else f", {arrivals}")


def _origin(settings: dict[str, Any]) -> str:
    tape = settings.get("tape")
    return f"tape {tape}" if tape else f"seed {settings['seed']}"


def _traffic(record: dict[str, Any]) -> Iterator[str]:
    counts, rates, sums = (record.get(name, {}) for name in ("counts", "rates", "checksums"))
    if "orders_sent" in counts:
        yield f"{_both_ends(counts, 'orders')}, {_answered(rates)}"
        yield f"{_both_ends(counts, 'answers')}, {_rate(rates, 'answers_per_s')}"
        summed = "sum of " if len(record.get("pairs", ())) > 1 else ""
        if "orders" in sums:
            yield f"{summed}{sums['hash']}: orders {sums['orders']}, answers {sums['answers']}"
        if not record["completion_us"] and record["settings"].get("warm_up_s"):
            yield f"nothing is left to analyse after a warm-up of {record['settings']['warm_up_s']:g} s"
    refused, junk = counts.get("handshakes_refused"), counts.get("junk_frames")
    if refused or junk:
        yield f"turned away: {counted(refused or 0, 'handshakes')}, {counted(junk or 0, 'junk frames')}"


def _both_ends(counts: dict[str, int], kind: str) -> str:
    sent, received = counts.get(f"{kind}_sent"), counts.get(f"{kind}_received")
    if sent is not None and sent == received:
        return f"{counted(sent, kind)} sent and received"
    known = [f"{n:,} {noun(n, kind)} {done}" for n, done in ((sent, "sent"), (received, "received")) if n is not None]
    return ", ".join(known)


def _answered(rates: dict[str, float | None]) -> str:
    """The offered rate, if orders were due, and the rate that was answered."""
    offered = rates.get("offered_orders_per_s")
    answered = _rate(rates, "orders_per_s") + (" answered" if "orders_per_s" in rates else "")
    return answered if offered is None else f"{offered:,.0f}/s offered, {answered}"


def _rate(rates: dict[str, float | None], name: str) -> str:
    return f"{rates[name]:,.0f}/s" if name in rates else "rate not measured"


def _completion_table(record: dict[str, Any]) -> FoldingTable:
    table = plain_table(key("microseconds"), *COMPLETION_COLUMNS.values())
    times = record["completion_us"]
    rows = {title: times[clock] for clock, title in CLOCKS.items() if clock in times}
    if record.get("lag_us"):
        rows["lag of the gateway itself"] = record["lag_us"]
    for title, figures in rows.items():
        table.add_row(title, *(_figure(figures, name) for name in COMPLETION_COLUMNS))
    return table


def _figure(figures: dict[str, Any], name: str) -> str:
    """1,240; a percentile that too few orders tell is written as the maximum that it nearly is."""
    orders = figures.get("count")
    return whole(figures.get(name)) if has_enough_orders(name, orders) else max_of(orders or 0)


def _pairs_table(pairs: list[dict[str, Any]]) -> FoldingTable:
    """A row for each pair; completion times are from due time, if orders were due."""
    table = plain_table(key("pair", from_right=True), key("status"), "orders/s", "p50", "p99", "max")
    for pair in pairs:
        times = pair["completion_us"].get("due") or pair["completion_us"].get("handed_over") or {}
        figures = (_figure(times, name) if times else ABSENT for name in ("p50", "p99", "max"))
        table.add_row(str(pair["pair"]), pair["status"], whole(pair["rates"].get("orders_per_s")), *figures)
    return table


def _usage(components: dict[str, dict[str, Any]]) -> str:
    """CPU and most memory: gateway 5.70 s, 179 MB; engine 3.21 s, 158 MB"""
    used = (f"{role} {each['cpu_s']:.2f} s, {each['max_rss_bytes'] / 1e6:.0f} MB" for role, each in components.items())
    return f"CPU and most memory: {'; '.join(used)}"


def _show_capture(record: dict[str, Any]) -> None:
    """Print the packets of the captured connections, and whether tcpdump saw the same as the kernel."""
    from exchange_simulation.launching.packets.rows import packet_rows

    captured = {(each["source"], each["destination"]) for each in record["capture"]["directions"]}
    if rows := [row for row in packet_rows(record) if (row.source, row.destination) in captured]:
        show_packets(rows)
    for line in capture_sentences(record["capture"]):
        click.echo(line)


def capture_sentences(capture: dict[str, Any]) -> Iterator[str]:
    for each in capture["directions"]:
        segments = f"{each['segments_captured']:,} segments, kernel {each['segments']:,}"
        payload = f"{each['bytes_captured']:,} bytes, {each['bytes']:,}"
        yield f"tcpdump, {each['from']} to {each['to']}: {segments}; {payload}"
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
    table = plain_table(*(key(title) for title in ("from", "to", "Nagle")), *PACKETS)
    for row in rows:
        table.add_row(*_packet_cells(row))
    terminal().print(table)


def _packet_cells(row: PacketRow) -> Iterator[str]:
    yield from (row.sender, row.receiver)
    yield {True: "without", False: "with", None: ABSENT}[row.tcp_nodelay]
    yield rate(row.orders_per_s)
    yield f"{row.segments:,}"
    for mean in (row.mean_bytes, row.mean_wire_bytes, row.mean_gap_us, row.per_order):
        yield ABSENT if mean is None else number(mean)
    yield whole(row.retransmits)
