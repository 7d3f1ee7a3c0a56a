"""Runs the service of a component in a process: its processor, its priority, signals, events and errors.

With --launched a component writes events for its launcher to stdout, a JSON object on each line: ready (url), second
(sent, answered), result, error (message, exit code). It starts when a line arrives on stdin. Further lines have facts
about a killed process. Without --launched it writes sentences for a person to stderr.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NoReturn, Protocol

import click
import orjson

from exchange.instances import role_of
from exchange.json_records import encode_json
from exchange.results import ComponentResult
from exchange.session import Disagreement
from exchange_simulation.launching.errors import UserError, sentence
from exchange_simulation.launching.first_alone import first_alone
from exchange_simulation.launching.interrupts import ENDING_SIGNALS, interruptible, on_signals, raise_if_interrupted
from exchange_simulation.launching.priority import at_priority, wake_on_time
from transports.base import BadAddress, CannotListen, TransportError

STDIN = 0
INTERRUPTED_BEFORE_START = "interrupted before the start"


class Service(Protocol):
    """A component's loop."""

    def warm(self) -> None: ...

    def run(self) -> ComponentResult | None:
        """Serve to the end. Returns the result; None from a standby that was not needed."""

    def stop(self, reason: str) -> None: ...

    def close(self) -> None: ...


def stay_on(cpu: int) -> None:
    """Keep this thread, and the threads that it starts from now on (libzmq's own), on one processor."""
    try:
        os.sched_setaffinity(0, {cpu})
    except (OSError, AttributeError) as error:
        raise UserError(f"cannot stay on processor {cpu}: this machine has {os.cpu_count()}") from error


def settle_down() -> None:
    """Set exact timers, and switch garbage collection off, so that nothing pauses a measured loop."""
    wake_on_time()
    gc.collect()
    gc.freeze()
    gc.disable()


class Events:
    """Events of one component: JSON lines for a launcher, or sentences for a person."""

    def __init__(self, role: str, launched: bool) -> None:
        self.role = role
        self.launched = launched
        self.known: dict[str, Any] = {}
        """The launcher's facts about the killed process that this process replaces."""
        self.on_known: Callable[[dict[str, Any]], None] = lambda known: None
        self._unread = b""
        self._out = sys.stdout.buffer

    def alone_on_stdout(self) -> None:
        """Reserve stdout for events: from now on, everything else that is printed goes to the log."""
        if self.launched:
            self._out = os.fdopen(os.dup(1), "wb")
            os.dup2(2, 1)

    def await_start(self) -> None:
        """Wait for the launcher's line on stdin, which comes when all components are ready, if there is a launcher."""
        if self.launched and not self._take_line():
            raise SystemExit(1)

    def take_waiting_line(self) -> None:
        """Take in the next line that the launcher has written since the start, if there is one."""
        if not self.launched:
            return
        readable, _, _ = select.select([STDIN], [], [], 0)
        if self._unread or readable:
            self._take_line()

    def _take_line(self) -> bool:
        """Wait for a line of the launcher, and keep its facts. Returns False if the launcher is gone."""
        while b"\n" not in self._unread:
            with interruptible():
                chunk = os.read(STDIN, 1 << 16)
            if not chunk:
                return False
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        known = orjson.loads(line)
        if known:
            self.known = known
            self.on_known(known)
        return True

    def say(self, event: str, sentence: str = "", **facts: Any) -> None:
        """Write the event for the launcher; without a launcher, print the sentence for a person."""
        if self.launched:
            self._out.write(encode_json({"event": event, **facts}) + b"\n")
            self._out.flush()
        elif sentence:
            click.echo(f"{self.role}: {sentence}", err=True)

    def ready(self, url: str) -> None:
        self.say("ready", f"ready at {url}", url=url)

    def took_over(self, url: str) -> None:
        """Report that this standby is the engine from now on."""
        self.say("took over", f"the other engine is gone; serving at {url}")

    def result(self, result: ComponentResult) -> None:
        """Report the result to the launcher. The reporter gets it too, as the last record of a source.

        Both are needed: components started by hand have no launcher, and a launcher must not depend on the reporter,
        which may have died.
        """
        self.say("result", result.stopped or "done", result=asdict(result))

    def error(self, message: str, exit_code: int) -> None:
        self.say("error", message=message, exit_code=exit_code)


def serve(
    events: Events,
    open_service: Callable[[], tuple[Service, str]],
    cpu: int | None,
    opened: contextlib.ExitStack | None = None,
    priority: str = "normal",
) -> Any:
    """Open a service, run it to its end, report and return its result. A signal ends it in band.

    A launched component that is ready waits for the launcher's start. `opened` is closed at the end; `open_service` may
    add to it. An error becomes a sentence: UserError or ClickException, or SystemExit after an event to the launcher.
    """
    try:
        with opened or contextlib.nullcontext():
            result = _run(events, open_service, cpu, priority)
    except (TransportError, Disagreement, OSError, UserError) as error:
        _give_up(events, error)
    except KeyboardInterrupt as error:
        click.echo(f"{events.role}: {INTERRUPTED_BEFORE_START}", err=True)
        events.error(INTERRUPTED_BEFORE_START, exit_code=1)
        raise SystemExit(1) from error
    if result is None:
        events.say("not needed", "the other engine ended the session")
    else:
        events.result(result)
    return result


def _run(events: Events, open_service: Callable[[], tuple[Service, str]], cpu: int | None, priority: str) -> Any:
    events.alone_on_stdout()
    raise_if_interrupted()
    if cpu is not None:
        stay_on(cpu)
    with interruptible():
        with at_priority(priority):  # so do the threads that a transport starts
            service, url = open_service()
        with first_alone(role_of(events.role)):
            service.warm()
    settle_down()
    events.ready(url)
    events.await_start()
    on_signals(ENDING_SIGNALS, lambda *_: service.stop("interrupted"))
    raise_if_interrupted()
    with at_priority(priority):
        result = service.run()
    service.close()
    return result


def _give_up(events: Events, error: Exception) -> NoReturn:
    """Report the error to the launcher, and end with its exit code: 2 for a user's mistake, else 1."""
    is_users_mistake = isinstance(error, BadAddress | CannotListen | Disagreement | UserError)
    exit_code = 2 if is_users_mistake else 1
    message = sentence(error)
    events.error(message, exit_code)
    if events.launched:
        raise SystemExit(exit_code) from error
    if is_users_mistake:
        raise UserError(message) from error
    raise click.ClickException(message) from error
