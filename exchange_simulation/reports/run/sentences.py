"""The sentences of a run's page: title, verdict, circumstances; and the rows of its tables."""

from __future__ import annotations

from typing import Any

from exchange.confirms import confirm_rows
from exchange.json_records import Record, section
from exchange.words import counted, participants_clause
from exchange_simulation.launching.record.backlog import backlog_words
from exchange_simulation.launching.record.broker_pauses import pause_words
from exchange_simulation.launching.record.noise import noise_words
from exchange_simulation.launching.record.noise_summary import noise_banner
from exchange_simulation.reports.formats.engines import engine_rows
from exchange_simulation.reports.formats.fairness import fairness_rows
from exchange_simulation.reports.formats.few_orders import has_enough_orders
from exchange_simulation.reports.formats.numbers import is_number, rate_text, three_digits
from exchange_simulation.reports.formats.settings import setting_text
from exchange_simulation.reports.formats.times import date_and_time, time_in_words
from exchange_simulation.reports.run.hosts import host_sentences
from exchange_simulation.reports.run.market_data import COLUMNS, published_words, subscriber_rows
from exchange_simulation.reports.run.offered_load import load_in_words, load_over_time
from exchange_simulation.reports.run.run_folder import is_scheduled, mean_cores
from transports.base import TransportError
from transports.registry import caution_of, scheme_of, transport_of

MEANINGS = {
    "complete": "all orders were sent, and counts, checksums and read-backs agree.",
    "partial": "the run ended early; what was measured until then is shown.",
    "invalid": "counts, checksums or read-backs disagree; do not use these figures.",
    "saturated": "the run is valid, but orders were not all sent or answered in time:",
}

SOCKET_COUNTERS = ("segments_out", "bytes_out", "segments_in", "bytes_in", "retransmits")


def page_words(run: Record) -> dict[str, Any]:
    """Return the values that the page's template names, from the content of run.json."""
    return {
        "run": run,
        "title": title(run),
        "circumstances": circumstances(run),
        "scheduled": is_scheduled(run),
        "verdict": verdict(run),
        "meaning": MEANINGS.get(str(run.get("status"))),
        "clocks": clocks(run),
        "gateways": fairness_rows(run.get("gateways") or ()),
        "engines": engine_rows(run.get("engines") or ()),
        "noise": noise_banner(run, "runs"),
        "pause": pause_words(run.get("broker")),
        "answers_per_order": answers_per_order(run),
        "mean_cores": mean_cores(run),
        "both_ends": both_ends(run),
        "other_counts": other_counts(run),
        "socket_counters": socket_counters(run),
        "backlog": backlog_words(run),
        "published": published_words(run),
        "subscribers": subscriber_rows(run),
        "subscriber_columns": COLUMNS,
    }


def verdict(run: Record) -> str:
    """Return one or two sentences: how long orders took, and whether the offered rate was held.

    In a saturated run, the sentence on the rate comes first.
    """
    status = str(run.get("status"))
    if status == "invalid":
        return "Do not use these figures: both ends do not agree on what was sent."
    sentences = [_completion(run), _load(run)]
    if status == "saturated":
        sentences.reverse()
    measured = " ".join(sentence for sentence in sentences if sentence)
    if not measured:
        return "Nothing was measured."
    return f"The run ended early; until then: {measured}" if status == "partial" else measured


def _completion(run: Record) -> str:
    """Return a sentence on completion times; empty if none was measured, without 99 % if the orders are too few.

    For example: Half of the orders were answered within 230 µs of when they were due, 99 % within 949 µs, the slowest
    after 12.8 ms.
    """
    times = section(section(run, "completion_us"), "due")
    since = "of when they were due"
    if not times:
        times = section(section(run, "completion_us"), "handed_over")
        since = "of being handed over"
    if not is_number(times.get("p50")):
        return ""
    clauses = [f"Half of the orders were answered within {time_in_words(times['p50'])} {since}"]
    if is_number(times.get("p99")) and has_enough_orders("p99", times.get("count", 0)):
        clauses.append(f"99 % within {time_in_words(times['p99'])}")
    if is_number(times.get("max")):
        clauses.append(f"the slowest after {time_in_words(times['max'])}")
    return ", ".join(clauses) + "."


def _load(run: Record) -> str:
    """Return a sentence on the offered and the answered rate; empty if the answered rate was not measured.

    For example: Of 8,000 orders/s offered, 7,120 were answered.
    """
    rates = section(run, "rates")
    offered = rates.get("offered_orders_per_s")
    answered = rates.get("orders_per_s")
    if not is_number(answered):
        return ""
    if not is_number(offered):
        return f"As fast as it went, {answered:,.0f} orders/s were answered."
    if run.get("status") == "complete":
        return f"The offered {rate_text(round(offered, 1))} orders/s were held."
    return f"Of {rate_text(round(offered, 1))} orders/s offered, {answered:,.0f} were answered."


def title(run: Record) -> str:
    """Return a sentence without its full stop: how many orders, over which transport, at which rate.

    For example: 480,000 orders over ZeroMQ at 8,000 orders/s
    """
    settings = section(run, "settings")
    pairs = settings.get("pairs") or 1
    gateways = settings.get("gateways") or 1
    engines = settings.get("engines") or 1
    orders_of_pair = settings.get("orders")
    orders = pairs * orders_of_pair if orders_of_pair else section(run, "counts").get("orders_sent")
    amount = counted(int(orders), "orders") if is_number(orders) else "Orders"
    return f"{amount} over {_transport(settings)}{participants_clause(pairs, gateways, engines)}{_speed(settings)}"


