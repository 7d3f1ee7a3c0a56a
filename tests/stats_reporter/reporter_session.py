"""A reporter's session: two sources over memory, each with an outbox as in a run.

gateway's Reporting ─Outbox─▶
                              Reporter ─▶ spool/*.jsonl
engine's Reporting  ─Outbox─▶
"""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path

from exchange.messages import (
    Message,
    decode,
    encode,
)
from exchange.meters import Source
from exchange.results import ReporterResult
from exchange.session import Reporting, Terms
from stats_reporter.service import Reporter
from stats_reporter.writer import SpoolWriter
from transports import registry
from transports.base import Pattern
from transports.frames import FrameBatch
from transports.outbox import Outbox

RUN = 0xFEED
TERMS = Terms(RUN, policy="price-time", packing=1, max_price=999)


TRAFFIC = {"second": 0, "orders_sent": 1, "orders_answered": 1, "messages_received": 2}
COMPLETION = {
    "second": 0,
    "clock": "due",
    "last_order": False,
    "count": 2,
    "sum_ns": 9,
    "min_ns": 4,
    "max_ns": 5,
    "bucket": [1, 2],
    "bucket_count": [1, 1],
}
TIMEOUT_S = 5.0
urls = (f"memory://reporter-run-{number}" for number in itertools.count())
"""A new URL for each session."""


class ScriptedSource:
    """A source of statistics: the link, outbox and reports that a component has."""

    def __init__(self, url: str, source: Source, terms: Terms = TERMS) -> None:
        self.link = registry.connect(url, "token", time.monotonic_ns(), pattern=Pattern.FAN_IN)
        self.outbox = Outbox(self.link)
        self.reporting = Reporting(self.outbox, terms, source)

    def say(self, *messages: Message | bytes) -> None:
        """Send messages, or frames, to the reporter."""
        for message in messages:
            self.outbox.post(message if isinstance(message, bytes) else encode(message))
        self.outbox.flush()

    def end(self, **result) -> None:
        self.reporting.close(result)
        self.outbox.flush()

    @property
    def reply(self) -> Message | None:
        """The reporter's confirmation of the end; None if it has not come yet. Empty frames are signs of life."""
        batch = FrameBatch(16)
        self.link.receive(batch)
        frames = [frame for frame in batch if frame]
        if not frames:
            return None
        [frame] = frames
        return decode(frame)


class ReporterSession:
    """A reporter with a gateway and an engine that report to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.link = registry.listen(next(urls), "token", pattern=Pattern.FAN_IN)
        self.reporter = Reporter(RUN, self.link, SpoolWriter(folder), TIMEOUT_S)
        self.gateway = ScriptedSource(self.link.url, Source.GATEWAY)
        self.engine = ScriptedSource(self.link.url, Source.ENGINE)

    def run(self) -> ReporterResult:
        self.gateway.outbox.flush()
        self.engine.outbox.flush()
        return self.reporter.run()

    def run_to_the_end(self) -> ReporterResult:
        """End both sources, whose messages then wait in the link's buffer, and run the reporter."""
        self.gateway.end()
        self.engine.end()
        return self.run()

    def close(self) -> None:
        for link in (self.gateway.link, self.engine.link, self.link):
            link.close()

    @property
    def records(self) -> list[dict]:
        """All records in the spool."""
        records = []
        for path in sorted(self.folder.glob("[!.]*.jsonl")):
            records += [json.loads(line) for line in path.read_text().splitlines()]
        return records

    def payloads(self, kind: str, source: str | None = None) -> list[dict]:
        """Return the payloads of the records of a kind, of one source or of all."""
        records = [record for record in self.records if record["kind"] == kind]
        if source is not None:
            records = [record for record in records if record["source"] == source]
        return [record["payload"] for record in records]


class WaitedClock:
    """Stands in for `time.monotonic_ns`. Each wait on the link moves it."""

    now_ns = 10**12

    def __call__(self) -> int:
        return self.now_ns

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self.now_ns = max(self.now_ns, until_ns)
