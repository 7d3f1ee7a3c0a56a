"""A run in threads of this process, for transports that cannot leave it: tests, and the generator's ceiling."""

from __future__ import annotations

import contextlib
import gc
import queue
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exchange.session import Disagreement
from exchange.settings import RunSettings
from experiments.component import Service, sentence
from experiments.components import open_engine, open_gateway, open_reporter
from experiments.errors import UserError
from experiments.moment import Moment, OnSecond
from experiments.noise import NoiseMeter
from experiments.places import meeting_places
from experiments.status import Outcome
from experiments.streams import open_streams
from transports.base import TransportError

SWITCH_INTERVAL_S = 0.0001
"""How long a thread may keep the interpreter: 5 ms, the default, would be the completion time."""


def run_in_threads(folder: Path, settings: RunSettings, on_second: OnSecond) -> tuple[str, Outcome]:
    """Run it; (the engine's URL, what came out)."""
    stage, noise = Stage(folder), NoiseMeter()
    with interpreter_shared(), meeting_places(settings, folder) as places:
        try:
            with contextlib.ExitStack() as held:
                stage.open(held, settings, places.engine, places.reporter)
                noise.clock_starts()
                stage.play(on_second)
                noise.clock_stops()
        except OSError as error:  # a recorded stream that cannot be closed
            if not stage.results:
                raise
            stage.failures.append(f"gateway: {sentence(error)}")
    return places.engine, Outcome(**stage.results, failures=tuple(stage.failures), noise=noise.noise)


@contextlib.contextmanager
def interpreter_shared() -> Iterator[None]:
    """Threads take short turns, and nothing that is older than the run is looked at for garbage."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before_s)


class Stage:
    """The components, each in a thread; where one fails, the others end in band."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.results: dict[str, Any] = {}
        self.failures: list[str] = []
        self._services: dict[str, Service] = {}
        self._told: queue.SimpleQueue[Moment | None] = queue.SimpleQueue()  # None: a component has ended

    def open(self, held: contextlib.ExitStack, settings: RunSettings, engine_url: str, reporter_url: str) -> None:
        folder, name = self._folder, self._folder.name
        streams = held.enter_context(open_streams(folder, settings))
        reporter, _ = open_reporter(name, reporter_url, lambda: folder, settings.timeout_s, of_thread=True)
        held.callback(reporter.close)
        engine, _ = open_engine(name, engine_url, reporter_url, settings, of_thread=True)
        held.callback(engine.close)
        gateway = open_gateway(name, engine_url, reporter_url, settings, streams, of_thread=True)
        held.callback(gateway.close)
        gateway.on_second = lambda sent, answered: self._told.put(Moment(sent, answered))
        self._services = {"reporter": reporter, "engine": engine, "gateway": gateway}

    def play(self, on_second: OnSecond) -> None:
        """Until all have ended. Ctrl-C asks the gateway to end the run in band; again, everybody; again, leaves."""
        threads = [threading.Thread(target=self._play, args=[role], name=role, daemon=True) for role in self._services]
        for thread in threads:
            thread.start()
        for asked in (["gateway"], list(self._services)):
            try:
                return self._follow(threads, on_second)
            except KeyboardInterrupt:
                self._stop(asked, "interrupted")
        return self._follow(threads, on_second)

    def _follow(self, threads: list[threading.Thread], on_second: OnSecond) -> None:
        """Here, so that showing a second is neither the gateway's CPU time nor a wait of its orders."""
        while (moment := self._told.get()) is not None:
            on_second(moment)
        for thread in threads:
            thread.join()

    def _play(self, role: str) -> None:
        try:
            self.results[role] = self._services[role].run()
        except (TransportError, Disagreement, OSError, UserError) as error:
            self.failures.append(f"{role}: {sentence(error)}")
        except Exception as error:  # noqa: BLE001 - a mistake of ours; the others are to end all the same
            self._log(role, error)
        finally:
            self._told.put(None)
            if role not in self.results:
                self._stop(list(self._services), f"the {role} failed")
                self._services[role].close()

    def _log(self, role: str, error: Exception) -> None:
        """Where a component's process leaves what it says on stderr."""
        self.failures.append(f"the {role} broke: {type(error).__name__}: {error}; see {role}.log")
        with contextlib.suppress(OSError):
            (self._folder / f"{role}.log").write_text("".join(traceback.format_exception(error)))

    def _stop(self, roles: list[str], reason: str) -> None:
        for role in roles:
            self._services[role].stop(reason)
