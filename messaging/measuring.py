"""One repeat of one cell: its roles play, then the answer is checked and the figures are reckoned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from messaging.benchmark import Benchmark, Cell, Figures
from messaging.crew import Crew, Died, Outcome
from messaging.progress import delivering
from messaging.roles import Told
from messaging.stage import Stage
from messaging.words import cell_in_words
from runs.broker.broker_of_run import OurNode
from runs.record.noise import NoiseMeter
from transports.rabbitmq import NodeUsage

Record = dict[str, Any]
COMPLETE, INVALID, PARTIAL = "complete", "invalid", "partial"


def measure(benchmark: Benchmark, cell: Cell, stage: Stage, patience_s: float) -> Record:
    """What came of it; `status` partial where a role was lost, invalid where the answer is wrong."""
    broker, noise = stage.brokers.get(cell.transport), NoiseMeter()
    node = broker.node if broker else None
    usage: list[Any] = []

    def read_clocks() -> None:
        usage.append(used_by(node) if node else None)
        (noise.clock_stops if len(usage) > 1 else noise.clock_starts)()

    with stage.places(cell.transport) as places:
        roles = benchmark.roles(cell, places)
        benchmark.prepare(cell, roles)
        with (
            Crew(roles, stage.group, stage.in_threads(cell.transport), patience_s) as crew,
            delivering(f"{benchmark.name}, {cell_in_words(cell)}", roles) as on_count,
        ):
            outcome = crew.play(read_clocks, read_clocks, on_count)
    used = {name: told.usage for name, told in outcome.told.items()}
    of_broker = usage[1].since(usage[0]) if node and len(usage) > 1 else None
    return {
        **_judged(benchmark, cell, outcome),
        "roles": {name: _as_record(told) for name, told in outcome.told.items()},
        "broker": of_broker,
        "noise": noise.noise.beside({**used, **({"broker": of_broker} if of_broker else {})}) if noise.noise else None,
    }


def used_by(node: OurNode) -> NodeUsage:
    """Died where it is no longer there: its clients' reasons would only say that it closed their connections."""
    try:
        return node.usage()
    except OSError as error:
        raise Died("the broker ended in the middle") from error


def _judged(benchmark: Benchmark, cell: Cell, outcome: Outcome) -> Record:
    if outcome.died:
        return {"status": PARTIAL, "reasons": [outcome.died], "figures": {}}
    reasons = benchmark.judge(cell, outcome.told)
    return {
        "status": INVALID if reasons else COMPLETE,
        "reasons": reasons,
        "figures": {} if reasons else benchmark.figures(cell, outcome.told),
    }


def with_cpu(record: Record, has_broker: bool) -> Figures:
    """Cores in use and context switches a message, of the broker and of each kind of role, beside the other figures.

    And packets a message over TCP, in all: acknowledgements without data, and what opened the links, are among them.
    """
    noise, sent = record["noise"], sum(told["sent"] for told in record["roles"].values())
    if not record["figures"] or not noise or noise["window_s"] <= 0:
        return dict(record["figures"])
    used: dict[str, list[Mapping[str, Any]]] = {}
    for name, told in record["roles"].items():
        used.setdefault(name.partition(" ")[0], []).append(told["usage"])
    if record["broker"]:
        used["broker"] = [record["broker"]]
    found = dict(record["figures"])
    if packets := _packets(record, has_broker):
        found["packets_per_message"] = packets / max(sent, 1)
    for kind, usages in used.items():
        found[f"{kind}_cores"] = sum(usage["cpu_s"] for usage in usages) / noise["window_s"]
        switches = sum(usage["voluntary_context_switches"] + usage["involuntary_context_switches"] for usage in usages)
        found[f"{kind}_switches_per_message"] = switches / max(sent, 1)
    return found


def _packets(record: Record, has_broker: bool) -> int:
    """Without a broker both ends of a connection are ours, so what one sent is counted, and not again as received."""
    counted = ("segments_out", "segments_in") if has_broker else ("segments_out",)
    sockets = [socket for told in record["roles"].values() for socket in told["sockets"]]
    return sum(socket.get(name, 0) for socket in sockets for name in counted)


def _as_record(told: Told) -> Record:
    """Checksums in hex; the histogram's figures in place of its buckets."""
    record = asdict(told)
    record["latency_us"] = told.latency.figures_us() if told.latency else {}
    del record["latency"]
    return {**record, **{name: f"{record[name]:016x}" for name in ("sent_checksum", "received_checksum")}}
