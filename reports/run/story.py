"""What the page's template is told beside run.json itself."""

from __future__ import annotations

from typing import Any

from reports.formats import is_number
from reports.run.run_folder import Record, part
from reports.run.sentences import circumstances, title

MEANINGS = {
    "complete": "all orders were sent, and counts, checksums and read-backs agree.",
    "partial": "the run ended early; what was measured until then is shown.",
    "invalid": "counts, checksums or read-backs disagree; do not use these figures.",
    "saturated": "the run is valid, but did not keep up with the offered load.",
}

SOCKET_COUNTERS = ("segments_out", "bytes_out", "segments_in", "bytes_in", "retransmits")


def told(run: Record) -> dict[str, Any]:
    """The template's names."""
    return {
        "run": run, "title": title(run), "circumstances": circumstances(run), "scheduled": is_scheduled(run),
        "meaning": MEANINGS.get(str(run.get("status"))), "clocks": clocks(run),
        "answers_per_order": answers_per_order(run), "mean_cores": mean_cores(run),
        "both_ends": both_ends(run), "other_counts": other_counts(run), "socket_counters": socket_counters(run),
    }  # fmt: skip


def is_scheduled(run: Record) -> bool:
    """A run as fast as it goes has an offered rate of null, so neither due times nor lag."""
    return part(run, "settings").get("orders_per_s", 0) is not None


def clocks(run: Record) -> list[tuple[str, Record]]:
    """The rows of the percentile table."""
    completion = part(run, "completion_us")
    rows = [("from handing over", part(completion, "handed_over"))]
    if is_scheduled(run):
        rows += [("from due time", part(completion, "due")), ("lag", part(run, "lag_us"))]
    return rows


def answers_per_order(run: Record) -> float | None:
    orders, answers = (part(run, "counts").get(name) for name in ("orders_sent", "answers_received"))
    return answers / orders if is_number(orders) and is_number(answers) and orders else None


def both_ends(run: Record) -> list[str]:
    """What is counted where it is sent and where it is received; orders and answers always."""
    counts = part(run, "counts")
    sent = [name.removesuffix("_sent") for name in counts if name.endswith("_sent")]
    return list(dict.fromkeys(["orders", "answers", *(what for what in sent if f"{what}_received" in counts)]))


def other_counts(run: Record) -> Record:
    """What is counted at one end only."""
    paired = {f"{what}_{end}" for what in both_ends(run) for end in ("sent", "received")}
    return {name: count for name, count in part(run, "counts").items() if name not in paired}


def socket_counters(run: Record) -> list[str]:
    """What any socket was measured for."""
    sockets = [socket for socket in run.get("sockets") or [] if isinstance(socket, dict)]
    return [name for name in SOCKET_COUNTERS if any(is_number(socket.get(name)) for socket in sockets)]


def mean_cores(run: Record) -> dict[str, float]:
    """CPU time over the length of the run, by component."""
    duration_s = run.get("duration_s")
    if not is_number(duration_s) or duration_s <= 0:
        return {}
    used = {name: part(run["components"], name).get("cpu_s") for name in part(run, "components")}
    return {name: cpu_s / duration_s for name, cpu_s in used.items() if is_number(cpu_s)}
