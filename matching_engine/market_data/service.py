"""The engine's loop, with market data: it serves the publisher between its turns."""

from __future__ import annotations

from exchange.results import EngineResult
from matching_engine.market_data.publisher import MarketDataPublisher
from matching_engine.service import EngineService


class PublishingEngineService(EngineService):
    """An engine that publishes what its PublishingEngine writes into the feed."""

    publisher: MarketDataPublisher

    def publish_by(self, publisher: MarketDataPublisher) -> None:
        """Publish by this publisher. Call it once, before the engine runs."""
        self.publisher = publisher

    def close(self) -> None:
        super().close()
        self.publisher.close()

    def _serve_to_the_end(self) -> None:
        self.publisher.await_subscribers()
        super()._serve_to_the_end()
        self.publisher.finish()

    def _report(self) -> None:
        super()._report()
        self.publisher.serve()

    @property
    def _next_ns(self) -> int:
        return min(super()._next_ns, self.publisher.next_ns)

    def _result(self) -> EngineResult:
        result = super()._result()
        result.market_data = self.publisher.facts
        return result
