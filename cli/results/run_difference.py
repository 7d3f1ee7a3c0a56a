"""The difference between two runs: first the conditions, then the counts, then the figures."""

from __future__ import annotations

from collections.abc import Iterator

from cli.results.difference import differing, part_of, print_heads, print_lines, print_rows, setting_words
from exchange.json_records import Record
from experiments.trials.conditions import DIFFERS_BY_RUN
from reports.formats import is_told, number
from runs.metrics import COMPARISON_METRICS, NAGLE_METRICS, Metric, lag_us, orders_measured

CONDITIONS: dict[str, tuple[str, ...] | None] = {
    "settings": None, "affinity": None, "host": None, "versions": None, "network": ("mechanism",),
    "broker": ("product", "version", "erlang"),
}  # fmt: skip
"""Parts of a record, and which of their fields are compared; None stands for all."""
LAG = tuple(
    Metric(name=f"lag_{name}_us", title=f"lag of the gateway, {name}", unit="us", read=lag_us(name))
    for name in ("p50", "p99", "max")
)
PACKETS = tuple(metric for metric in NAGLE_METRICS if metric.name == "packets_per_order")
NO_VERDICT = "One run each carries no verdict: another run of the same settings differs, too. Use exchange compare."


def differ(first: Record, second: Record) -> Record:
    """Compare two runs. A value that was not measured is absent; `ratio` is second over first."""
    return {
        "kind": "run",
        "first": _head(first),
        "second": _head(second),
        "conditions": list(_conditions(first, second)),
        "counts": list(differing(part_of(first, "counts"), part_of(second, "counts"))),
        "same_streams": {name: _is_same_stream(first, second, name) for name in ("orders", "answers")},
        "figures": list(_figures(first, second)),
        "caveat": NO_VERDICT,
    }


def _head(record: Record) -> Record:
    load = part_of(record, "host").get("load_before")
    head = {"name": record["name"], "status": record["status"], "reasons": record["reasons"]}
    started = {"started_at": record.get("started_at"), "load_before": load}
    return {**head, **started, "orders_measured": orders_measured(record)}


def _conditions(first: Record, second: Record) -> Iterator[Record]:
    for part, names in CONDITIONS.items():
        for found in differing(part_of(first, part, names), part_of(second, part, names)):
            if (part, found["field"]) not in DIFFERS_BY_RUN:
                yield {**found, "field": f"{part}.{found['field']}"}


def _is_same_stream(first: Record, second: Record, name: str) -> bool | None:
    """True if the checksums agree; None if either is unknown."""
    sums = [part_of(record, "checksums").get(name) for record in (first, second)]
    return None if None in sums else sums[0] == sums[1]


def _figures(first: Record, second: Record) -> Iterator[Record]:
    for metric in (*COMPARISON_METRICS, *LAG, *PACKETS):
        values = {"first": metric.read(first), "second": metric.read(second)}
        measured: dict[str, float] = {side: value for side, value in values.items() if value is not None}
        if measured:
            both = len(measured) == 2 and measured["first"] > 0
            ratio = {"ratio": measured["second"] / measured["first"]} if both else {}
            yield {"metric": metric.name, "title": metric.title, "unit": metric.unit, **measured, **ratio}


def show(difference: Record) -> None:
    """Print the difference."""
    print_heads(difference, _head_lines)
    if difference["conditions"]:
        print_rows("conditions that differ", difference["conditions"], setting_words)
    else:
        print_lines("settings, host and versions are the same")
    if difference["counts"]:
        print_rows("counts that differ", difference["counts"], lambda _, value: f"{value:,}")
    print_lines(_streams(difference))
    figures = [{**figure, "field": _title(figure)} for figure in difference["figures"] if _is_told(difference, figure)]
    print_rows("figures", figures, lambda _, value: number(value), with_ratio=True)
    print_lines(difference["caveat"])


def _head_lines(head: Record) -> Iterator[str]:
    load = head["load_before"]
    before = f", load before {load[0]:.2f}" if load else ""
    yield f"{head['status']}, started {head['started_at'] or 'at an unknown time'}{before}"
    yield from head["reasons"]


def _streams(difference: Record) -> str:
    words = {True: "the same", False: "different", None: "not known of both"}
    streams = [f"{name} are {words[same]}" for name, same in difference["same_streams"].items()]
    counts = "" if difference["counts"] else "all counts are the same; "
    return f"{counts}by their checksums {', '.join(streams)}"


def _is_told(difference: Record, figure: Record) -> bool:
    """False for a percentile that either run has too few orders for; its maximum is in a row of its own."""
    percentile = figure["metric"].removesuffix("_us").rpartition("_")[2]
    return all(is_told(percentile, difference[side]["orders_measured"]) for side in ("first", "second"))


def _title(figure: Record) -> str:
    title, unit = figure["title"], figure["unit"]
    return title if title.startswith(unit) else f"{title}, {unit}"
