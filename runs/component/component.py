"""What every component's process does around its loop: placement, quiet clocks, signals, events, errors.

With --launched a component speaks to its launcher in events, one JSON object a line: ready (url), second (sent,
answered), result, error (message, exit code); it starts when told so on stdin. Without, it speaks to a person.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NoReturn, Protocol, cast

import click
import orjson
import xxhash

from exchange.results import EngineResult, GatewayResult, ReporterResult
from exchange.session import Disagreement
from runs.errors import UserError
from runs.interrupts import on_signals
from transports.base import BadAddress, CannotListen, TransportError

PR_SET_TIMERSLACK = 29


class Service(Protocol):
    def warm(self) -> None: ...

    def run(self) -> GatewayResult | EngineResult | ReporterResult: ...

    def stop(self, reason: str) -> None: ...

    def close(self) -> None: ...


def run_id(name: str) -> int:
    """A run's number on the wire, from its name."""
    return int(xxhash.xxh64_intdigest(name.encode()))


def stay_on(cpu: int) -> None:
    """Keep this thread, and those it starts from now on (libzmq's own), on one processor."""
    try:
        os.sched_setaffinity(0, {cpu})
    except (OSError, AttributeError) as error:
        raise UserError(f"cannot stay on processor {cpu}: this machine has {os.cpu_count()}") from error


def do_without_scipy() -> None:
    """Numba imports it where it is installed, for linear algebra, which no kernel here does: a quarter of a start."""
    sys.modules.setdefault("scipy", cast(Any, None))


def settle_down() -> None:
    """Wake on time; let no collection pause a measured loop."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    gc.collect()
    gc.freeze()
    gc.disable()


class Events:
    """To the launcher as JSON lines, or to a person as sentences."""

    def __init__(self, role: str, launched: bool) -> None:
        self._role, self.launched = role, launched

    def await_start(self) -> None:
        """A launcher says start on stdin when every component is ready; without one, nobody needs to."""
        if self.launched and not sys.stdin.readline():
            raise SystemExit(1)

    def say(self, event: str, sentence: str = "", **facts: Any) -> None:
        if self.launched:
            sys.stdout.buffer.write(orjson.dumps({"event": event, **facts}) + b"\n")
            sys.stdout.buffer.flush()
        elif sentence:
            click.echo(f"{self._role}: {sentence}", err=True)

    def ready(self, url: str) -> None:
        self.say("ready", f"ready at {url}", url=url)

    def result(self, result: GatewayResult | EngineResult | ReporterResult) -> None:
        self.say("result", result.stopped or "done", result=asdict(result))

    def error(self, message: str, exit_code: int) -> None:
        self.say("error", message=message, exit_code=exit_code)


def serve(
    events: Events, open_service: Callable[[], tuple[Service, str]], cpu: int | None,
    held: contextlib.ExitStack | None = None,
) -> Any:  # fmt: skip
    """Open a service, say ready (and, when launched, wait for the word), run it to its end, say what came out.

    Signals end it in band; errors become sentences. `held` is what `open_service` opened besides.
    """
    try:
        with held or contextlib.nullcontext():
            result = _play(events, open_service, cpu)
    except (TransportError, Disagreement, OSError, UserError) as error:
        _give_up(events, error)
    events.result(result)
    return result


def _play(events: Events, open_service: Callable[[], tuple[Service, str]], cpu: int | None) -> Any:
    if cpu is not None:
        stay_on(cpu)
    do_without_scipy()
    service, url = open_service()
    service.warm()
    settle_down()
    events.ready(url)
    events.await_start()
    on_signals((signal.SIGTERM, signal.SIGINT, signal.SIGHUP), lambda *_: service.stop("interrupted"))
    result = service.run()
    service.close()
    return result


def _give_up(events: Events, error: Exception) -> NoReturn:
    mistake = isinstance(error, BadAddress | CannotListen | Disagreement | UserError)
    message = sentence(error)
    events.error(message, 2 if mistake else 1)
    if events.launched:
        raise SystemExit(2 if mistake else 1) from error
    raise (UserError(message) if mistake else click.ClickException(message)) from error


def sentence(error: Exception) -> str:
    """What is said of an error; of the system's own, the file and what is wrong with it."""
    if isinstance(error, UserError):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
