"""The words of a run's page: title, circumstances, and the rows of its tables."""

from __future__ import annotations

from typing import Any

from exchange.json_records import Record, section
from exchange.words import counted, each_of
from exchange_simulation.launching.record.noise import MOST_SHARE, noise_words
from exchange_simulation.reports.formats import (
    date_and_time,
    has_enough_orders,
    is_number,
    plain,
    rate,
    three_digits,
    time_in_words,
)
from exchange_simulation.reports.run.run_folder import is_scheduled, mean_cores
from transports.base import TransportError
from transports.registry import scheme_of, transport_of

ONE_PROCESS = ("memory", "zeromq+inproc")
MEANINGS = {
    "complete": "all orders were sent, and counts, checksums and read-backs agree.",
    "partial": "the run ended early; what was measured until then is shown.",
    "invalid": "counts, checksums or read-backs disagree; do not use these figures.",
    "saturated": "the run is valid, but did not keep up with the offered load.",
}

SOCKET_COUNTERS = ("segments_out", "bytes_out", "segments_in", "bytes_in", "retransmits")


def page_words(run: Record) -> dict[str, Any]:
    """The names of the page's template, from the content of run.json."""
    return {
        "run": run,
        "title": title(run),
        "circumstances": circumstances(run),
        "scheduled": is_scheduled(run),
        "verdict": verdict(run),
        "meaning": MEANINGS.get(str(run.get("status"))),
        "clocks": clocks(run),
        "noise": noise_words(run, MOST_SHARE),
        "answers_per_order": answers_per_order(run),
        "mean_cores": mean_cores(run),
        "both_ends": both_ends(run),
        "other_counts": other_counts(run),
        "socket_counters": socket_counters(run),
    }


def verdict(run: Record) -> str:
    """One or two sentences: how long orders took, and whether the offered rate was held."""
    status = str(run.get("status"))
    if status == "invalid":
        return "Do not use these figures: both ends do not agree on what was sent."
    parts = (_load(run), _completion(run)) if status == "saturated" else (_completion(run), _load(run))
    found = " ".join(filter(None, parts))
    early = "The run ended early; until then: " if status == "partial" and found else ""
    return early + (found or "Nothing was measured.")


def _completion(run: Record) -> str:
    """Half within 230 µs, 99 % within 949 µs, the slowest after 12.8 ms; 99 % only where ten orders are slower."""
    times, since = section(section(run, "completion_us"), "due"), "of when they were due"
    if not times:
        times, since = section(section(run, "completion_us"), "handed_over"), "of being handed over"
    if not is_number(times.get("p50")):
        return ""
    parts = [f"Half of the orders were answered within {time_in_words(times['p50'])} {since}"]
    if is_number(times.get("p99")) and has_enough_orders("p99", times.get("count", 0)):
        parts.append(f"99 % within {time_in_words(times['p99'])}")
    if is_number(times.get("max")):
        parts.append(f"the slowest after {time_in_words(times['max'])}")
    return ", ".join(parts) + "."


def _load(run: Record) -> str:
    rates, status = section(run, "rates"), run.get("status")
    offered, answered = rates.get("offered_orders_per_s"), rates.get("orders_per_s")
    if not is_number(answered):
        return ""
    if not is_number(offered):
        return f"As fast as it went, {answered:,.0f} orders/s were answered."
    if status == "complete":
        return f"The offered {rate(round(offered, 1))} orders/s were held."
    return f"Of {rate(round(offered, 1))} orders/s offered, {answered:,.0f} were answered."


def title(run: Record) -> str:
    """A sentence without its full stop: 480,000 orders over ZeroMQ at 8,000 orders/s"""
    settings = section(run, "settings")
    each, pairs = settings.get("orders"), settings.get("pairs") or 1
    orders = pairs * each if each else section(run, "counts").get("orders_sent")
    amount = counted(int(orders), "orders") if is_number(orders) else "Orders"
    return f"{amount} over {_transport(settings)}{each_of(pairs)}{_speed(settings)}"


