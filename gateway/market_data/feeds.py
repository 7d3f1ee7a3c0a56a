"""A subscriber to the market data of several engines: it takes each engine's feed over a link of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from exchange.measurements import LogBuckets
from exchange.results import ResourceUsage, SubscriberResult
from gateway.market_data.subscriber import ASK_EVERY_NS, Subscriber
from transports.together import SleepTogether, sum_of_link_facts


class FeedsSubscriber:
    """Receives the feeds of several engines, each with sequence numbers of its own.

    If an engine is gone, its feed ends, and the others go on.
    """

    def __init__(self, feeds: Sequence[Subscriber]) -> None:
        """`feeds`: a subscriber to each engine, in the order of the engines' numbers."""
        self._feeds = feeds
        self._together = SleepTogether()
        self._usage_at_start = ResourceUsage.now()

    def stop(self, reason: str) -> None:
        """End early. What was received until now is in the result."""
        for feed in self._feeds:
            feed.stop(reason)

    def warm(self) -> None:
        """Load the kernels."""
        self._feeds[0].warm()

    def close(self) -> None:
        """Release the links."""
        for feed in self._feeds:
            feed.close()

    def run(self) -> SubscriberResult:
        """Receive until every feed is over, or `stop`. Disagreement if an engine has other terms."""
        self._usage_at_start = ResourceUsage.now()
        for feed in self._feeds:
            feed.start()
        links_are_served = False  # each link did its own work since the last frame came, so we may sleep
        while open_feeds := [feed for feed in self._feeds if not feed.is_over]:
            frames = sum(feed.take_turn() for feed in open_feeds)
            if frames:
                links_are_served = False
            elif not links_are_served:
                for feed in open_feeds:
                    feed.wait(0)
                links_are_served = True
            else:
                self._together.sleep([feed.link for feed in open_feeds], time.monotonic_ns() + ASK_EVERY_NS)
                links_are_served = False
        return self._result([feed.result() for feed in self._feeds])

    def _result(self, feeds: list[SubscriberResult]) -> SubscriberResult:
        """Return one result with the sums over all feeds, and each feed's own result.

        It has delivery times only if every feed has them: a feed from another host has none.
        """
        links = [feed.link for feed in self._feeds]
        deliveries = [LogBuckets.from_sparse(feed.delivery) for feed in feeds if feed.delivery is not None]
        checksum = sum(int(feed.checksum, 16) for feed in feeds) % 2**64

        def total(of_feed: Callable[[SubscriberResult], int]) -> int:
            return sum(of_feed(feed) for feed in feeds)

        return SubscriberResult(
            messages=total(lambda feed: feed.messages),
            trades=total(lambda feed: feed.trades),
            quotes=total(lambda feed: feed.quotes),
            levels=total(lambda feed: feed.levels),
            gaps=total(lambda feed: feed.gaps),
            missed=total(lambda feed: feed.missed),
            before=total(lambda feed: feed.before),
            repeated=total(lambda feed: feed.repeated),
            snapshots=total(lambda feed: feed.snapshots),
            checksum=f"{checksum:016x}",
            engine_said=None,
            delivery=LogBuckets.together(deliveries).as_lists() if len(deliveries) == len(feeds) else None,
            junk_frames=total(lambda feed: feed.junk_frames),
            usage=ResourceUsage.now().since(self._usage_at_start),
            sockets=[socket for link in links for socket in link.sockets()],
            link=sum_of_link_facts(links),
            feeds=feeds,
            stopped=next((feed.stopped for feed in feeds if feed.stopped), None),
        )
