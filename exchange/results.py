"""A component's result at the end of a run: counts and checksum of each direction, and its use of the machine.

The checksum of a direction is XXH64 with seed 0 over its business messages, one after the other. It leaves out packing
boundaries, hello, end and junk. So equal streams have equal checksums on every transport, and `xxhsum -H64 tape.bin`
agrees with the checksum of a run over that tape. A result travels to the reporter in a record.
"""

from __future__ import annotations

import contextlib
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

NAME = "xxh64"


class HashedStream(Protocol):
    """Takes the bytes of a direction in order, and has their checksum; see checksum.py."""

    keeps_bytes: bool
    state: npt.NDArray[np.uint8]

    @property
    def value(self) -> int: ...

    @property
    def hex(self) -> str: ...

    def update(self, data: npt.NDArray[np.uint8]) -> None: ...

    def flush(self) -> None:
        """Let the bytes that are kept outlive this process, even if it is killed next. OSError."""


@dataclass(frozen=True)
class GatewayStreams:
    """The streams of a gateway."""

    orders: HashedStream
    answers: tuple[HashedStream, ...]
    """The answers of each engine, engine 1 first."""


@dataclass(kw_only=True)
class StreamCounts:
    """A direction's business messages, and their checksum as hex."""

    messages: int = 0
    checksum: str = ""


@dataclass(kw_only=True)
class SessionAtEngine:
    """A gateway's session at one of several engines."""

    engine: int
    """The engine's number."""
    orders: StreamCounts
    """Orders that the link took."""
    answers: StreamCounts
    engine_said: dict[str, Any] | None
    """The engine's end."""


@dataclass(kw_only=True)
class GatewayResult:
    settings: dict[str, Any]
    """The run's settings."""
    seed: int = 0
    """The seed of this pair's orders."""
    orders: StreamCounts
    answers: StreamCounts
    orders_answered: int
    trades: int
    confirmations: int
    quotes: int
    rejections: int
    cancelled: int = 0
    """Answers that an order, or what was left of it, was cancelled."""
    replaced: int = 0
    """Answers that an order was replaced."""
    junk_frames: int
    samples: int
    began_wall_ns: int = 0
    """Time at which the first order was handed over."""
    duration_s: float | None
    """From the first order's hand-over to the last answer; None where nothing was answered."""
    handing_over_s: float | None = None
    """From the first order's hand-over to the last one's; None where nothing was handed over."""
    schedule_s: float | None = None
    """From the first order's due time to the last one's; None where nothing was due."""
    due_at_once: int = 1
    """The most orders that were due at the same time."""
    backlog_growth: int
    """Unanswered orders when the last was sent, minus those at three quarters of the way."""
    usage: dict[str, Any]
    sockets: list[dict[str, Any]]
    """Sockets of the connection to the engine at the end: local, peer, tcp_nodelay, tcp_nodelay_asked, and the
    kernel's counters since the session began: segments_out, segments_in, bytes_out, bytes_in, retransmits."""
    engine_said: dict[str, Any] | None
    """The engine's end: sent, sent_checksum, received, received_checksum; of several engines, the sums."""
    sessions: list[SessionAtEngine] = field(default_factory=list)
    """The sessions at several engines, of whose checksums that of `answers` is the sum; empty for one engine."""
    link: dict[str, Any] = field(default_factory=dict)
    """Other facts of the link to the engine: over a broker, its confirms, pauses and redeliveries."""
    recovery: dict[str, Any] | None = None
    """Its recovery from breaks: sessions, orders_resent, without_service_s; None where a break ends the run."""
    statistics_sent: int = 0
    stopped: str | None = None
    """Why the run ended early, as a sentence."""


@dataclass(kw_only=True)
class SessionResult:
    """A gateway's session at an engine that several gateways share."""

    gateway: int
    """The gateway's number."""
    orders: StreamCounts
    answers: StreamCounts
    """Answers that the link took."""
    gateway_said: dict[str, Any] | None
    """The gateway's end."""
    undelivered: int = 0
    """Answers that came up for the gateway after it was dropped, or that waited then."""
    dropped: str | None = None
    """Why the engine ended the session before the gateway's end, as a sentence."""


@dataclass(kw_only=True)
class MarketResult:
    """The messages that an engine took from several gateways, and its answers, in its own order and with market ids."""

    orders: StreamCounts
    answers: StreamCounts
    """Each answer once, also a quote, however many gateways get it."""
    quotes: int
    receivers_of_a_quote: int
    """How many gateways get each quote: all, or none."""


