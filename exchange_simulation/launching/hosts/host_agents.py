"""The launcher's side of the agents: an agent is started on each host, asked, and ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from exchange.words import printable
from exchange_simulation.launching.errors import UserError, reading, telling_lines, writing
from exchange_simulation.launching.files import record_file
from exchange_simulation.launching.hosts.clock_offset import ClockOffset, OffsetReading, narrowest
from exchange_simulation.launching.hosts.host_process import HostProcess
from exchange_simulation.launching.hosts.hosts_file import Host
from exchange_simulation.launching.hosts.lines import CHUNK, PeerSilent, as_line, write_all
from exchange_simulation.launching.interrupts import interruptible, signals_deferred
from exchange_simulation.launching.process_group import ProcessGroup

START_S = 60.0
"""The longest time for a host to tell its version, or to start its agent."""
ANSWER_S = 20.0
"""The longest time for an answer, and between two parts of a file."""
CLOCK_READINGS = 20
LOOK_S = 0.02


class HostProblem(Exception):
    """A host does not do what it was asked. The message is a sentence about the host."""


class HostGone(HostProblem):
    """A host does not answer any more."""


class HostRefused(HostProblem):
    """A host has answered that it cannot do what it was asked. The message is the host's own."""


class HostAgent(HostProcess):
    """An agent under way on a host."""

    def __init__(self, host: Host, process_group: int, log: Path) -> None:
        """Start the agent. `ready` waits for it. OSError if the prefix is no program."""
        super().__init__(host, ("hosts", "agent"), process_group, log)
        self.facts: dict[str, Any] = {}
        self.versions: dict[str, Any] = {}
        self.folder = Path()
        """The folder on that host for the files of the run's components."""
        self.clock: ClockOffset | None = None
        self.machine_id = ""
        """The id of the host's machine, which hosts may share; empty until the agent is ready."""
        self.clock_id = ""
        """The id of the host's monotonic clock, which hosts may share; empty until the agent is ready."""
        self._number = 0
        """The number of the last message. An answer has the number of its message."""
        self._gone: HostGone | None = None

    def ready(self) -> None:
        """Wait until the agent has told the facts of its host. UserError if it does not start."""
        try:
            first = self._reader.message(START_S)
            self.facts = first["host"]
            self.versions = first["versions"]
            self.machine_id = first["machine_id"]
            self.clock_id = first["clock_id"]
            self.folder = Path(first["folder"])
        except (PeerSilent, LookupError, TypeError) as error:
            raise UserError(f"the host {self.host.name} has no agent: {self._last_words(error)}") from error

    @property
    def results(self) -> Path:
        """The folder on that host for the run's folder."""
        return self.folder / "results"

    def reserve(self, address: str) -> int:
        """Return a free port of an address of that host, which stays reserved until the agent ends. UserError."""
        try:
            answer = self._ask({"do": "reserve", "address": address})
        except HostRefused as error:
            advice = 'give an address of that host, and listen = "0.0.0.0" where it cannot be listened on'
            raise UserError(f"the host {self.host.name} cannot listen on {address}: {error}; {advice}") from error
        return int(answer["port"])

    def release_ports(self) -> None:
        """Let the agent release all ports that it has reserved."""
        self._ask({"do": "release ports"})

    def put(self, file: Path, path: str) -> str:
        """Copy a file of this host into the agent's folder; return its path on that host. UserError."""
        with reading(file), file.open("rb") as content:
            size = os.fstat(content.fileno()).st_size
            try:
                answer = self._ask({"do": "take", "path": path, "bytes": size}, content)
            except HostRefused as error:
                raise UserError(f"the host {self.host.name} cannot keep {file}: {error}") from error
        return str(answer["path"])

    def start_broker(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Start a broker on that host, which ends with the agent. Returns its url and environment. UserError."""
        try:
            return self._ask({"do": "start broker", "settings": settings}, patience_s=START_S)
        except HostRefused as error:
            raise UserError(f"the host {self.host.name} has no broker: {error}") from error

    def read_clock(self) -> None:
        """Read the host's monotonic clock, and widen the bounds of its offset to ours if there are some already."""
        offset = self.clock_now()
        self.clock = offset if self.clock is None else self.clock.widened_by(offset)

    def clock_now(self) -> ClockOffset:
        """Read the host's monotonic clock some times, and return the bounds of its offset to ours at this time."""
        readings = []
        for _ in range(CLOCK_READINGS):
            asked_ns = time.monotonic_ns()
            answer = self._ask({"do": "clock"})
            readings.append(OffsetReading(asked_ns, int(answer["monotonic_ns"]), time.monotonic_ns()))
        return narrowest(readings)

    def start_noise(self) -> None:
        """Let the agent begin to measure the other work on its host."""
        self._ask({"do": "start noise"})

    def stop_noise(self, pids: list[int]) -> dict[str, Any] | None:
        """Return the other work on the host since `start_noise`. `pids` are the relays of the run's components."""
        return self._ask({"do": "stop noise", "pids": pids}).get("noise")

    def fetch(self, name: str, folder: Path) -> list[str]:
        """Copy the files of the run `name` from the host into the run's folder here; return their paths."""
        fetched = []
        for path in self._ask({"do": "list"})["files"]:
            run, _, rest = str(path).partition("/")
            target = folder / rest
            if run == name and rest and target.resolve().is_relative_to(folder.resolve()):
                self._fetch_file(str(path), target)
                fetched.append(rest)
        return fetched

    def _fetch_file(self, path: str, target: Path) -> None:
        """Copy a file. HostGone if the host goes meanwhile: then the part of the file that came is removed."""
        answer = self._ask({"do": "give", "path": path})
        left = int(answer["bytes"])
        try:
            with writing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                with record_file(target) as file:
                    while left:
                        chunk = self._reader.some_bytes(left, ANSWER_S)
                        file.write(chunk)
                        left -= len(chunk)
        except PeerSilent as error:
            raise self._lost(error) from error
        except click.ClickException as error:  # the rest of the file stays unread, so no answer can follow
            self._lost(error)
            raise

    def _ask(
        self, message: dict[str, Any], content: BinaryIO | None = None, patience_s: float = ANSWER_S
    ) -> dict[str, Any]:
        """Send a message, and the content of a file after it; return the answer.

        HostGone if there is no answer; HostRefused if the answer is an error.
        """
        if self._gone is not None:
            raise self._gone
        self._number += 1
        try:
            write_all(self._stdin, as_line({**message, "number": self._number}))
            if content is not None:
                self._send_content(content, message["bytes"])
            answer = self._answer(patience_s)
        except (PeerSilent, BrokenPipeError) as error:
            raise self._lost(error) from error
        if "error" in answer:
            raise HostRefused(printable(str(answer["error"])))
        return answer

    def _send_content(self, content: BinaryIO, size: int) -> None:
        """Send this many bytes of a file. PeerSilent if the file is shorter: the agent would wait for the rest."""
        left = size
        while left:
            chunk = content.read(min(left, CHUNK))
            if not chunk:
                raise PeerSilent("a file became shorter while it was sent")
            write_all(self._stdin, chunk)
            left -= len(chunk)

    def _answer(self, patience_s: float) -> dict[str, Any]:
        """Return the answer to the last message. Earlier answers are left out: a signal kept them from being read."""
        while True:
            answer = self._reader.message(patience_s)
            if answer.get("number") == self._number:
                return answer

    def _lost(self, error: Exception) -> HostGone:
        """Note that the host is gone, so that nobody waits for it again; return the error about it."""
        self._gone = HostGone(f"the host {self.host.name} is gone: {self._last_words(error)}")
        return self._gone


def check_versions(hosts: list[Host], version: str, processes: ProcessGroup) -> None:
    """UserError unless each host can be reached, and has this version of exchange. All are asked at the same time.

    The prefixes join the group of `processes`.
    """
    with contextlib.ExitStack() as stack:
        commands = {}
        for host in hosts:
            commands[host] = stack.enter_context(_version_of(host, processes.id))
        until_s = time.monotonic() + START_S
        for host, command in commands.items():
            _check_version(host, command, version, until_s)


@contextlib.contextmanager
def _version_of(host: Host, process_group: int) -> Iterator[subprocess.Popen[str]]:
    """Start `exchange --version` on a host; at the end of the context, kill it if it still runs."""
    pipe = subprocess.PIPE
    command = host.command("--version")
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            errors="backslashreplace",
            process_group=process_group,
        )
    except OSError as error:
        raise UserError(f"the host {host.name} cannot be reached: {command[0]}: {error.strerror}") from error
    with process:
        try:
            yield process
        finally:
            process.kill()


