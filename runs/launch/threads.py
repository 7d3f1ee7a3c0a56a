"""A run in threads of this process, for transports that cannot leave it: tests, and the generator's ceiling."""

from __future__ import annotations

import contextlib
import gc
import queue
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from exchange.instances import named
from exchange.session import Disagreement
from exchange.settings import RunSettings
from runs.component.component import Service, sentence
from runs.component.components import open_engine, open_gateway, open_reporter
from runs.component.streams import open_streams
from runs.errors import UserError
from runs.launch.moment import Moment, OnSecond, Together
from runs.launch.places import Places, meeting_places
from runs.lineup import Lineup
from runs.record.noise import NoiseMeter
from runs.record.outcome import Outcome, Result, outcome_of
from transports.base import TransportError

SWITCH_INTERVAL_S = 0.0001
"""How long a thread may keep the interpreter: 5 ms, the default, would be the completion time."""


def run_in_threads(folder: Path, settings: RunSettings, on_second: OnSecond) -> tuple[str, Outcome]:
    """Run it; (the first engine's URL, what came out)."""
    stage, noise = Stage(folder), NoiseMeter()
    with interpreter_shared(), meeting_places(settings, folder) as places:
        try:
            with contextlib.ExitStack() as held:
                stage.open(held, settings, places)
                noise.clock_starts()
                stage.play(on_second)
                noise.clock_stops()
        except OSError as error:  # a recorded stream that cannot be closed
            if not stage.results:
                raise
            stage.failures.append(f"gateway: {sentence(error)}")
    outcome = outcome_of(Lineup.of(settings), stage.results)
    return places.engines[1], replace(outcome, failures=tuple(stage.failures), noise=noise.noise)


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
        self.results: dict[str, Result] = {}
        self.failures: list[str] = []
        self._services: dict[str, Service] = {}
        self._told: queue.SimpleQueue[tuple[str, int, int] | None] = queue.SimpleQueue()  # None: a component has ended

    def open(self, held: contextlib.ExitStack, settings: RunSettings, places: Places) -> None:
        folder, name, lineup = self._folder, self._folder.name, Lineup.of(settings)
        self._lineup, self._together = lineup, Together(len(lineup.gateways))
        for instance, url in places.reporters.items():
            reporter, _ = open_reporter(name, url, lambda: folder, settings, of_thread=True, instance=instance)
            self._keep(held, named("reporter", instance), reporter)
        for pair, url in places.engines.items():
            reports_to = places.reporters[lineup.reporter_of(pair)]
            engine, _ = open_engine(name, url, reports_to, settings, of_thread=True, instance=pair)
            self._keep(held, named("engine", pair), engine)
            streams = held.enter_context(open_streams(folder, settings, pair))
            gateway = open_gateway(name, url, reports_to, settings, streams, of_thread=True, instance=pair)
            gateway.on_second = partial(self._say_second, named("gateway", pair))
            self._keep(held, named("gateway", pair), gateway)

    def _keep(self, held: contextlib.ExitStack, name: str, service: Service) -> None:
        held.callback(service.close)
        self._services[name] = service

    def _say_second(self, gateway: str, sent: int, answered: int) -> None:
        self._told.put((gateway, sent, answered))

    def play(self, on_second: OnSecond) -> None:
        """Until all have ended. Ctrl-C asks the gateways to end the run in band; again, everybody; again, leaves."""
        threads = [threading.Thread(target=self._play, args=[name], name=name, daemon=True) for name in self._services]
        for thread in threads:
            thread.start()
        for asked in (self._lineup.gateways, list(self._services)):
            try:
                return self._follow(threads, on_second)
            except KeyboardInterrupt:
                self._stop(asked, "interrupted")
        return self._follow(threads, on_second)

    def _follow(self, threads: list[threading.Thread], on_second: OnSecond) -> None:
        """Here, so that showing a second is neither the gateway's CPU time nor a wait of its orders."""
        while (told := self._told.get()) is not None:
            if moment := self._together.take(*told):
                on_second(Moment(*moment))
        for thread in threads:
            thread.join()

    def _play(self, name: str) -> None:
        try:
            self.results[name] = self._services[name].run()
        except (TransportError, Disagreement, OSError, UserError) as error:
            self.failures.append(f"{name}: {sentence(error)}")
        except Exception as error:  # noqa: BLE001 - a mistake of ours; the others are to end all the same
            self._log(name, error)
        finally:
            self._told.put(None)
            if name not in self.results:
                self._stop(list(self._services), f"the {name} failed")
                self._services[name].close()

    def _log(self, name: str, error: Exception) -> None:
        """Where a component's process leaves what it says on stderr."""
        self.failures.append(f"the {name} broke: {type(error).__name__}: {error}; see {name}.log")
        with contextlib.suppress(OSError):
            (self._folder / f"{name}.log").write_text("".join(traceback.format_exception(error)))

    def _stop(self, names: list[str], reason: str) -> None:
        for name in names:
            self._services[name].stop(reason)
