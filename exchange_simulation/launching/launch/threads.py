"""Runs the components in threads of this process, over transports that cannot leave it."""

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

from exchange.instances import input_file, named, role_of
from exchange.results import ComponentResult
from exchange.session import Disagreement
from exchange.settings import RunSettings
from exchange_simulation.launching.component import Service
from exchange_simulation.launching.errors import UserError, sentence
from exchange_simulation.launching.interrupts import interruptible
from exchange_simulation.launching.launch.places import Places, meeting_places
from exchange_simulation.launching.launch.watch import GatewayTotals, Moment, OnSecond
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.priority import at_priority, without_preempting
from exchange_simulation.launching.record.noise import NoiseMeter
from exchange_simulation.launching.record.outcome import RunOutcome, outcome_of
from exchange_simulation.launching.recorded_streams import open_input, open_streams
from exchange_simulation.launching.services import open_engine, open_gateway, open_reporter, open_shared_engine
from transports.base import TransportError

SWITCH_INTERVAL_S = 0.0001
"""How long a thread keeps the interpreter. With the default of 5 ms, completion would take 5 ms."""
LOOK_S = 1.0
"""The time between two looks at the threads. A thread also sends a message when it ends, but Ctrl-C may lose it."""


def run_in_threads(folder: Path, settings: RunSettings, on_second: OnSecond) -> tuple[str, RunOutcome]:
    """Run all components to their end. Returns the first engine's URL, and the outcome."""
    stage = Stage(folder, settings)
    noise = NoiseMeter()
    with interpreter_shared(), meeting_places(settings, folder) as places:
        try:
            with contextlib.ExitStack() as stack:
                stage.open(stack, places)
                noise.clock_starts()
                stage.run(on_second)
                noise.clock_stops()
        except OSError as error:  # a recorded stream that cannot be closed; the error names its file
            if not stage.results:
                raise
            stage.failures.append(sentence(error))
    outcome = outcome_of(Lineup.of(settings), stage.results)
    return places.first, replace(outcome, failures=tuple(stage.failures), noise=noise.noise)


@contextlib.contextmanager
def interpreter_shared() -> Iterator[None]:
    """Let threads take short turns, and exclude objects that are older than the run from garbage collection."""
    previous_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(previous_s)


class Stage:
    """The components, each in a thread. If one fails, the others are asked to end."""

    def __init__(self, folder: Path, settings: RunSettings) -> None:
        self._folder = folder
        self._settings = settings
        self._lineup = Lineup.of(settings)
        self._totals = GatewayTotals(len(self._lineup.gateways))
        self.results: dict[str, ComponentResult] = {}
        self.failures: list[str] = []
        self._services: dict[str, Service] = {}
        self._seconds: queue.SimpleQueue[tuple[str, int, int] | threading.Thread] = queue.SimpleQueue()
        """Messages to the waiting thread: a gateway's counts (name, sent, answered), or a thread that ends."""

    def open(self, stack: contextlib.ExitStack, places: Places) -> None:
        """Open and warm all services; they are closed with the stack."""
        folder = self._folder
        name = folder.name
        settings = self._settings
        for instance, url in places.reporters.items():
            reporter, _ = open_reporter(
                name, url, lambda: folder, settings, reports_thread_usage=True, instance=instance
            )
            self._add(stack, named("reporter", instance), reporter)
        for number, by_gateway in places.engines.items():
            urls = list(by_gateway.values())
            reports_to = places.reporters[self._lineup.reporter_of(number)]
            if self._lineup.is_market:
                path = folder / input_file(number) if settings.record else None
                input_stream = stack.enter_context(open_input(path))
                shared, _ = open_shared_engine(
                    name, urls, reports_to, settings, input_stream, reports_thread_usage=True, instance=number
                )
                self._add(stack, named("engine", number), shared)
            else:
                engine, _ = open_engine(name, urls[0], reports_to, settings, reports_thread_usage=True, instance=number)
                self._add(stack, named("engine", number), engine)
        for number in self._lineup.gateway_numbers:
            reports_to = places.reporters[self._lineup.reporter_of(number)]
            streams = stack.enter_context(open_streams(folder, settings, number))
            url = " ".join(places.of_gateway(number))
            gateway = open_gateway(name, url, reports_to, settings, streams, reports_thread_usage=True, instance=number)
            gateway.on_second = partial(self._put_second, named("gateway", number))
            self._add(stack, named("gateway", number), gateway)
        for service in self._services.values():
            service.warm()

    def _add(self, stack: contextlib.ExitStack, name: str, service: Service) -> None:
        stack.callback(service.close)
        self._services[name] = service

    def _put_second(self, gateway: str, sent: int, answered: int) -> None:
        self._seconds.put((gateway, sent, answered))

    def run(self, on_second: OnSecond) -> None:
        """Run all components until they have ended.

        The first Ctrl-C ends the gateways in band, the second one all components; the third one raises.
        """
        threads = []
        for name in self._services:
            threads.append(threading.Thread(target=self._run_service, args=[name], name=name, daemon=True))
        for thread in threads:
            thread.start()
        stopped_by_each_ctrl_c = (self._lineup.gateways, list(self._services))
        for names in stopped_by_each_ctrl_c:
            try:
                self._follow(threads, on_second)
                return
            except KeyboardInterrupt:
                self._stop(names, "interrupted")
        self._follow(threads, on_second)

    def _follow(self, threads: list[threading.Thread], on_second: OnSecond) -> None:
        """Wait for all threads, and show the gateways' counts once a second.

        This happens in this thread, so that it takes no CPU time of the gateway and delays no order.
        """
        while any(thread.is_alive() for thread in threads) or not self._seconds.empty():
            with contextlib.suppress(queue.Empty):
                with interruptible():
                    second = self._seconds.get(timeout=LOOK_S)
                if isinstance(second, threading.Thread):
                    second.join()
                    continue
                totals = self._totals.take(*second)
                if totals:
                    on_second(Moment(*totals))

    def _run_service(self, name: str) -> None:
        """Run a component in this thread to its end. If it leaves no result, all others are asked to end."""
        try:
            with self._scheduling_of(name):
                result = self._services[name].run()
            if result is not None:
                self.results[name] = result
        except (TransportError, Disagreement, OSError, UserError) as error:
            self.failures.append(f"{name}: {sentence(error)}")
        except Exception as error:  # noqa: BLE001 - a mistake of ours; the others are to end all the same
            self._log(name, error)
        finally:
            self._seconds.put(threading.current_thread())
            if name not in self.results:
                self._stop(list(self._services), f"the {name} failed")
            self._services[name].close()  # a peer that has more to send would wait for room without end

    def _scheduling_of(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Return the context for a component's thread: reporters preempt nobody, others have the set priority."""
        if role_of(name) == "reporter":
            return without_preempting()
        return at_priority(self._settings.priority)

    def _log(self, name: str, error: Exception) -> None:
        """Write the traceback to NAME.log, where a component that is a process writes its stderr."""
        self.failures.append(f"the {name} broke: {type(error).__name__}: {error}; see {name}.log")
        with contextlib.suppress(OSError):
            (self._folder / f"{name}.log").write_text("".join(traceback.format_exception(error)))

    def _stop(self, names: list[str], reason: str) -> None:
        for name in names:
            self._services[name].stop(reason)