def _check_version(host: Host, process: subprocess.Popen[str], version: str, until_s: float) -> None:
    """UserError if the host does not tell this version."""
    try:
        with interruptible():
            out, err = process.communicate(timeout=max(LOOK_S, until_s - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise UserError(f"the host {host.name} did not tell its version within {START_S:g} s") from error
    if process.returncode:
        last_words = telling_lines(err, otherwise=telling_lines(out))
        raise UserError(
            f"the host {host.name} cannot be reached, or has no exchange: `exchange --version` there ended with exit "
            f"code {process.returncode}: {last_words}"
        )
    version_on_host = out.strip().rpartition(" ")[2]
    if version_on_host != version:
        raise UserError(
            f"the host {host.name} has version {printable(version_on_host)} of exchange, and this host {version}: "
            f"install the same on both"
        )


def started_agents(hosts: list[Host], processes: ProcessGroup, stack: contextlib.ExitStack) -> dict[Host, HostAgent]:
    """Start an agent on each host at the same time, and wait for all. They end when the stack is closed. UserError."""
    agents: dict[Host, HostAgent] = {}
    for number, host in enumerate(hosts, start=1):
        with signals_deferred():
            try:
                agents[host] = HostAgent(host, processes.id, processes.folder / f"agent-{number}.log")
            except OSError as error:
                raise UserError(f"the host {host.name} cannot be reached: {error.strerror}") from error
            stack.callback(agents[host].close)
    for agent in agents.values():
        agent.ready()
    return agents
