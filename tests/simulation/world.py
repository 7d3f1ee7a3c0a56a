"""A world in one process: a clock that moves when all tasks wait, a network with faults, and an unreliable disk.

Every task is a thread, but only one thread runs at a time, and others run only at a link's `wait` or a sleep. So
the seed decides everything: the same seed makes the same run.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from exchange.messages import End, Message, decode, encode
from transports.base import Link, PeerGone
from transports.frames import FrameBatch

US = 1_000
MS = 1_000_000
SECOND = 1_000_000_000
START_NS = 5 * SECOND
EPOCH_S = 1_800_000_000
LONGEST_NS = START_NS + 600 * SECOND
"""A world that lasts longer is taken to hang."""
_sleep = time.sleep
"""The real sleep."""


class Crash(BaseException):
    """The process of a task ends here."""


class Task:
    """A thread that runs only from a call of `go` until it waits."""

    def __init__(self, name: str, run: Callable[[], object]) -> None:
        self.name = name
        self._run = run
        self.is_ready: Callable[[], bool] = lambda: True
        self.until_ns = 0
        self.crashes_in = -1
        """Calls of links until the task crashes; never if negative."""
        self.may_crash: Callable[[], bool] = lambda: True
        self.result: object = None
        self.error: BaseException | None = None
        self.is_done = False
        self._go = threading.Lock()
        self._go.acquire()
        self._back = threading.Lock()
        self._back.acquire()
        self._thread = threading.Thread(target=self._play, name=name, daemon=True)
        self._thread.start()

    @property
    def is_this_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def _play(self) -> None:
        self._go.acquire()
        try:
            self.result = self._run()
        except BaseException as error:  # noqa: BLE001 - the test reads it
            self.error = error
        self.is_done = True
        self._back.release()

    def go(self) -> None:
        """Let the task run until it waits or ends."""
        self._go.release()
        self._back.acquire()

    def hand_over(self, is_ready: Callable[[], bool], until_ns: int) -> None:
        """Stop the calling task until it is ready or the time has come, and the world lets it go."""
        self.is_ready = is_ready
        self.until_ns = until_ns
        self._back.release()
        self._go.acquire()


class World:
    """Runs tasks on its own clock. All random decisions come from `chance`."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chance = random.Random(seed)
        self.now_ns = START_NS
        self._tasks: list[Task] = []
        self._events: list[tuple[int, Callable[[], None]]] = []
        self._running: Task | None = None
        self.synced_bytes: dict[int, int] = {}
        """By inode, how many bytes of a file survive every crash of the machine."""
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now_ns)
        monkeypatch.setattr(time, "time", lambda: EPOCH_S + self.now_ns / SECOND)
        monkeypatch.setattr(time, "sleep", self._sleep)
        monkeypatch.setattr(os, "fdatasync", self._sync)

    def _sleep(self, seconds: float) -> None:
        """Sleep on this clock. A thread that is no task, such as one of py4j, really sleeps."""
        if self._running is None or not self._running.is_this_thread:
            _sleep(seconds)
        else:
            self.wait(lambda: False, self.now_ns + int(seconds * SECOND))

    def _sync(self, descriptor: int) -> None:
        facts = os.fstat(descriptor)
        self.synced_bytes[facts.st_ino] = facts.st_size

    def power_fails(self, path: Path) -> None:
        """Cut the file at a random place after its synced bytes."""
        facts = path.stat()
        synced_bytes = self.synced_bytes.get(facts.st_ino, 0)
        os.truncate(path, self.chance.randint(synced_bytes, facts.st_size))

    def start(self, name: str, run: Callable[[], object]) -> Task:
        self._tasks.append(Task(name, run))
        return self._tasks[-1]

    def at(self, delay_ns: int, event: Callable[[], None]) -> None:
        self._events.append((self.now_ns + delay_ns, event))

    def wait(self, is_ready: Callable[[], bool], until_ns: int) -> None:
        """Let other tasks run until the calling task is ready, or until that time."""
        assert self._running is not None
        self._running.hand_over(is_ready, max(until_ns, self.now_ns + US))

    def spend(self) -> None:
        """Spend the time of a call of a link. Crash if the task's process has to end at this call."""
        self.now_ns += 2 * US
        task = self._running
        if task is not None and task.crashes_in >= 0:
            task.crashes_in -= 1
            if task.crashes_in < 0 and task.may_crash():
                raise Crash

    def run(self) -> None:
        """Run until every task has ended and no event is left. AssertionError if that takes too long."""
        while self._waiting_tasks or self._events:
            waiting = self._waiting_tasks
            assert self.now_ns < LONGEST_NS, f"these tasks hang: {[task.name for task in waiting]}"
            due_events = [event for event in self._events if event[0] <= self.now_ns]
            for event in due_events:
                self._events.remove(event)
                _, run_event = event
                run_event()
            ready = [task for task in waiting if task.until_ns <= self.now_ns or task.is_ready()]
            if not ready:
                self._pass(waiting)
                continue
            self._running = self.chance.choice(ready)
            self._running.go()
            self._running = None

    @property
    def _waiting_tasks(self) -> list[Task]:
        return [task for task in self._tasks if not task.is_done]

    def _pass(self, waiting: list[Task]) -> None:
        """Move the clock in steps of a millisecond at most, until a task is ready or the next task or event is due."""
        due_times_ns = [task.until_ns for task in waiting]
        due_times_ns += [due_ns for due_ns, _ in self._events]
        next_due_ns = min(LONGEST_NS, *due_times_ns) if due_times_ns else self.now_ns + MS
        self.now_ns = max(self.now_ns + US, min(next_due_ns, self.now_ns + MS))
        while self.now_ns < next_due_ns and not any(task.is_ready() for task in self._waiting_tasks):
            self.now_ns = min(next_due_ns, self.now_ns + MS)