@dataclass(kw_only=True)
class EngineResult:
    orders: StreamCounts
    answers: StreamCounts
    junk_frames: int
    handshakes_refused: int
    usage: dict[str, Any]
    sockets: list[dict[str, Any]]
    gateway_said: dict[str, Any] | None
    """The gateway's end."""
    link: dict[str, Any] = field(default_factory=dict)
    journal: dict[str, Any] | None = None
    """Its input journal: orders, bytes, syncs, and what was matched again; None without one."""
    sessions: list[SessionResult] = field(default_factory=list)
    """The sessions of several gateways, of which `orders` and `answers` are the sums; empty for one gateway."""
    market: MarketResult | None = None
    """None for one gateway."""
    market_data: dict[str, Any] | None = None
    """Published market data: messages, checksum, frames_dropped, waited_s, snapshots, ...; None without subscribers."""
    statistics_sent: int = 0
    stopped: str | None = None


@dataclass(kw_only=True)
class SubscriberResult:
    """Market data that a subscriber received. A message is a record with a sequence number."""

    messages: int
    trades: int
    quotes: int
    levels: int
    """Changes of price levels, where depth was asked for."""
    gaps: int
    missed: int
    """Messages in the gaps, and behind the last one."""
    before: int
    """Messages before the subscriber joined."""
    repeated: int
    """Messages whose number had come already."""
    snapshots: int
    checksum: str
    """The checksum of the messages received, in order."""
    engine_said: dict[str, Any] | None
    """The engine's end: sent, sent_checksum; None with several engines."""
    delivery: dict[str, Any] | None
    """Log buckets of the times from the engine's reading of an order to its message; None from another host."""
    junk_frames: int
    usage: dict[str, Any]
    sockets: list[dict[str, Any]] = field(default_factory=list)
    link: dict[str, Any] = field(default_factory=dict)
    feeds: list[SubscriberResult] = field(default_factory=list)
    """With several engines, what was received of each feed, of which the other fields are the sums; else empty."""
    stopped: str | None = None


@dataclass(kw_only=True)
class ReporterResult:
    received: int
    """Messages of all sources together."""
    announced: int
    """Messages that the sources' ends announce."""
    checksums_agree: bool
    junk_frames: int
    handshakes_refused: int
    samples: int
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The other components' results, by source."""
    usage: dict[str, Any] = field(default_factory=dict)
    sockets: list[dict[str, Any]] = field(default_factory=list)
    """Sockets of the connections to the sources."""
    stopped: str | None = None


ComponentResult = GatewayResult | EngineResult | ReporterResult | SubscriberResult


def rss_bytes() -> int | None:
    """Resident memory now; None where the system has no /proc, or hides it."""
    return _memory_of_status("VmRSS")


def max_rss_bytes() -> int:
    """Peak resident memory. getrusage includes the parent's pages before exec, so Linux's own line is preferred."""
    peak_of_status = _memory_of_status("VmHWM")
    if peak_of_status is not None:
        return peak_of_status
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _memory_of_status(name: str) -> int | None:
    """Return the bytes that this process's status has in the line `name`; None where there is no such line."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # some containers hide /proc
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith(name):
                    return int(line.split()[1]) * 1024
    return None


@dataclass(frozen=True)
class ResourceUsage:
    """Counters of this process, or of this thread where components are threads of one process."""

    cpu_ns: int
    voluntary: int
    involuntary: int

    @classmethod
    def now(cls, thread_only: bool = False) -> ResourceUsage:
        scope = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF) if thread_only else resource.RUSAGE_SELF
        usage = resource.getrusage(scope)
        cpu_ns = time.thread_time_ns() if thread_only else time.process_time_ns()
        return cls(cpu_ns, usage.ru_nvcsw, usage.ru_nivcsw)

    def since(self, start: ResourceUsage) -> dict[str, Any]:
        """Usage since an earlier reading: a component's entry in run.json."""
        return {
            "cpu_s": (self.cpu_ns - start.cpu_ns) / 1e9,
            "max_rss_bytes": max_rss_bytes(),
            "voluntary_context_switches": self.voluntary - start.voluntary,
            "involuntary_context_switches": self.involuntary - start.involuntary,
        }

    def payload(self, second: int, start: ResourceUsage) -> dict[str, Any]:
        """Return the payload of a second's process record: the usage since an earlier reading, and the memory now."""
        return {"second": second, **self.since(start), "rss_bytes": rss_bytes()}
