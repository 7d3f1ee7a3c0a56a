"""The file of `--hosts`: for each role the command that reaches its host, and the address at which peers find it there.

[engine]
before = "ssh engine1"              # words before `exchange`; left out: this host
address = "10.0.0.2"                # where peers connect to
listen = "0.0.0.0"                  # where the engine listens, if that is another address
exchange = "/opt/venv/bin/exchange" # left out: exchange

[gateway.2]                         # the second gateway; without this table, [gateway] is for all of them
before = "ssh gateway2"
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exchange.allowed import meant
from exchange.instances import instance_of, named, role_of
from exchange.words import printable
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.toml_file import read_toml

ROLES_OF_BENCHMARK = ("publisher", "consumer")
"""The roles of a benchmark. All roles of such a kind are on one host."""
HOST_ROLES = ("gateway", "engine", "reporter", "subscriber", "broker", *ROLES_OF_BENCHMARK)
"""The roles of a run and of a benchmark, whose broker has the table of a run's broker."""
KEYS = ("before", "address", "listen", "exchange")
ADDRESS = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
"""A name of the domain name system, or an IPv4 address."""
PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+-]+")
"""A path that no shell changes: ssh gives the words of a command to a shell."""
NUMBER = re.compile(r"[1-9][0-9]{0,8}")
"""The number of a further component of a role."""
EXCHANGE = "exchange"
THIS_HOST = "this host"
LOOPBACK = "127.0.0.1"
"""The address of a component without one: all of its peers are on its host."""


@dataclass(frozen=True)
class Host:
    """A host as the launcher reaches it. Two components with equal hosts are on one machine."""

    before: tuple[str, ...] = ()
    """The words before `exchange`; empty for the launcher's own host."""
    exchange: str = EXCHANGE

    @property
    def is_here(self) -> bool:
        """True for the launcher's own host."""
        return not self.before

    @property
    def name(self) -> str:
        """The host as sentences name it. For example: ssh engine1"""
        return printable(shlex.join(self.before)) if self.before else THIS_HOST

    def command(self, *words: str) -> list[str]:
        """Return the command that runs `exchange WORDS` on the host."""
        return [*self.before, self.exchange, *words]


HERE = Host()


@dataclass(frozen=True)
class HostEntry:
    """A table of the file."""

    host: Host
    address: str | None = None
    """The address at which peers reach the component; None if the file has none."""
    listen: str | None = None
    """The address on which the component listens; None for `address`."""

    @property
    def listens_on(self) -> str | None:
        """The address on which the component listens."""
        return self.listen or self.address


@dataclass(frozen=True)
class HostsFile:
    """The tables of the file, by component, or by role for all components of a role."""

    path: Path
    entries: Mapping[str, HostEntry]

    def entry_of(self, component: str) -> HostEntry:
        """Return the table of the component, else that of its role, else an entry for this host."""
        entry = self.entries.get(component) or self.entries.get(role_of(component))
        return entry or HostEntry(HERE)

    @property
    def is_of_benchmark(self) -> bool:
        """True if the file has roles of a benchmark, and of a run no role but the broker."""
        roles = {role_of(name) for name in self.entries}
        return roles <= {*ROLES_OF_BENCHMARK, "broker"} and roles != {"broker"}


def read_hosts_file(path: Path) -> HostsFile:
    """Read the file. UserError with the line and the key of a mistake, and what is allowed."""
    try:
        tables = read_toml(path)
    except FileNotFoundError as error:
        raise UserError(f"--hosts is {path}, and there is no such file: docs/hosts.md has an example") from error
    return _Reader(path, tables).hosts_file()


