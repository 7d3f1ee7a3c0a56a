"""Somebody who knows the run's secret, comes before the sources, and leaves: the reporter goes on.

tests/transports/test_contract.py claims that overlong frames of one peer are junk.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from reporter_session import RUN, ScriptedSource

from exchange.meters import Source
from stats_reporter.service import Reporter
from stats_reporter.writer import SpoolWriter
from tests.machine import PATIENCE_S, until
from transports import registry
from transports.base import Link, Pattern
from transports.frames import LARGEST_FRAME, FrameBatch

URLS = ("tcp://127.0.0.1:0", "zeromq://127.0.0.1:0", "nng://127.0.0.1:0", "shm://{folder}/link")
FRAMES = {"overlong": b"x" * (LARGEST_FRAME + 1), "junk": b"junk", "none": None}
TIMEOUT_S = 60.0
WAIT_NS = 1_000_000
RESULTS = 2
"""The messages of a session without any statistics: the results of the gateway and of the engine."""


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("url", URLS)
def test_a_stranger_with_the_secret_that_comes_first_and_leaves_ends_nothing(
    url: str, frame: bytes | None, tmp_path: Path
) -> None:
    link = registry.listen(url.format(folder=tmp_path), "token", pattern=Pattern.FAN_IN)
    visit(link, frame)
    reporter = Reporter(RUN, link, SpoolWriter(tmp_path / "spool"), TIMEOUT_S)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(reporter.run)
        try:
            sources = [ScriptedSource(link.url, source) for source in (Source.GATEWAY, Source.ENGINE)]
            for source in sources:
                source.end()
            until(lambda: all(flushed(source) for source in sources) and running.done(), "the reporter's end")
        finally:
            reporter.stop("the test is over")
        result = running.result(PATIENCE_S)
    for source in sources:
        source.link.close()
    link.close()
    assert result.stopped is None
    assert (result.announced, result.received) == (RESULTS, RESULTS)


def visit(link: Link, frame: bytes | None) -> None:
    """Connect as somebody who knows the secret, send a frame if there is one, and leave, before the reporter begins."""
    until_ns = time.monotonic_ns() + int(PATIENCE_S * 1e9)
    with ThreadPoolExecutor(1) as pool:
        connecting = pool.submit(registry.connect, link.url, "token", until_ns, Pattern.FAN_IN)
        until(lambda: served(link) and connecting.done(), "the stranger's connection")
        stranger = connecting.result()
        if frame is not None:
            batch = FrameBatch.of(frame)
            until(lambda: served(link, stranger) and stranger.send(batch, 0) == 1, "room for the frame")
        stranger.close()


def served(*links: Link) -> bool:
    """Let links do their work for a moment. Always true."""
    for link in links:
        link.wait(time.monotonic_ns() + WAIT_NS, readable=False)
    return True


def flushed(source: ScriptedSource) -> bool:
    """Send what is left of a source's messages. True if nothing is left."""
    source.link.wait(time.monotonic_ns() + WAIT_NS, readable=False, writable=source.outbox.pending)
    return source.outbox.flush()
