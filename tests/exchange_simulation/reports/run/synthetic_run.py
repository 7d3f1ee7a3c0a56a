"""A run's folder as the documents describe it, with made-up measurements."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from exchange.measurements import BUCKETS, LogBuckets, bucket_of

START_NS = 1_763_700_000_000_000_000
INTERVAL = 10_000
ANSWERS_PER_ORDER = 2.43


@dataclass
class SyntheticRun:
    """Whole seconds at one rate, with a stall in second 31; `scheduled=False` is a run as fast as it goes."""

    seconds: int = 5
    orders_per_s: int = 8_000
    scheduled: bool = True
    nagle: tuple[str, ...] = ()
    """The components that have Nagle's algorithm. A run with the component "broker" went over AMQP."""
    lines: list[dict[str, Any]] = field(default_factory=list)
    totals: dict[str, LogBuckets] = field(default_factory=dict)

    @property
    def has_broker(self) -> bool:
        return "broker" in self.nagle

    @property
    def orders(self) -> int:
        return self.seconds * self.orders_per_s

    def write(self, folder: Path, **changed: Any) -> Path:
        """The folder, with fields of run.json replaced by those given."""
        (folder / "spool").mkdir(parents=True)
        for second in range(self.seconds):
            self._measure(second)
        for sample in range(1, self.orders // INTERVAL + 1):
            self._sample(sample)
        lines = b"".join(orjson.dumps(line) + b"\n" for line in self.lines)
        (folder / "spool" / "000001.jsonl").write_bytes(lines)
        (folder / "run.json").write_bytes(orjson.dumps({**run_json(self), **changed}))
        return folder

    def _measure(self, second: int) -> None:
        random = np.random.default_rng(second)
        handed_over_ns = random.lognormal(np.log(190e3), 0.35, self.orders_per_s)
        handed_over_ns[: self.orders_per_s // 50] += 4e6 * (second == 31)
        lag_ns = random.lognormal(np.log(9e3), 0.6, self.orders_per_s)
        self._complete(second, "handed_over", handed_over_ns)
        if self.scheduled:
            self._complete(second, "due", handed_over_ns + lag_ns)
            self._complete(second, "lag", lag_ns)
        sent = self.orders_per_s + int(random.normal(0, 12))
        received = int(sent * ANSWERS_PER_ORDER)
        traffic = {"orders_sent": sent, "orders_answered": sent, "messages_received": received}
        self._add("gateway", "traffic", second + 1, {"second": second, **traffic})
        for source, cores in (("gateway", 0.41), ("engine", 0.22)):
            cpu_s = cores * (second + 1) + random.normal(0, 0.01)
            self._add(source, "process", second + 1, {"second": second, "cpu_s": cpu_s})

    def _complete(self, second: int, clock: str, values: np.ndarray) -> None:
        ns = values.astype(np.int64)
        counts = np.bincount(bucket_of(ns), minlength=BUCKETS)
        buckets = LogBuckets(counts, int(ns.sum()), int(ns.min()), int(ns.max()))
        self.totals.setdefault(clock, LogBuckets()).merge(buckets)
        sparse = {name: np.asarray(value).tolist() for name, value in buckets.sparse().items()}
        self._add(
            "gateway", "completion", second + 1, {"second": second, "clock": clock, "last_order": False, **sparse}
        )

    def _sample(self, sample: int) -> None:
        factors = {1: 1.0, 2: 0.998, 3: ANSWERS_PER_ORDER, 4: ANSWERS_PER_ORDER * 0.998}
        for meter, factor in factors.items():
            reading = {"meter": meter, "rate_per_s": factor * self.orders_per_s}
            source = "gateway" if meter in (1, 4) else "engine"
            self._add(source, "throughput", sample * INTERVAL / self.orders_per_s, reading)

    def _add(self, source: str, kind: str, at_s: float, payload: dict[str, Any]) -> None:
        clocks = {"wall_ns": START_NS + int(at_s * 1e9), "monotonic_ns": 5 + int(at_s * 1e9)}
        head = {"schema": 1, "run": "9f3c0a7716d2e845", "source": source, "kind": kind}
        self.lines.append({**head, **clocks, "payload": payload})


def run_json(run: SyntheticRun) -> dict[str, Any]:
    """The record of such a run."""
    figures = {clock: buckets.figures_us() for clock, buckets in run.totals.items()}
    offered = {"offered_orders_per_s": float(run.orders_per_s)} if run.scheduled else {}
    return {
        "schema": 1,
        "name": "20251121-030512-zeromq-8000-9f3c0a",
        "status": "complete",
        "reasons": [],
        "settings": _settings(run),
        "counts": _counts(run),
        "checksums": {"hash": "xxh64", "orders": "3b0f6a1e77c2d954", "answers": "a92c41d05be8f613"},
        "rates": {**offered, "orders_per_s": run.orders_per_s * 0.99997, "answers_per_s": run.orders_per_s * 2.4},
        "completion_us": {clock: figures[clock] for clock in ("handed_over", "due") if clock in figures},
        **({"lag_us": figures["lag"]} if "lag" in figures else {}),
        "analysis": {"warm_up_s": 0.0, "left_out": "the warm-up's seconds, and the last order"},
        "components": _components(run),
        "sockets": [_socket(run)],
        "host": HOST,
        "versions": VERSIONS,
        "started_at": "2025-11-21T03:05:12+00:00",
        "duration_s": run.seconds * 1.00004,
    }


HOST = {
    "cpu_model": "AMD EPYC 7R13 Processor",
    "cores": 8,
    "memory_bytes": 33_285_996_544,
    "kernel": "Linux 6.1.0-18-amd64",
    "congestion_control": "cubic",
    "load_before": [0.12, 0.2, 0.18],
}
VERSIONS = {"python": "3.11.9", "exchange": "0.1.0", "libraries": {"pyzmq": "27.1.0", "numba": "0.66.0"}}


def _settings(run: SyntheticRun) -> dict[str, Any]:
    if run.has_broker:
        transport = {"transport": "amqp", "url": "amqp://guest:***@localhost:5672/"}
    else:
        transport = {"transport": "zeromq", "url": "zeromq://127.0.0.1:5601"}
    return {
        **transport,
        "nagle": list(run.nagle),
        "orders_per_s": float(run.orders_per_s) if run.scheduled else None,
        "orders": run.orders,
        "seed": 7,
        "warm_up_s": 0.0,
        "sampling_interval": INTERVAL,
        "policy": "price-time",
        "max_price": 999,
        "packing": 1,
        "window": None if run.scheduled else 4096,
        "topology": "one host",
        "cpus": {"gateway": [1], "engine": [2]},
    }


def _counts(run: SyntheticRun) -> dict[str, int]:
    answers = int(run.orders * ANSWERS_PER_ORDER)
    return {
        "orders_sent": run.orders,
        "orders_received": run.orders,
        "answers_sent": answers,
        "answers_received": answers,
        "statistics_sent": 99,
        "statistics_received": 99,
        "trades": int(run.orders * 1.478),
        "confirmations": int(run.orders * 0.57),
        "quotes": int(run.orders * 0.383),
        "rejections": 0,
        "junk_frames": 0,
        "handshakes_refused": 0,
        "samples": run.orders // INTERVAL,
    }


def _components(run: SyntheticRun) -> dict[str, dict[str, float]]:
    switches = {"voluntary_context_switches": 81_234, "involuntary_context_switches": 412}
    return {
        "gateway": {"cpu_s": 0.41 * run.seconds, "max_rss_bytes": 140_000_000, **switches},
        "engine": {"cpu_s": 0.22 * run.seconds, "max_rss_bytes": 118_000_000, **switches},
        "reporter": {"cpu_s": 0.03 * run.seconds, "max_rss_bytes": 61_000_000},
        **({"broker": {"cpu_s": 0.71 * run.seconds, "max_rss_bytes": 190_000_000}} if run.has_broker else {}),
    }


def _socket(run: SyntheticRun) -> dict[str, Any]:
    return {
        "component": "gateway",
        "local": "127.0.0.1:41234",
        "peer": "127.0.0.1:5601",
        "tcp_nodelay": True,
        "segments_out": run.orders,
        "bytes_out": run.orders * 19,
        "segments_in": run.orders,
        "bytes_in": 0,
        "retransmits": 0,
    }
