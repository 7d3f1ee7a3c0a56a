"""The loops of engines that publish market data: they serve the publisher between their turns."""

from __future__ import annotations

from exchange.results import EngineResult
from matching_engine.loop import EngineLoop
from matching_engine.market_data.publisher import MarketDataPublisher
from matching_engine.service import EngineService
from matching_engine.sessions.service import SharedEngineService


class PublishingLoop(EngineLoop):
    """An engine's loop that also publishes the market data which its PublishingEngine writes."""

    publisher: MarketDataPublisher
    """Set before the engine runs."""

    def run(self) -> EngineResult:
        self.publisher.await_subscribers(lambda: self._stop_asked)
        return super().run()

    def close(self) -> None:
        super().close()
        self.publisher.close()

    def _report(self) -> None:
        super()._report()
        self.publisher.serve()

    @property
    def _next_ns(self) -> int:
        return min(super()._next_ns, self.publisher.next_ns)

    def _finish(self) -> EngineResult:
        self.publisher.finish()
        return super()._finish()

    def _result(self) -> EngineResult:
        result = super()._result()
        result.market_data = self.publisher.facts
        return result


class PublishingEngineService(PublishingLoop, EngineService):
    """Serves one gateway, and publishes market data."""


class PublishingSharedEngineService(PublishingLoop, SharedEngineService):
    """Serves several gateways, and publishes market data."""
