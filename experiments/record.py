"""run.json: the public record of a run, made of what its components said; docs/results.md documents it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exchange.arrivals import Arrivals
from exchange.checksum import NAME
from exchange.results import EngineResult, GatewayResult, ReporterResult, StreamCounts
from experiments.packets.of_run import FILE as CAPTURE
from experiments.run_folder import write_json
from experiments.spool import completion
from experiments.status import Outcome, judge

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What is known of a run beside what its components said; None, and settings left out, where it is not."""

    name: str
    url: str | None
    settings: dict[str, Any]
    host: dict[str, Any]
    versions: dict[str, str]
    started_at: str


def write_record(folder: Path, conditions: Conditions, outcome: Outcome) -> dict[str, Any]:
    """Put run.json into the folder, last of what the run itself writes; its content."""
    record = make_record(folder, conditions, outcome)
    write_json(folder / "run.json", record)
    return record


def exit_code(record: dict[str, Any]) -> int:
    """0 for complete and saturated, 1 for invalid and partial."""
    return 0 if record["status"] in {"complete", "saturated"} else 1


def make_record(folder: Path, conditions: Conditions, outcome: Outcome) -> dict[str, Any]:
    settings = conditions.settings
    warm_up_s, offered = settings.get("warm_up_s"), _offered_per_s(settings)
    figures = {clock: b.figures_us() for clock, b in completion(folder, warm_up_s or 0.0).items()}
    lag = figures.pop("lag", {})
    status, reasons = judge(outcome, offered, lag.get("p99"))
    record = {
        "schema": SCHEMA,
        "name": conditions.name,
        "status": status,
        "reasons": reasons,
        "settings": {**settings, "url": conditions.url},
        "counts": _counts(outcome),
        "checksums": _checksums(outcome.gateway),
        "rates": _rates(outcome.gateway, offered),
        "completion_us": figures,
        "lag_us": lag,
        "analysis": {"warm_up_s": warm_up_s, "left_out": "the warm-up's seconds, and the last order"},
        "components": _components(outcome),
        "sockets": _sockets(outcome),
        **_broker(outcome),
        **({"noise": outcome.noise.beside(_components(outcome))} if outcome.noise else {}),
        **({"network": outcome.network} if outcome.network else {}),
        "host": conditions.host,
        "versions": conditions.versions,
        "started_at": conditions.started_at,
        "duration_s": outcome.gateway.duration_s if outcome.gateway else None,
    }
    if outcome.capture:
        from experiments.packets.check import held_against

        record["capture"] = held_against(record, folder / CAPTURE, outcome.capture)
    return record


def _offered_per_s(settings: dict[str, Any]) -> float | None:
    """Over the whole run; None where there was no schedule, or no settings are known."""
    rate = settings.get("orders_per_s")
    return None if rate is None else float(rate * Arrivals.parse(settings["arrivals"]).mean_share)


def _counts(outcome: Outcome) -> dict[str, int]:
    gateway, engine, reporter = outcome.gateway, outcome.engine, outcome.reporter
    counts: dict[str, int] = {}
    if gateway:
        counts |= {"orders_sent": gateway.orders.messages, "answers_received": gateway.answers.messages}
        counts |= {name: getattr(gateway, name) for name in ("orders_answered", "trades", "confirmations", "quotes")}
        counts |= {"rejections": gateway.rejections, "samples": gateway.samples}
    if engine:
        counts |= {"orders_received": engine.orders.messages, "answers_sent": engine.answers.messages}
    if reporter:
        counts |= {"statistics_sent": reporter.announced, "statistics_received": reporter.received}
    present = [result for result in (gateway, engine, reporter) if result is not None]
    counts["junk_frames"] = sum(result.junk_frames for result in present)
    refusing = [result for result in (engine, reporter) if result is not None]
    counts["handshakes_refused"] = sum(result.handshakes_refused for result in refusing)
    return counts


def _checksums(gateway: GatewayResult | None) -> dict[str, str]:
    if gateway is None:
        return {"hash": NAME}
    return {"hash": NAME, "orders": gateway.orders.checksum, "answers": gateway.answers.checksum}


def _rates(gateway: GatewayResult | None, offered: float | None) -> dict[str, float | None]:
    """From the first order's hand-over to the last answer; the offered rate is null where there was no schedule."""
    rates = {"offered_orders_per_s": offered}
    if gateway and gateway.duration_s:
        rates["orders_per_s"] = gateway.orders_answered / gateway.duration_s
        rates["answers_per_s"] = gateway.answers.messages / gateway.duration_s
    return rates


def _components(outcome: Outcome) -> dict[str, dict[str, Any]]:
    results = {"gateway": outcome.gateway, "engine": outcome.engine, "reporter": outcome.reporter}
    used = {role: result.usage for role, result in results.items() if result is not None}
    return used | ({"broker": outcome.broker_usage} if outcome.broker_usage else {})


def _broker(outcome: Outcome) -> dict[str, Any]:
    """What the broker is, and what it did with each end's messages; nothing where there is none."""
    if outcome.broker is None:
        return {}
    ends = {"gateway": outcome.gateway, "engine": outcome.engine}
    return {"broker": {**outcome.broker, "links": {role: end.link for role, end in ends.items() if end}}}


def _sockets(outcome: Outcome) -> list[dict[str, Any]]:
    """Every end of a connection that was read back, with its counters over the session where it is a component's."""
    return [{"component": role, **facts} for role, sockets in outcome.sockets.items() for facts in sockets]


def engine_result(payload: dict[str, Any] | None) -> EngineResult | None:
    """An engine's result from its record."""
    return EngineResult(**_with_streams(payload)) if payload else None


def gateway_result(payload: dict[str, Any] | None) -> GatewayResult | None:
    """A gateway's result from its record."""
    return GatewayResult(**_with_streams(payload)) if payload else None


def reporter_result(payload: dict[str, Any] | None) -> ReporterResult | None:
    """A reporter's result from its record."""
    return ReporterResult(**payload) if payload else None


def _with_streams(payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "orders": StreamCounts(**payload["orders"]), "answers": StreamCounts(**payload["answers"])}
