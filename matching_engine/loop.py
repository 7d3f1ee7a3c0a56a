"""What the engine's loops have in common: one for one gateway, and one for several."""

from __future__ import annotations

import time
from dataclasses import asdict

from exchange.meters import Source
from exchange.results import EngineResult
from exchange.session import Reporting, Terms
from matching_engine.engine import MatchingEngine
from matching_engine.meters import EngineMeters
from transports.base import Link
from transports.outbox import Outbox


class EngineLoop:
    """An engine that reports to the stats reporter. A subclass serves its gateways."""

    def __init__(
        self,
        engine: MatchingEngine,
        terms: Terms,
        reporter: Link,
        sampling_interval: int,
        timeout_s: float,
        reports_thread_usage: bool = False,
    ) -> None:
        """`reports_thread_usage`: report the resources that this thread uses, not those of the process."""
        self._engine = engine
        self._terms = terms
        self._reporter = reporter
        self._timeout_s = timeout_s
        self._timeout_ns = int(timeout_s * 1e9)
        self._outbox = Outbox(reporter)
        self._reporting = Reporting(self._outbox, terms, Source.ENGINE, reports_thread_usage)
        self._meters = EngineMeters(self._reporting, sampling_interval)
        self._started = False
        """Whether the clock runs."""
        self._stopped: str | None = None
        """Why the engine ends early."""
        self._stop_asked = False

    def stop(self, reason: str) -> None:
        """End early. What was measured until now still goes to the reporter."""
        self._stopped = self._stopped or reason
        self._stop_asked = True

    def warm(self) -> None:
        """Run every kernel once, so that nothing compiles once the clock runs."""
        self._engine.warm()

    def close(self) -> None:
        """Release the link to the reporter."""
        self._reporter.close()

    def run(self) -> EngineResult:
        """Serve the gateways, from their hellos to the reporter's confirmation."""
        self._serve_to_the_end()
        return self._finish()

    def _serve_to_the_end(self) -> None:
        """Serve the gateways until all sessions have ended."""
        raise NotImplementedError

    def _report(self) -> None:
        """Close the second if it is over. Then write one record, or send the written records."""
        now_ns = time.monotonic_ns()
        if self._started and now_ns >= self._reporting.next_second_ns:
            self._reporting.next_second(now_ns)
        if not self._reporting.write_next(now_ns):
            self._outbox.flush()

    @property
    def _next_ns(self) -> int:
        """Time of the next work besides orders."""
        return self._reporting.next_ns

    def _finish(self) -> EngineResult:
        """Report the last second, and send the result to the reporter, which confirms once it has everything."""
        self._reporting.stop()
        result = self._result()
        result.statistics_sent = self._outbox.posted + 1  # the result itself
        self._reporting.close(asdict(result))
        if self._outbox.settle(self._timeout_ns, lambda: self._stop_asked) is None:
            result.stopped = self._stopped or "the reporter did not confirm the statistics"
        return result

    def _result(self) -> EngineResult:
        """Return what the engine counted."""
        raise NotImplementedError
