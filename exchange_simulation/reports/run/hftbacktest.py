"""The measured times of a run's sampled orders as order latency data for backtests with hftbacktest.

    spool: a gateway's samples, its engine's times of the same orders ──▶ rows of request, exchange and response time

An order is in the data if the gateway and the engine both reported it: one in `sampling_interval`, and of several that
the engine answers at once the newest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exchange.instances import instance_of
from exchange.json_records import UnusableRecord, check
from exchange.records import MATCHED, SAMPLE, MatchedPayload, SamplePayload
from exchange_simulation.launching.errors import writing
from exchange_simulation.launching.files import whole_file
from exchange_simulation.launching.record.reading import damaged_file_error, spool_records

ORDER_LATENCY = np.dtype([("req_ts", "<i8"), ("exch_ts", "<i8"), ("resp_ts", "<i8"), ("_padding", "<i8")])
"""The row that hftbacktest reads: ns since 1970."""


@dataclass(frozen=True)
class OrderLatencies:
    """The rows of a run, and how many sampled orders have none."""

    rows: npt.NDArray[np.void]
    """In the order of their requests, of dtype ORDER_LATENCY."""
    sampled: int
    """Orders that a gateway reported."""
    without_exchange_time: int
    """Sampled orders that no engine reported: the engine answered a later sampled order at the same time."""
    out_of_order: int
    """Orders whose times do not follow each other, as where gateway and engine have different clocks."""


@dataclass(frozen=True)
class _Sample:
    request_ns: int
    response_ns: int
    to_wall_ns: int
    """What turns a time of the host's monotonic clock into ns since 1970."""


def order_latencies(folder: Path) -> OrderLatencies:
    """Return the order latencies of a run. UserError if its spool cannot be read."""
    samples: dict[tuple[int, int], _Sample] = {}
    exchange_ns: dict[tuple[int, int], int] = {}
    for record in spool_records(folder):
        payload = record["payload"]
        try:
            if record["kind"] == SAMPLE:
                check(payload, SamplePayload)
                to_wall_ns = record["wall_ns"] - record["monotonic_ns"]
                sample = _Sample(payload["handed_over_ns"], payload["answered_ns"], to_wall_ns)
                samples[instance_of(record["source"]), payload["id"]] = sample
            elif record["kind"] == MATCHED:
                check(payload, MatchedPayload)
                exchange_ns[instance_of(record["source"]), payload["id"]] = payload["matched_ns"]
        except UnusableRecord as error:
            raise damaged_file_error(f"{folder / 'spool'}, a record of kind {record['kind']},", str(error)) from error
    return _joined(samples, exchange_ns)


def _joined(samples: dict[tuple[int, int], _Sample], exchange_ns: dict[tuple[int, int], int]) -> OrderLatencies:
    """Join the times of the gateways and of the engines by pair and order."""
    rows: list[tuple[int, int, int, int]] = []
    without_exchange_time = 0
    out_of_order = 0
    for order, sample in samples.items():
        matched_ns = exchange_ns.get(order)
        if matched_ns is None:
            without_exchange_time += 1
        elif sample.request_ns <= matched_ns <= sample.response_ns:
            to_wall_ns = sample.to_wall_ns
            request_ns = sample.request_ns + to_wall_ns
            response_ns = sample.response_ns + to_wall_ns
            rows.append((request_ns, matched_ns + to_wall_ns, response_ns, 0))
        else:
            out_of_order += 1
    return OrderLatencies(np.array(sorted(rows), ORDER_LATENCY), len(samples), without_exchange_time, out_of_order)


def write_order_latencies(latencies: OrderLatencies, path: Path) -> None:
    """Write the rows as an .npz file. ClickException or UserError if it cannot be written."""
    with writing(path), whole_file(path) as file:
        np.savez_compressed(file, data=latencies.rows)
