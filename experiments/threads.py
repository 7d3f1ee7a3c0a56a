"""A run in threads of this process, for transports that cannot leave it: tests, and the generator's ceiling."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exchange.settings import RunSettings
from experiments.component import Service
from experiments.components import open_engine, open_gateway, open_reporter
from experiments.places import meeting_places
from experiments.status import Outcome
from experiments.streams import close_streams, open_streams

SWITCH_INTERVAL_S = 0.0001
"""How long a thread may keep the interpreter: 5 ms, the default, would be the completion time."""


def run_in_threads(folder: Path, settings: RunSettings, on_second: Callable[[int, int], None]) -> tuple[str, Outcome]:
    """Run it; (the engine's URL, what came out)."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()
    with meeting_places(settings.transport, folder) as (engine_url, reporter_url):
        outcome = _run(folder, settings, engine_url, reporter_url, on_second)
    return engine_url, outcome


def _run(
    folder: Path, settings: RunSettings, engine_url: str, reporter_url: str, on_second: Callable[[int, int], None]
) -> Outcome:
    name = folder.name
    results: dict[str, Any] = {}
    streams = open_streams(folder if settings.record else None)
    reporter, _ = open_reporter(name, reporter_url, folder / "spool", settings.timeout_s, of_thread=True)
    engine, _ = open_engine(name, engine_url, reporter_url, settings, of_thread=True)
    gateway = open_gateway(name, engine_url, reporter_url, settings, streams, of_thread=True)
    gateway.on_second = on_second

    def play(role: str, service: Service) -> None:
        results[role] = service.run()

    services: dict[str, Service] = {"reporter": reporter, "engine": engine, "gateway": gateway}
    threads = [threading.Thread(target=play, args=pair, name=pair[0]) for pair in services.items()]
    for thread in threads:
        thread.start()
    try:
        _join(threads)
    except KeyboardInterrupt:
        gateway.stop("interrupted")
        _join(threads)
    for service in services.values():
        service.close()
    close_streams(streams)
    return Outcome(**results)


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join()