class _Reader:
    """Turns the tables of a file into entries, and names the line of a mistake."""

    def __init__(self, path: Path, tables: Mapping[str, Any]) -> None:
        self._path = path
        self._tables = tables
        self._lines = path.read_text(errors="replace").splitlines()

    def hosts_file(self) -> HostsFile:
        """Return the entries of all tables."""
        entries: dict[str, HostEntry] = {}
        for role, table in self._tables.items():
            if role not in HOST_ROLES:
                allowed = f"no role: a table is for {', '.join(HOST_ROLES)}{meant(role, HOST_ROLES)}"
                raise self._mistake(role, None, f"{role!r} is {allowed}")
            if not isinstance(table, dict):
                raise self._mistake("", role, f"{role} is {table!r}; allowed is a table, [{role}]")
            self._add_role(entries, role, table)
        if not entries:
            raise UserError(f"{self._path} names no host: give a table for a role, as [engine]")
        return HostsFile(self._path, entries)

    def _add_role(self, entries: dict[str, HostEntry], role: str, table: Mapping[str, Any]) -> None:
        """Add the entry of a role, and those of its numbered components."""
        of_role: dict[str, Any] = {}
        for key, value in table.items():
            if not isinstance(value, dict):
                of_role[key] = value
                continue
            title = f"{role}.{key}"
            if role in ROLES_OF_BENCHMARK:
                advice = f"all {role}s of a benchmark are on one host: give [{role}] alone"
                raise self._mistake(title, None, f"[{title}]: {advice}")
            if not NUMBER.fullmatch(key) or int(key) < 2:
                allowed = f"allowed are numbers from 2, as [{role}.2]; [{role}] is the first one's"
                raise self._mistake(title, None, f"[{title}]: {key!r} is no number of a further {role}: {allowed}")
            entries[named(role, int(key))] = self._entry(title, value)
        if of_role:
            entries.setdefault(role, self._entry(role, of_role))

    def _entry(self, title: str, table: Mapping[str, Any]) -> HostEntry:
        """Return the entry of a table. UserError for a key or a value that is not allowed."""
        for key, value in table.items():
            if key not in KEYS:
                allowed = f"allowed are {', '.join(KEYS)}{meant(key, KEYS)}"
                raise self._mistake(title, key, f"[{title}]: {key!r} is no key; {allowed}")
            if not isinstance(value, str) or not value:
                raise self._mistake(title, key, f"[{title}]: {key} is {value!r}; allowed is a text in quotes")
        before = self._words(title, table.get("before", ""))
        exchange = table.get("exchange", EXCHANGE)
        if not PLAIN_PATH.fullmatch(exchange):
            allowed = "a path of letters, digits and _ . / + -"
            raise self._mistake(title, "exchange", f"[{title}]: exchange is {exchange!r}; allowed is {allowed}")
        if not before and "exchange" in table:
            advice = "it is for another host, and without before the component runs on this host: leave it out"
            raise self._mistake(title, "exchange", f"[{title}]: exchange is {exchange!r}; {advice}")
        for key in ("address", "listen"):
            address = table.get(key)
            if address is not None and not ADDRESS.fullmatch(address):
                allowed = "a host name or an IPv4 address, without a port"
                raise self._mistake(title, key, f"[{title}]: {key} is {address!r}; allowed is {allowed}")
        if "listen" in table and "address" not in table:
            advice = "peers need an address too: give address"
            raise self._mistake(title, "listen", f"[{title}]: listen is {table['listen']!r}, and {advice}")
        return HostEntry(Host(before, exchange), table.get("address"), table.get("listen"))

    def _words(self, title: str, before: str) -> tuple[str, ...]:
        """Return the words of a prefix."""
        try:
            words = tuple(shlex.split(before))
        except ValueError as error:
            problem = f"[{title}]: before is {before!r}, in which a quotation does not end: {error}"
            raise self._mistake(title, "before", problem) from error
        if before and not words:
            raise self._mistake(title, "before", f"[{title}]: before is {before!r}; allowed are words, as ssh engine1")
        return words

    def _mistake(self, title: str, key: str | None, problem: str) -> UserError:
        """Return the error about a key of a table, or about the table if the key is None."""
        number = self._line_of(title, key)
        where = f"{self._path}, line {number}" if number else str(self._path)
        return UserError(f"{where}: {problem}")

    def _line_of(self, title: str, key: str | None) -> int | None:
        """Return the number of the line with the table's head, or with the key in the table.

        None where the key is written in another way, as in an inline table.
        """
        current = ""
        for number, line in enumerate(self._lines, start=1):
            head = re.fullmatch(r"\s*\[([^\[\]]+)\]\s*(#.*)?", line)
            if head:
                current = head.group(1).replace('"', "").replace(" ", "")
            if current == title and (key is None or re.match(rf"\s*\"?{re.escape(key)}\"?\s*=", line)):
                return number
        return None


def check_numbers(file: HostsFile, names: set[str]) -> None:
    """UserError if the file has a table for a component that the run has not; `names` are those of its components."""
    for name in file.entries:
        if instance_of(name) > 1 and name not in names:
            raise UserError(f"{file.path} has a table for {name}, and this run has none: leave [{name}] out")
