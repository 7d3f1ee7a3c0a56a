"""The result of each component at the end of a run; it travels to the reporter as a statistics record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True)
class StreamCounts:
    """A direction's business messages, and their checksum as hex."""

    messages: int = 0
    checksum: str = ""


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
    junk_frames: int
    samples: int
    began_wall_ns: int = 0
    """Time at which the first order was handed over."""
    duration_s: float | None
    """From the first order's hand-over to the last answer; None where nothing was answered."""
    handing_over_s: float | None = None
    """From the first order's hand-over to the last one's; None where nothing was handed over."""
    schedule_s: float | None = None
    """From when the first order was due to when the last one was; None where nothing was due."""
    due_at_once: int = 1
    """The most orders that were due at the same time."""
    backlog_growth: int
    """Unanswered orders when the last was sent, minus those at three quarters of the way."""
    usage: dict[str, Any]
    sockets: list[dict[str, Any]]
    """Sockets of the connection to the engine at the end: local, peer, tcp_nodelay, tcp_nodelay_asked, and the
    kernel's counters since the session began: segments_out, segments_in, bytes_out, bytes_in, retransmits."""
    engine_said: dict[str, Any] | None
    """The engine's end: sent, sent_checksum, received, received_checksum."""
    link: dict[str, Any] = field(default_factory=dict)
    """Other facts of the link to the engine: over a broker, its confirms, pauses and redeliveries."""
    statistics_sent: int = 0
    stopped: str | None = None
    """Why the run ended early, as a sentence."""


@dataclass(kw_only=True)
class EngineResult:
    orders: StreamCounts
    answers: StreamCounts
    junk_frames: int
    handshakes_refused: int
    usage: dict[str, Any]
    sockets: list[dict[str, Any]]
    gateway_said: dict[str, Any] | None
    link: dict[str, Any] = field(default_factory=dict)
    statistics_sent: int = 0
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
