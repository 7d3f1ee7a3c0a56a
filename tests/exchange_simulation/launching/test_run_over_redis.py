"""A run of the whole exchange through a real Redis server: its channels, its streams, and the server's death."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker import is_gone
from tests.exchange_command import ORDERS, REFERENCE_RUN, Running, run_exchange
from tests.machine import until


@pytest.mark.parametrize("kind", ["pubsub", "stream"])
def test_the_same_seed_gives_the_same_streams_over_redis(
    tmp_path: Path, match_record: dict[str, object], kind: str
) -> None:
    finished = run_exchange(tmp_path, "--transport", f"redis?kind={kind}", *REFERENCE_RUN)
    assert finished.code == 0, finished.err
    record = finished.record
    assert record["checksums"] == match_record["checksums"]
    assert record["counts"]["orders_received"] == ORDERS
    broker = record["broker"]
    assert broker["product"] == "Redis"
    assert broker["is_private"]
    assert broker["sync"] == "everysec"
    assert {link["kind"] for link in broker["links"].values()} == {kind}
    assert record["components"]["broker"]["cpu_s"] > 0


@pytest.mark.long
def test_a_redis_server_that_stalls_ends_the_run_with_a_record_that_names_it(running: Callable[..., Running]) -> None:
    words = ("--no-page", "--transport", "redis?kind=stream", "--rate", 1000, "--orders", 40_000, "--timeout", 8)
    run = running(*words).wait_until_under_way()
    server = next(process for process in run.family() if process.name() == "redis-server")
    server.suspend()
    finished = run.finish()
    assert finished.code == 1
    assert "Traceback" not in finished.err
    assert finished.record["status"] == "partial"
    reasons = finished.record["reasons"]
    assert any("the Redis server at 127.0.0.1" in reason and "sent no answer" in reason for reason in reasons), reasons


def test_a_killed_redis_server_ends_the_run_with_a_record_that_names_it(running: Callable[..., Running]) -> None:
    run = running("--no-page", "--transport", "redis", "--rate", 2000, "--orders", 40_000).wait_until_under_way()
    servers = [process for process in run.family() if process.name() == "redis-server"]
    servers[0].kill()
    finished = run.finish()
    assert finished.code == 1
    assert finished.record["status"] == "partial"
    reasons = finished.record["reasons"]
    assert any("the Redis server at 127.0.0.1" in reason for reason in reasons), reasons
    for process in servers:
        until(lambda process=process: is_gone(process), "the end of the server")