def _scheme(settings: Record) -> str:
    return scheme_of(str(settings.get("transport") or "an unknown transport"))


def _transport(settings: Record) -> str:
    """Return the transport's name for people, with its variant in brackets. For example: ZeroMQ (inproc)"""
    scheme, _, variant = _scheme(settings).partition("+")
    name = _name_of_transport(scheme)
    return f"{name} ({variant})" if variant else name


def _name_of_transport(scheme: str) -> str:
    """Return the transport's name in sentences; the scheme itself if this version does not know it."""
    try:
        return transport_of(scheme).title or scheme
    except TransportError:
        return scheme


def _speed(settings: Record) -> str:
    """Return the offered rate and its arrivals; empty if the settings are not known.

    For example: at 8,000 orders/s (poisson)
    """
    if "orders_per_s" not in settings:
        return ""
    offered = settings["orders_per_s"]
    arrivals = settings.get("arrivals", "fixed")
    if not is_number(offered):
        return ", as fast as it goes"
    if arrivals == "recorded":
        return f", as recorded, speed {settings['speed']:g}"
    if arrivals == "fixed":
        return f" at {rate_text(offered)} orders/s"
    load = load_over_time(settings)
    if load is not None:
        return f" at {load_in_words(load)}"
    return f" at {rate_text(offered)} orders/s ({arrivals})"


def circumstances(run: Record) -> list[str]:
    """Return the sentences below the title; a circumstance that is not known has none."""
    settings = section(run, "settings")
    sentences = [
        _started(run),
        _origin(settings),
        _nagle(run),
        _sizes(run),
        caution_of(_scheme(settings)),
        _noise(run),
        *(_as_sentence(words) for words in host_sentences(run)),
    ]
    return [sentence for sentence in sentences if sentence]


def _origin(settings: Record) -> str:
    """Return a sentence on what the orders come from: a tape or a seed."""
    if settings.get("tape"):
        return f"Orders of the tape {settings['tape']}."
    return f"Seed {settings['seed']}." if "seed" in settings else ""


def _started(run: Record) -> str:
    """Return a sentence on the run's time. For example: Run on 21 November 2026, 18:22 UTC, for 10.1 s."""
    started_at = run.get("started_at")
    duration_s = run.get("duration_s")
    if not isinstance(started_at, str):
        return ""
    duration = f", for {three_digits(duration_s)} s" if is_number(duration_s) else ""
    return f"Run on {date_and_time(started_at)}{duration}."


def _nagle(run: Record) -> str:
    """Return a sentence on the ends with Nagle's algorithm; empty if no socket was read back."""
    roles = section(run, "settings").get("nagle")
    if not isinstance(roles, list) or not run.get("sockets"):
        return ""
    exceptions = f", except at: {setting_text(roles)} (Nagle's algorithm)" if roles else ""
    return f"TCP_NODELAY at every end{exceptions}."


def _sizes(run: Record) -> str:
    mean = run.get("mean_message_bytes")
    return f"Weighted average message size: {mean:.3g} bytes, of orders and answers." if is_number(mean) else ""


def _noise(run: Record) -> str:
    """Return a sentence on what others took of the processors meanwhile; empty if that was little."""
    words = noise_words(run)
    return _as_sentence(f"{words} meanwhile") if words else ""


def _as_sentence(words: str) -> str:
    """Return the words with a capital letter and a full stop."""
    return f"{words[0].upper()}{words[1:]}."


def clocks(run: Record) -> list[tuple[str, Record]]:
    """Return the rows of the percentile table, each with its title and its figures."""
    completion = section(run, "completion_us")
    handed_over = ("from handing over", section(completion, "handed_over"))
    if not is_scheduled(run):
        return [handed_over, *confirm_rows(run)]
    due = ("from due time", section(completion, "due"))
    return [due, handed_over, ("lag", section(run, "lag_us")), *confirm_rows(run)]


def answers_per_order(run: Record) -> float | None:
    """Return the mean number of answers to an order; None if either was not counted, or no order was sent."""
    orders = section(run, "counts").get("orders_sent")
    answers = section(run, "counts").get("answers_received")
    if not is_number(orders) or not is_number(answers) or orders == 0:
        return None
    return answers / orders


def both_ends(run: Record) -> list[str]:
    """Return the names of messages that are counted at both ends: orders, answers, and others that the counts have.

    For example, orders are counted as orders_sent and orders_received.
    """
    counts = section(run, "counts")
    names = ["orders", "answers"]
    for count in counts:
        name = count.removesuffix("_sent")
        if count.endswith("_sent") and f"{name}_received" in counts and name not in names:
            names.append(name)
    return names


def other_counts(run: Record) -> Record:
    """Return the counts of one end only."""
    counted_at_both_ends: set[str] = set()
    for name in both_ends(run):
        counted_at_both_ends |= {f"{name}_sent", f"{name}_received"}
    return {name: count for name, count in section(run, "counts").items() if name not in counted_at_both_ends}


def socket_counters(run: Record) -> list[str]:
    """Return the counters that any socket has."""
    sockets = [socket for socket in run.get("sockets") or [] if isinstance(socket, dict)]
    return [name for name in SOCKET_COUNTERS if any(is_number(socket.get(name)) for socket in sockets)]