def _scheme(settings: Record) -> str:
    return scheme_of(str(settings.get("transport") or "an unknown transport"))


def _transport(settings: Record) -> str:
    name, _, variant = _scheme(settings).partition("+")
    return _title(name) + (f" ({variant})" if variant else "")


def _title(scheme: str) -> str:
    """The transport's name in sentences; the scheme itself if this version does not know it."""
    try:
        return transport_of(scheme).title or scheme
    except TransportError:
        return scheme


def _speed(settings: Record) -> str:
    if "orders_per_s" not in settings:
        return ""
    offered, arrivals = settings["orders_per_s"], settings.get("arrivals", "fixed")
    if not is_number(offered):
        return ", as fast as it goes"
    if arrivals == "recorded":
        return f", as recorded, speed {settings['speed']:g}"
    return f" at {rate(offered)} orders/s" + ("" if arrivals == "fixed" else f" ({arrivals})")


def circumstances(run: Record) -> list[str]:
    """The sentences below the title."""
    settings = section(run, "settings")
    return list(
        filter(None, (_started(run), _origin(settings), _nagle(run), _sizes(run), _one_process(settings), _noise(run)))
    )


def _origin(settings: Record) -> str:
    if settings.get("tape"):
        return f"Orders of the tape {settings['tape']}."
    return f"Seed {settings['seed']}." if "seed" in settings else ""


def _started(run: Record) -> str:
    at, duration_s = run.get("started_at"), run.get("duration_s")
    lasted = f", for {three_digits(duration_s)} s" if is_number(duration_s) else ""
    return f"Run on {date_and_time(at)}{lasted}." if isinstance(at, str) else ""


def _nagle(run: Record) -> str:
    """The ends with Nagle's algorithm, which `nagle` names; empty if no socket was read back."""
    roles = section(run, "settings").get("nagle")
    if not isinstance(roles, list) or not run.get("sockets"):
        return ""
    exceptions = f", except at: {plain(roles)} (Nagle's algorithm)" if roles else ""
    return f"TCP_NODELAY at every end{exceptions}."


def _sizes(run: Record) -> str:
    mean = run.get("mean_message_bytes")
    return f"Weighted average message size: {mean:.3g} bytes, of orders and answers." if is_number(mean) else ""


def _one_process(settings: Record) -> str:
    if _scheme(settings) not in ONE_PROCESS:
        return ""
    return "All components ran as threads of one process: not comparable with runs over a network."


def _noise(run: Record) -> str:
    words = noise_words(run)
    return f"{words[0].upper()}{words[1:]} meanwhile." if words else ""


def clocks(run: Record) -> list[tuple[str, Record]]:
    """The rows of the percentile table."""
    completion = section(run, "completion_us")
    handed_over = ("from handing over", section(completion, "handed_over"))
    if not is_scheduled(run):
        return [handed_over]
    return [("from due time", section(completion, "due")), handed_over, ("lag", section(run, "lag_us"))]


def answers_per_order(run: Record) -> float | None:
    orders, answers = (section(run, "counts").get(name) for name in ("orders_sent", "answers_received"))
    return answers / orders if is_number(orders) and is_number(answers) and orders else None


def both_ends(run: Record) -> list[str]:
    """The names of what is counted both where it is sent and where it is received; orders and answers always."""
    counts = section(run, "counts")
    sent = [name.removesuffix("_sent") for name in counts if name.endswith("_sent")]
    return list(dict.fromkeys(["orders", "answers", *(what for what in sent if f"{what}_received" in counts)]))


def other_counts(run: Record) -> Record:
    """The counts of one end only."""
    paired = {f"{what}_{end}" for what in both_ends(run) for end in ("sent", "received")}
    return {name: count for name, count in section(run, "counts").items() if name not in paired}


def socket_counters(run: Record) -> list[str]:
    sockets = [socket for socket in run.get("sockets") or [] if isinstance(socket, dict)]
    return [name for name in SOCKET_COUNTERS if any(is_number(socket.get(name)) for socket in sockets)]
