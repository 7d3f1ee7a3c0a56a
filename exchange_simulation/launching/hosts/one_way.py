"""One-way times of a run over several hosts: to the engine, and back to the gateway, from sampled orders.

A completion time needs the gateway's clock alone. A one-way time needs two clocks, so it is known as well as the offset
of the two clocks is known: its bound is in the record beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from exchange.instances import instance_of, named
from exchange.json_records import UnusableRecord, check
from exchange.percentiles import PERCENTS
from exchange.records import MATCHED, SAMPLE, MatchedPayload, SamplePayload
from exchange_simulation.launching.hosts.clock_offset import ClockOffset
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.record.reading import damaged_file_error, spool_records


def one_way_times(folder: Path, lineup: Lineup, clock_of: Callable[[str], ClockOffset | None]) -> dict[str, Any] | None:
    """Return run.json's `one_way_us`; None if no sampled order has both times, or a clock was not measured.

    `clock_of` returns the bounds of a component's clock minus the launcher's. The time to the engine ends when the
    engine has sent its answers. UserError if the spool cannot be read.
    """
    if lineup.is_market:
        return None
    offsets: dict[int, ClockOffset] = {}
    for pair in lineup.pairs:
        engine = clock_of(named("engine", pair))
        gateway = clock_of(named("gateway", pair))
        if engine is None or gateway is None:
            return None
        offsets[pair] = engine.minus(gateway)
    samples, matched_ns = _sampled_times(folder)
    to_engine_us = []
    back_us = []
    for order, sample in samples.items():
        if order not in matched_ns:
            continue
        pair, _ = order
        matched_by_gateways_clock_ns = matched_ns[order] - offsets[pair].middle_ns
        to_engine_us.append((matched_by_gateways_clock_ns - sample["handed_over_ns"]) / 1e3)
        back_us.append((sample["answered_ns"] - matched_by_gateways_clock_ns) / 1e3)
    if not to_engine_us:
        return None
    return {
        "count": len(to_engine_us),
        "bound": max(offset.bound_ns for offset in offsets.values()) / 1e3,
        "to_engine": _figures(to_engine_us),
        "back": _figures(back_us),
    }


def _sampled_times(folder: Path) -> tuple[dict[tuple[int, int], dict[str, Any]], dict[tuple[int, int], int]]:
    """Return the gateways' times of sampled orders, and the engines', each by pair and order."""
    samples = {}
    matched_ns = {}
    for record in spool_records(folder):
        payload = record["payload"]
        pair = instance_of(record["source"])
        try:
            if record["kind"] == SAMPLE:
                check(payload, SamplePayload)
                samples[pair, payload["id"]] = payload
            elif record["kind"] == MATCHED:
                check(payload, MatchedPayload)
                matched_ns[pair, payload["id"]] = payload["matched_ns"]
        except UnusableRecord as error:
            raise damaged_file_error(f"{folder / 'spool'}, a record of kind {record['kind']},", str(error)) from error
    return samples, matched_ns


def _figures(times_us: list[float]) -> dict[str, float]:
    """Return every percentile of these times, and the longest of them. How many there are stands beside, in `count`."""
    shares = [percent / 100 for percent in PERCENTS.values()]
    percentiles = np.quantile(times_us, shares, method="inverted_cdf")
    figures = dict(zip(PERCENTS, map(float, percentiles), strict=True))
    figures["max"] = max(times_us)
    return figures
