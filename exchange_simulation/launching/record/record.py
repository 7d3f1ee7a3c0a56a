"""run.json: the public record of a run, made of its components' results; docs/run-record.md documents it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from exchange.json_records import SCHEMA
from exchange.measurements import LogBuckets
from exchange.results import ReporterResult
from exchange.workload import Arrivals
from exchange_simulation.launching.files import write_json
from exchange_simulation.launching.record.outcome import (
    Outcome,
    checksums,
    components,
    counts,
    duration_s,
    mean_message,
    rates,
    recovered,
)
from exchange_simulation.launching.record.reading import Spool, completion, merged, timed, traffic
from exchange_simulation.launching.record.status import judge


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The launcher's knowledge of a run. An unknown field is None; unknown settings are left out."""

    name: str
    url: str | None
    settings: dict[str, Any]
    host: dict[str, Any]
    versions: dict[str, str]
    started_at: str


def write_record(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Write run.json, the last file that a run itself writes; return its content."""
    write_json(folder / "run.json", record)
    return record


def exit_code(record: dict[str, Any]) -> int:
    """0 for complete and saturated, 1 for invalid and partial."""
    return 0 if record["status"] in {"complete", "saturated"} else 1


def make_record(spool: Spool, conditions: Conditions, outcome: Outcome) -> dict[str, Any]:
    """run.json's content: sums over all pairs, then each pair by itself. `spool` are the run's own records."""
    settings = conditions.settings
    if len(outcome.gateways) < len(outcome.lineup.pairs):
        outcome = replace(outcome, traffic=traffic(spool))
    if outcome.restarts:
        outcome = replace(outcome, timed=timed(spool))
    warm_up_s, offered = settings.get("warm_up_s"), _offered_per_s(settings)
    by_pair = completion(spool, warm_up_s or 0.0)
    times = {pair: by_pair.get(pair, {}) for pair in outcome.lineup.pairs}
    lags = {pair: figures["lag"].percentile_ns(99.0) / 1e3 for pair, figures in times.items() if "lag" in figures}
    status, reasons = judge(outcome, offered, lags)
    return {
        "schema": SCHEMA,
        "name": conditions.name,
        "status": status,
        "reasons": reasons,
        **({"recovered": breaks} if (breaks := recovered(outcome)) else {}),
        "settings": {**settings, "url": conditions.url},
        **_measured(outcome, offered, merged(times.values())),
        "pairs": [_pair(outcome, pair, offered, times[pair], lags) for pair in outcome.lineup.pairs],
        "analysis": {"warm_up_s": warm_up_s, "left_out": "the warm-up's seconds, and the last order of each pair"},
        "sockets": [{"component": name, **facts} for name, sockets in outcome.sockets.items() for facts in sockets],
        **_broker(outcome),
        **({"noise": outcome.noise.beside(components(outcome))} if outcome.noise else {}),
        **({"affinity": outcome.affinity} if any(outcome.affinity.values()) else {}),
        **({"network": outcome.network} if outcome.network else {}),
        "host": conditions.host,
        "versions": conditions.versions,
        "started_at": conditions.started_at,
    }


def _offered_per_s(settings: dict[str, Any]) -> float | None:
    """The mean rate that each pair is offered; None without a schedule, or if the settings are not known."""
    rate = settings.get("orders_per_s")
    return None if rate is None else float(rate * Arrivals.parse(settings["arrivals"]).mean_share)


def _measured(outcome: Outcome, offered_per_s: float | None, times: dict[str, LogBuckets]) -> dict[str, Any]:
    """The fields that a run has, and each of its pairs too."""
    figures = {clock: buckets.figures_us() for clock, buckets in times.items()}
    counted = counts(outcome)
    return {
        "counts": counted,
        **mean_message(counted),
        "checksums": checksums(outcome),
        "rates": rates(outcome, offered_per_s),
        "completion_us": {clock: found for clock, found in figures.items() if clock != "lag"},
        "lag_us": figures.get("lag", {}),
        "components": components(outcome),
        "duration_s": duration_s(outcome),
    }


def _pair(
    outcome: Outcome, pair: int, offered_per_s: float | None, times: dict[str, LogBuckets], lags: dict[int, float]
) -> dict[str, Any]:
    """One pair's entry in `pairs`."""
    alone, gateway = outcome.of_pair(pair), outcome.gateways.get(pair)
    status, reasons = judge(alone, offered_per_s, lags)
    head = {"pair": pair, "seed": gateway.seed if gateway else None, "status": status, "reasons": reasons}
    return head | _measured(alone, offered_per_s, times)


def _broker(outcome: Outcome) -> dict[str, Any]:
    """`broker`: what it is, and what it did with each end's messages; empty without a broker."""
    if outcome.broker is None:
        return {}
    ends = {name: result for name, result in outcome.results.items() if not isinstance(result, ReporterResult)}
    return {"broker": {**outcome.broker, "links": {name: end.link for name, end in ends.items()}}}
