"""Made-up runs, in the format that docs/spool.md describes, with the raw times beside the buckets."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exchange.instances import named, spool_file
from exchange.measurements import CLOCKS, LogBuckets

Times = npt.NDArray[np.int64]
Record = dict[str, Any]

START_WALL_NS = 1_763_700_000_123_456_789
START_MONOTONIC_NS = 5_000_000_000
METERS = (1, 2, 3, 4)
CORES = {"gateway": 0.75, "engine": 0.5}
SESSION = {"version": "0.1.0", "policy": "price-time", "packing": 1, "max_price": 999}


def completion_times_ns(random: np.random.Generator, orders: int) -> Times:
    """Lognormal, and one in fifty waits for an acknowledgement that Nagle's algorithm delays."""
    fast = random.lognormal(np.log(190e3), 0.35, orders)
    delayed = random.random(orders) < 0.02
    return np.where(delayed, 40e6 + random.normal(0, 3e6, orders), fast).astype(np.int64)


def completion_payload(second: int, clock: str, times_ns: Times, last_order: bool = False) -> dict[str, Any]:
    return {"second": second, "clock": clock, "last_order": last_order, **LogBuckets.of(times_ns).as_lists()}


def record(kind: str, payload: dict[str, Any], source: str = "gateway", at_s: float = 0.0) -> Record:
    """A line of the spool, written `at_s` seconds after the gateway's first order."""
    passed_ns = round(at_s * 1e9)
    clocks = {"wall_ns": START_WALL_NS + passed_ns, "monotonic_ns": START_MONOTONIC_NS + passed_ns}
    return {"schema": 1, "run": "9f3c0a7716d2e845", "source": source, "kind": kind, **clocks, "payload": payload}


@dataclass
class MadeUpRun:
    """`seconds` whole seconds and a quarter of one more, in which only the last order is answered."""

    seconds: int = 4
    orders_per_s: int = 2_000
    samples: int = 8
    pair: int = 1
    reporters: int = 1
    times_ns: dict[tuple[str, int], Times] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        for role in CORES:
            self._add("session", SESSION, role, 0.0)
        for second in range(self.seconds):
            self._add_second(second)
        self._add_last_order()
        for number in range(1, self.samples + 1):
            self._add("sample", sample(number), "gateway", number / 4)
        closing = {"announced": 99, "received": 99, "reporters": self.reporters}
        self._add("end", closing, "reporter", self.seconds + 0.26)

    def _add(self, kind: str, payload: dict[str, Any], role: str, at_s: float) -> None:
        """Add a record of this pair's component."""
        self.records.append(record(kind, payload, named(role, self.pair), at_s))

    def times_of_whole_seconds(self, clock: str) -> Times:
        """Return the completion times of all orders except the last one, ns."""
        return np.concatenate([self.times_ns[clock, second] for second in range(self.seconds)])

    def write(self, folder: Path, *extra_lines: str, **settings: Any) -> Path:
        """Write the run, its spool in two files, and return the folder.

        `extra_lines` stand at the spool's end; `settings` change those of run.json.
        """
        lines = [*map(json.dumps, self.records), *extra_lines]
        (folder / "spool").mkdir(parents=True)
        for number, part in enumerate((lines[::2], lines[1::2]), start=1):
            (folder / "spool" / f"{number:06}.jsonl").write_text("".join(f"{line}\n" for line in part))
        (folder / "run.json").write_text(json.dumps(self._run_json(settings)))
        return folder

    def write_beside(self, folder: Path) -> None:
        """Add another pair, with a reporter of its own, to the run that the folder holds."""
        lines = "".join(f"{json.dumps(line)}\n" for line in self.records)
        (folder / "spool" / spool_file(1, self.pair)).write_text(lines)
        run = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({**run, "pairs": [*run.get("pairs", [{}]), {}]}))

    def _add_second(self, second: int) -> None:
        random = np.random.default_rng(1000 * (self.pair - 1) + second)
        lag_ns = random.lognormal(np.log(9e3), 0.6, self.orders_per_s).astype(np.int64)
        handed_over_ns = completion_times_ns(random, self.orders_per_s)
        times_by_clock = {"handed_over": handed_over_ns, "due": handed_over_ns + lag_ns, "lag": lag_ns}
        for clock in CLOCKS:
            times_ns = times_by_clock[clock]
            self.times_ns[clock, second] = times_ns
            self._add("completion", completion_payload(second, clock, times_ns), "gateway", second + 1.001)
        for meter in METERS:
            for in_second_s in (0.25, 0.75):
                self._add("throughput", reading(meter, second, in_second_s), source_of(meter), second + in_second_s)
        self._add_counts(second, second + 1.001, self.orders_per_s)

    def _add_last_order(self) -> None:
        time_ns = np.array([3_000_000_000], np.int64)
        for clock in CLOCKS:
            payload = completion_payload(self.seconds, clock, time_ns, last_order=True)
            self._add("completion", payload, "gateway", self.seconds + 0.25)
        self._add_counts(self.seconds, self.seconds + 0.25, 1)

    def _add_counts(self, second: int, at_s: float, orders: int) -> None:
        """Add the second's traffic, and the CPU time of each component."""
        traffic = {"orders_sent": orders, "orders_answered": orders, "messages_received": 2 * orders}
        self._add("traffic", {"second": second, **traffic}, "gateway", at_s)
        for role, cores in CORES.items():
            usage = {
                "second": second,
                "cpu_s": cores * at_s,
                "max_rss_bytes": 1 << 27,
                "voluntary_context_switches": 1,
                "involuntary_context_switches": 2,
                "rss_bytes": 1 << 26,
            }
            self._add("process", usage, role, at_s)

    def _run_json(self, settings: dict[str, Any]) -> dict[str, Any]:
        defaults = {"transport": "zeromq", "orders_per_s": float(self.orders_per_s), "warm_up_s": 0.0}
        rates = {"orders_per_s": self.orders_per_s * 0.999}
        head = {"schema": 1, "name": "made-up", "status": "complete", "reasons": []}
        return {**head, "settings": {**defaults, **settings}, "rates": rates}


def reading(meter: int, second: int, in_second_s: float) -> dict[str, Any]:
    """Return the payload of a meter's reading, taken `in_second_s` after the second began.

    Its rate tells meter, second and quarter of the second apart.
    """
    return {"meter": meter, "rate_per_s": int(1000 * meter + 10 * second + 4 * in_second_s)}


def source_of(meter: int) -> str:
    return "gateway" if meter in (1, 4) else "engine"


def sample(number: int) -> dict[str, Any]:
    """Return the payload of a sample; odd ones have no due time."""
    due_ns = number * 1000
    return {
        "id": number * 10_000,
        "due_ns": None if number % 2 else due_ns,
        "handed_over_ns": due_ns + 10,
        "answered_ns": due_ns + 250,
    }
