"""The launcher's side of a cell: roles are started, let go together, followed to their end, and let off together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

from messaging.forks import Forked, Threaded, fork, thread
from messaging.player import play
from messaging.roles import Role, Told
from reports.live.progress import OnCount
from runs.errors import UserError

READY_S = 60.0


class Died(Exception):
    """A role ended without telling; the sentence says which, and how."""


@dataclass
class Outcome:
    """`told` by role; `died`, with the reason, where a role was lost and the others were ended."""

    told: dict[str, Told] = field(default_factory=dict)
    died: str | None = None


class Crew:
    """The roles of one cell. They end with the context, whatever happened."""

    def __init__(self, roles: Sequence[Role], group: int, in_threads: bool, patience_s: float) -> None:
        self._roles, self._patience_s = {role.name: role for role in roles}, patience_s
        assert len(self._roles) == len(roles)
        self._group, self._in_threads = group, in_threads
        self._members: dict[str, Forked | Threaded] = {}
        self._told: dict[str, Told] = {}
        self._progress: dict[str, int] = {}
        self._is_let_off = False

    def __enter__(self) -> Crew:
        for name, role in self._roles.items():
            life = partial(_life, role, self._patience_s, self._in_threads)
            self._members[name] = thread(life) if self._in_threads else fork(life, self._group)
        return self

    def play(self, on_start: Callable[[], None], on_end: Callable[[], None], on_count: OnCount) -> Outcome:
        """When all are ready, start them; until each has told. UserError where one cannot open its ends.

        `on_count` hears now and then how many messages those have who share queues.
        """
        outcome = Outcome()
        begin = {name for name, role in self._roles.items() if role.begins}
        try:
            self._await_word(set(self._members))
            on_start()
            for names in (self._members.keys() - begin, begin):
                self._say("start", names)
                self._await_word(names)
            self._await_told(on_count)
            on_end()
            self._say("close", set(self._members))
            self._is_let_off = True
        except Died as error:
            outcome.died = str(error)
        outcome.told = {name: self._told[name] for name in self._roles if name in self._told}
        return outcome

    def _say(self, word: str, names: set[str]) -> None:
        for name in names:
            member = self._members[name]
            try:
                member.pipe.send((word,))
            except OSError as error:
                raise Died(f"the {name} {member.how_it_ended()}") from error

    def _await_word(self, names: set[str]) -> None:
        """One of each: ready, or at work."""
        waiting, until_s = set(names), time.monotonic() + READY_S
        while waiting:
            heard = self._hear(waiting, until_s - time.monotonic())
            if not heard:
                raise Died(f"the {min(waiting)} was not ready within {READY_S:g} s")
            waiting -= heard.keys()

    def _await_told(self, on_count: OnCount) -> None:
        """Who shares a queue is told to stop once all is there, or nothing more comes."""
        moved_s = time.monotonic()
        while waiting := self._members.keys() - self._told.keys():
            for name, (word, *what) in self._hear(waiting, self._patience_s).items():
                if word == "told":
                    self._told[name] = what[0]
                    moved_s = time.monotonic()
                elif word == "progress":
                    self._progress[name] = what[0]
                    moved_s = time.monotonic()
                    on_count(sum(self._progress.values()))
                    self._stop_who_have_all(name)
            silent_s = time.monotonic() - moved_s
            if silent_s > self._patience_s:
                self._stop(waiting)
            if silent_s > 2 * self._patience_s and any(told.stopped for told in self._told.values()):
                raise Died(f"the {min(waiting)} said nothing any more")

    def _stop_who_have_all(self, name: str) -> None:
        shares = self._roles[name].shares
        assert shares is not None
        others = [other for other, role in self._roles.items() if role.shares == shares]
        if sum(self._progress.get(other, 0) for other in others) >= shares.total:
            self._stop(others)

    def _stop(self, names: Sequence[str] | set[str]) -> None:
        for name in names:
            if self._roles[name].shares is not None and name not in self._told:
                self._members[name].pipe.send(("stop",))

    def _hear(self, names: set[str], longest_s: float) -> dict[str, tuple[Any, ...]]:
        """A word of each who has said something. Died where one is gone; UserError where one cannot begin."""
        pipes: dict[Any, str] = {self._members[name].pipe: name for name in names}
        heard: dict[str, tuple[Any, ...]] = {}
        for pipe in wait(list(pipes), max(longest_s, 0)):
            name = pipes[pipe]
            heard[name] = self._word(name, pipe)
        return heard

    def _word(self, name: str, pipe: Any) -> tuple[Any, ...]:
        try:
            word: tuple[Any, ...] = pipe.recv()
        except (EOFError, OSError) as error:
            raise Died(f"the {name} {self._members[name].how_it_ended()}") from error
        match word:
            case ("failed", why, True):
                raise UserError(f"{name}: {why}")
            case ("failed", why, _):
                raise Died(f"the {name} failed: {why}")
        return word

    def __exit__(self, *_: object) -> None:
        for member in self._members.values():
            member.end(in_order=self._is_let_off)


def _life(role: Role, patience_s: float, of_thread: bool, pipe: Connection[Any, Any]) -> None:
    play(role, pipe, patience_s, of_thread)
