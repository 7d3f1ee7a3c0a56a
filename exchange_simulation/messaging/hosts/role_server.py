"""The role server of a benchmark on a host: it forks roles, and passes words between them and the launcher.

    launcher                                   role server                 role
    {"do": "load", "transports": ..}  ──▶      loads kernels
                    ◀──  {"loaded": pid}, or {"error": sentence}
    {"do": "fork", "role": .., ..}    ──▶      forks                 ──▶
    {"do": "tell", "role": name, "word": ..}   passes it on          ──▶
                    ◀──  {"role": name, "word": ..}                  ◀──
                    ◀──  {"role": name, "ended": how}                has ended by itself
    {"do": "end", "role": name, "may_close": ..}    kills it
                    ◀──  {"role": name, "over": true}                was killed on request

Roles are forks of a process that has loaded all kernels, as on the launcher's own host. If the server's stdin ends, the
launcher or the connection is gone: the server ends, and kills all roles.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from exchange_simulation.launching.component import settle_down
from exchange_simulation.launching.errors import CannotStart, sentence
from exchange_simulation.launching.hosts.agent import STDIN, STDOUT
from exchange_simulation.launching.hosts.lines import LineReader, PeerSilent, as_line, write_all
from exchange_simulation.launching.launch.places import free_place
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.messaging import round_trips
from exchange_simulation.messaging.hosts.role_messages import plain_word, role_of_text
from exchange_simulation.messaging.kernel_loading import load_by_failed_connect, load_with_messages
from exchange_simulation.messaging.role_process import Forked, fork
from exchange_simulation.messaging.roles import Links, Role
from transports.base import Pattern, TransportError
from transports.registry import has_broker, scheme_of


def serve_roles() -> None:
    """Serve the launcher until our stdin or stdout ends. All roles end then."""
    with contextlib.suppress(PeerSilent, BrokenPipeError), ProcessGroup() as processes:
        server = RoleServer(processes)
        while True:
            server.serve_once()


class RoleServer:
    """Roles of a launcher on another host."""

    def __init__(self, processes: ProcessGroup) -> None:
        """The roles join the group of `processes`."""
        self._processes = processes
        self._reader = LineReader(STDIN)
        self._roles: dict[str, Forked] = {}
        self._open_pipes: set[str] = set()
        """The names of the roles whose pipes have not ended."""

    def serve_once(self) -> None:
        """Wait for a word of the launcher or of a role, and handle all that are there. PeerSilent if stdin ends."""
        names_by_pipe: dict[Any, str] = {self._roles[name].pipe: name for name in self._open_pipes}
        readable = wait([STDIN, *names_by_pipe])
        for pipe, name in names_by_pipe.items():
            if pipe in readable:
                self._pass_on(name)
        if STDIN in readable:
            for message in self._reader.messages():
                self._obey(message)

    def _pass_on(self, name: str) -> None:
        """Pass a role's word to the launcher; if there is none, the role has ended."""
        role = self._roles[name]
        try:
            word = role.pipe.recv()
        except (EOFError, OSError):
            self._open_pipes.discard(name)
            _say({"role": name, "ended": role.how_it_ended()})
        else:
            _say({"role": name, "word": plain_word(word)})

    def _obey(self, message: Mapping[str, Any]) -> None:
        """Do what the launcher asks for."""
        match message:
            case {"do": "load", "transports": dict(transports)}:
                try:
                    self._load(transports)
                except (TransportError, OSError) as error:
                    _say({"error": sentence(error)})
                else:
                    _say({"loaded": os.getpid()})
            case {"do": "fork", "role": str(text), "patience_s": patience_s}:
                self._fork(role_of_text(text), patience_s)
            case {"do": "tell", "role": str(name), "word": str(word)}:
                with contextlib.suppress(OSError):  # the role has ended, and its pipe will say so
                    self._roles[name].tell(word)
            case {"do": "end", "role": str(name), "may_close": bool(may_close)}:
                self._open_pipes.discard(name)
                if name in self._roles:  # else it could not be forked
                    self._roles.pop(name).end(may_close)
                _say({"role": name, "over": True})

    def _fork(self, role: Role, patience_s: float) -> None:
        """Fork a role, or send the launcher the reason why that is not possible."""
        try:
            self._roles[role.name] = fork(role, patience_s, self._processes.id, enter_host=_stay_on_this_host)
        except CannotStart as error:
            _say({"role": role.name, "word": plain_word(("failed", sentence(error), True))})
        else:
            self._open_pipes.add(role.name)

    def _load(self, transports: Mapping[str, list[str]]) -> None:
        """Load the kernels of links over these transports, each with its patterns, before any role forks."""
        for transport, words in transports.items():
            patterns = [Pattern(word) for word in words]
            if has_broker(transport):
                load_by_failed_connect(scheme_of(transport), patterns)
            else:
                self._load_with_messages(transport, patterns)
        round_trips.load()
        settle_down()

    def _load_with_messages(self, transport: str, patterns: list[Pattern]) -> None:
        """Load the kernels by messages within this process."""
        with contextlib.ExitStack() as ports:

            def free_local_place(kind: str, path: Path, role: str) -> str:
                return free_place(kind, path, reserved=ports, network=None, role=role)

            links = Links(transport, f"bench-{secrets.token_hex(6)}", self._processes.folder, free_local_place)
            load_with_messages(links, patterns)


def _stay_on_this_host() -> None:
    """Do nothing: the fork of a role server is on the role's host already."""


def _say(message: Mapping[str, Any]) -> None:
    write_all(STDOUT, as_line(dict(message)))
