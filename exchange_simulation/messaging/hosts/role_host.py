"""The launcher's side of a role server: roles on another host, which the launcher follows like its own forks."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exchange.words import printable
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.hosts.host_agents import ANSWER_S
from exchange_simulation.launching.hosts.host_process import HostProcess
from exchange_simulation.launching.hosts.hosts_file import Host
from exchange_simulation.launching.hosts.lines import PeerSilent, as_line, write_all
from exchange_simulation.messaging.hosts.role_messages import text_of_role, word_of
from exchange_simulation.messaging.roles import Role
from transports.base import Pattern

LOAD_S = 180.0
"""The longest time for a host to load its kernels, some of which it may have to compile."""


class RoleHost(HostProcess):
    """The process on a host that forks roles there, and ends them with itself.

    `multiprocessing.connection.wait` can wait for it.
    """

    def __init__(self, host: Host, process_group: int, log: Path) -> None:
        """Start the process. `ready` waits for it. OSError if the prefix is no program."""
        super().__init__(host, ("hosts", "roles"), process_group, log)
        self._roles: dict[str, RoleElsewhere] = {}
        self.pid = 0
        """The number of the process on its host."""
        self.gone: str | None = None
        """How the host went, as a clause."""

    def fileno(self) -> int:
        return self._stdout

    def load(self, patterns: Mapping[str, Sequence[Pattern]]) -> None:
        """Ask the host to load the kernels of links over these transports. `ready` waits for the end of it."""
        transports = {
            transport: [str(pattern.value) for pattern in patterns_of_transport]
            for transport, patterns_of_transport in patterns.items()
        }
        self.send({"do": "load", "transports": transports})

    def ready(self) -> None:
        """Wait until the host has loaded the kernels. UserError if it cannot."""
        try:
            answer = self._reader.message(LOAD_S)
            if "error" in answer:
                raise UserError(f"the host {self.host.name} cannot play roles: {printable(str(answer['error']))}")
            self.pid = int(answer["loaded"])
        except (PeerSilent, LookupError, TypeError, ValueError) as error:
            raise UserError(f"the host {self.host.name} cannot play roles: {self._last_words(error)}") from error

    def start(self, role: Role, patience_s: float) -> RoleElsewhere:
        """Start a role on the host."""
        started = RoleElsewhere(self, role.name)
        self._roles[role.name] = started
        self.send({"do": "fork", "role": text_of_role(role), "patience_s": patience_s})
        return started

    def send(self, message: Mapping[str, Any]) -> None:
        """Send the host a message, unless it is gone."""
        with contextlib.suppress(BrokenPipeError):  # the host's stdout has ended too, and says so
            write_all(self._stdin, as_line(dict(message)))

    def receive(self, patience_s: float | None = None) -> None:
        """Wait for words of the host, and give each to its role. Once the host is gone, `gone` says how.

        A host that says nothing for `patience_s` is gone; None waits for ever.
        """
        try:
            for message in self._reader.messages(patience_s):
                role = self._roles[message["role"]]
                if "word" in message:
                    role.words.append(word_of(message["word"]))
                elif "ended" in message:
                    role.ended = str(message["ended"])
                else:
                    role.is_over = True
        except (PeerSilent, LookupError, TypeError, ValueError) as error:
            self.gone = self._last_words(error)

    def forget(self, name: str) -> None:
        """Forget a role that is over."""
        self._roles.pop(name, None)


@dataclass(eq=False)
class RoleElsewhere:
    """A role on another host, as the launcher follows it."""

    source: RoleHost
    name: str
    words: deque[tuple[Any, ...]] = field(default_factory=deque)
    """Words that came and that `next_word` has not returned yet."""
    ended: str | None = None
    """How the role's process ended, as a clause."""
    is_over: bool = False
    """True once the host has ended the role."""

    @property
    def has_words(self) -> bool:
        """True if `next_word` has a word to return, or the role has ended."""
        return bool(self.words) or self.ended is not None or self.source.gone is not None

    def tell(self, word: str) -> None:
        """Send the role a word. OSError if its host is gone."""
        if self.source.gone is not None:
            raise OSError(self.source.gone)
        self.source.send({"do": "tell", "role": self.name, "word": word})

    def receive(self) -> None:
        """Wait for words of the host, and give each to its role, which may be another one than this."""
        self.source.receive()

    def next_word(self) -> tuple[Any, ...]:
        """Return the next of `words`. Call it only if `has_words`. EOFError if none is left: the role has ended."""
        if not self.words:
            raise EOFError
        return self.words.popleft()

    def how_it_ended(self) -> str:
        """Return how the role ended, as a clause."""
        where = f"on {self.source.host.name}"
        if self.ended is not None:
            return f"{self.ended} {where}"
        return f"is lost {where}: {self.source.gone or 'it said nothing more'}"

    def end(self, may_close: bool) -> None:
        """End the role, and wait until its host has ended it."""
        self.source.send({"do": "end", "role": self.name, "may_close": may_close})
        while not self.is_over and self.source.gone is None:
            self.source.receive(ANSWER_S)
        self.source.forget(self.name)