class DelayedQueue:
    """Frames on their way, in order. Each arrives after a random delay."""

    def __init__(self, world: World, slowest_ns: int = 3 * MS) -> None:
        self._world = world
        self._slowest_ns = slowest_ns
        self._frames: deque[tuple[int, bytes]] = deque()
        self._last_ns = 0

    def put(self, frame: bytes) -> None:
        arrival_ns = self._world.now_ns + self._world.chance.randint(10 * US, self._slowest_ns)
        self._last_ns = max(self._last_ns, arrival_ns)  # no frame overtakes another
        self._frames.append((self._last_ns, frame))

    def put_back(self, frames: list[bytes]) -> None:
        """Put frames in front again, as a broker does with unacknowledged messages."""
        self._frames.extendleft((self._world.now_ns, frame) for frame in reversed(frames))

    @property
    def has_arrivals(self) -> bool:
        return bool(self._frames) and self._frames[0][0] <= self._world.now_ns

    @property
    def is_empty(self) -> bool:
        return not self._frames

    def take(self) -> bytes:
        _, frame = self._frames.popleft()
        return frame

    def lose_some(self) -> None:
        """Drop a random number of the last frames, perhaps all."""
        for _ in range(self._world.chance.randint(0, len(self._frames))):
            self._frames.pop()


class SimulatedLink(Link):
    """One end of two queues. Once `is_broken`, its peer is gone after the last frame."""

    def __init__(self, world: World, inbound: DelayedQueue, outbound: DelayedQueue) -> None:
        self.url = "simulated://engine"
        self._world = world
        self.inbound = inbound
        self.outbound = outbound
        self.is_broken = False
        self.peer: SimulatedLink | None = self
        """None while nobody is connected."""
        self.unacknowledged: list[bytes] = []

    def receive(self, batch: FrameBatch) -> int:
        self._world.spend()
        before = batch.count
        while self.inbound.has_arrivals:
            frame = self.inbound.take()
            self.unacknowledged = [*self.unacknowledged[-20:], frame]
            batch.append(frame)
        if self.is_broken and batch.count == before and self.inbound.is_empty:
            raise PeerGone("the connection broke")
        return batch.count - before

    def send(self, batch: FrameBatch, first: int) -> int:
        self._world.spend()
        if self.peer is None:
            return first
        if self.is_broken:
            raise PeerGone("the connection broke")
        if batch.count == first:
            return first
        taken = self._world.chance.randint(first + 1, batch.count)
        for index in range(first, taken):
            self.outbound.put(batch[index])
        return taken

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self._world.spend()
        self._world.wait(lambda: self._is_ready(readable, writable), until_ns)
        if self.is_broken and not readable:
            raise PeerGone("the connection broke")

    def _is_ready(self, readable: bool, writable: bool) -> bool:
        return (readable and self.inbound.has_arrivals) or (writable and self.peer is not None) or self.is_broken

    def close(self, linger_s: float = 1.0) -> None:
        self.is_broken = True
        if self.peer is not None:
            self.peer.is_broken = True


class ConfirmingSink(Link):
    """A reporter that takes every frame and confirms the end."""

    url = "simulated://reporter"

    def __init__(self, world: World) -> None:
        self._world = world
        self._is_ended = False
        self.messages: list[Message | None] = []

    def receive(self, batch: FrameBatch) -> int:
        self._world.spend()
        if not self._is_ended:
            return 0
        batch.append(encode(End(0, 0, 0, 0)))
        return 1

    def send(self, batch: FrameBatch, first: int) -> int:
        self.messages += [decode(batch[index]) for index in range(first, batch.count)]
        self._is_ended |= any(isinstance(message, End) for message in self.messages)
        return batch.count

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self._world.wait(lambda: self._is_ended, until_ns)

    def close(self, linger_s: float = 1.0) -> None:
        pass
