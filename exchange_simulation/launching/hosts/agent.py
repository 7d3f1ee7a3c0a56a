"""The agent of a run on a host: it tells facts, finds free ports, tells its clock, and takes and gives files.

The launcher starts `exchange hosts agent` over the host's prefix, and sends a message on each line; the agent answers
each with a message. The agent ends when its stdin ends: with the launcher, or with the connection. At its end it
removes its folder, in which the components of the host keep their files; a watchdog does so if the agent is killed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from exchange_simulation.launching.errors import sentence
from exchange_simulation.launching.hosts.lines import LineReader, PeerSilent, as_line, write_all
from exchange_simulation.launching.hosts.shared_ids import clock_id, machine_id
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.record.machine import host_facts, versions
from exchange_simulation.launching.record.noise import NoiseMeter
from transports.base import TransportError
from transports.sockets import reserved_port

StartBroker = Callable[[dict[str, Any], ProcessGroup, contextlib.ExitStack], dict[str, Any]]
"""A function that starts a broker for a run with these settings, which ends with the stack; returns the answer."""
STDIN = 0
STDOUT = 1
TRANSFER_PATIENCE_S = 60.0
"""The longest time without a byte of a file that is sent."""


def serve_launcher(start_broker: StartBroker) -> None:
    """Answer the launcher until it closes our stdin. ClickException if a file cannot be sent whole."""
    with ProcessGroup() as processes, contextlib.ExitStack() as reserved:
        agent = Agent(processes, reserved, start_broker)
        reader = LineReader(STDIN)
        ids = {"machine_id": machine_id(), "clock_id": clock_id()}
        facts = {"host": host_facts(), "versions": versions(), **ids}
        write_all(STDOUT, as_line({"folder": str(processes.folder), **facts}))
        try:
            while True:
                agent.answer(reader.message(), reader)
        except (PeerSilent, BrokenPipeError):
            return
        except TransferBroken as error:
            raise click.ClickException(str(error)) from error


class TransferBroken(Exception):
    """The rest of a file cannot be sent. Only the agent's end tells the launcher so."""


class Agent:
    """Answers one message after the other."""

    def __init__(self, processes: ProcessGroup, reserved: contextlib.ExitStack, start_broker: StartBroker) -> None:
        """Ports stay reserved, and a broker stays, until `reserved` is closed."""
        self._processes = processes
        self._folder = processes.folder
        self._reserved = reserved
        self._ports = reserved.enter_context(contextlib.ExitStack())
        self._start_broker = start_broker
        self._noise = NoiseMeter()
        self._number = 0
        """The number of the message that is answered."""

    def answer(self, message: dict[str, Any], reader: LineReader) -> None:
        """Answer a message with its number. Any error of the system becomes an answer with the field `error`."""
        self._number = message.get("number", 0)
        try:
            match message:
                case {"do": "clock"}:
                    self._say({"monotonic_ns": time.monotonic_ns()})
                case {"do": "reserve" | "release ports"}:
                    self._say(self._ports_answer(message))
                case {"do": "start broker", "settings": dict(settings)}:
                    self._say(self._start_broker(settings, self._processes, self._reserved))
                case {"do": "start noise"}:
                    self._noise = NoiseMeter()
                    self._noise.clock_starts()
                    self._say({})
                case {"do": "stop noise", "pids": list(pids)}:
                    self._noise.clock_stops(pids)
                    self._say({"noise": _noise_facts(self._noise)})
                case {"do": "take", "path": str(path), "bytes": int(size)}:
                    self._say({"path": str(self._take(path, size, reader))})
                case {"do": "list"}:
                    self._say({"files": self._files()})
                case {"do": "give", "path": str(path)}:
                    self._give(path)
                case _:
                    self._say({"error": f"no such message: {message}"})
        except BrokenPipeError:
            raise
        except click.ClickException as error:
            self._say({"error": error.message})
        except (OSError, OverflowError, TransportError) as error:
            self._say({"error": sentence(error)})

    def _ports_answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Reserve a port at the address of the message, and return it; or release all ports."""
        if message["do"] == "reserve":
            return {"port": self._ports.enter_context(reserved_port(str(message["address"])))}
        self._ports.close()
        return {}

    def _take(self, path: str, size: int, reader: LineReader) -> Path:
        """Write the bytes that follow into a file of the folder, for its owner alone; return the file's path."""
        target = self._path_of(path)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        left = size
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            while left:
                chunk = reader.some_bytes(left, TRANSFER_PATIENCE_S)
                file.write(chunk)
                left -= len(chunk)
        return target

    def _files(self) -> list[str]:
        """Return the paths of the files that the components left, relative to the folder of results."""
        results = self._folder / "results"
        return sorted(str(path.relative_to(results)) for path in results.rglob("*") if path.is_file())

    def _give(self, path: str) -> None:
        """Send a file of the folder of results: a message with its size, then its bytes.

        TransferBroken if the file is shorter than the size: the launcher would take an answer for bytes of the file.
        """
        with self._path_of(f"results/{path}").open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._say({"bytes": size})
            left = size
            while left:
                chunk = file.read(min(left, 1 << 20))
                if not chunk:
                    raise TransferBroken(f"{path} became shorter while it was sent")
                write_all(STDOUT, chunk)
                left -= len(chunk)

    def _say(self, answer: dict[str, Any]) -> None:
        write_all(STDOUT, as_line({**answer, "number": self._number}))

    def _path_of(self, path: str) -> Path:
        """Return a path in the folder. OSError for a path that leads out of the folder."""
        target = (self._folder / path).resolve()
        if not target.is_relative_to(self._folder.resolve()):
            raise OSError(f"{path} leads out of the run's folder")
        return target


def _noise_facts(meter: NoiseMeter) -> dict[str, Any] | None:
    """Return the other work on this host between both readings; None if there were not two readings."""
    return meter.noise.as_record({}) if meter.noise else None
