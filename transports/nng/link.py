"""A link over NNG: PAIR0 to PAIR0, and for a fan-in PAIR1 sockets, of which the listener's has many connections.

NNG calls a connection a pipe, and reports each one from a thread of its own. A listener admits a pipe whose first
message is the run's token, and closes any other. NNG does not tell how much is in its queues, and drops that when a
socket is closed; so `drain` compares the bytes that the kernel has sent with those of all frames.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pynng

from transports.base import Address, BadAddress, CannotListen, Link, PeerGone
from transports.frames import LONGEST_FRAME, FrameBatch
from transports.lending import NOTICE, Lent, pollfd
from transports.nng import MOST_MESSAGES, messages
from transports.sockets import bytes_that_left, read_back
from transports.waiting import HAS_PPOLL, READABLE, Sleeper

TOKEN_PREFIX = b"exchange-nng "
RECONNECT_MS = 10
CANDIDATE_NS = 5_000_000_000
"""The time that a pipe has to show the token."""
NEWS_NS = 1_000_000_000
"""The longest time from a pipe's first message to NNG's report of the pipe."""
LOOK_EVERY_NS = 1_000_000
"""The time between two looks at what has left."""
FRAMES_AT_ONCE = 2
"""Frames that NNG holds for each peer of a listener with many; it drops any further one."""
SENT_LOOK_NS = 100_000
"""The time between two looks whether NNG has sent what it holds for the peers of such a listener."""
HANDSHAKE_BYTES = 8
"""Bytes that NNG sends first on each connection."""
LENGTH_BYTES = 8
"""Bytes before each message on the wire."""
HOPS_BYTES = 4
"""Bytes of PAIR1's header."""


class PipeNews:
    """The pipes that NNG's own thread reports, and a descriptor that becomes readable with each report."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._added: list[pynng.Pipe] = []
        self._removed: list[int] = []
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        self._is_open = True

    @property
    def fd(self) -> int:
        return self._reading

    def add(self, pipe: pynng.Pipe) -> None:
        self._note(self._added, pipe)

    def remove(self, pipe: pynng.Pipe) -> None:
        self._note(self._removed, pipe.id)

    def _note(self, reports: list[Any], report: Any) -> None:
        """Keep a report, and wake whoever sleeps."""
        with self._lock:
            if self._is_open:
                reports.append(report)
                with contextlib.suppress(BlockingIOError):  # full of wakes already
                    os.write(self._writing, b"!")

    def take(self) -> tuple[list[pynng.Pipe], list[int]]:
        """The pipes added, and the numbers of those removed, since the last call."""
        with self._lock:
            with contextlib.suppress(BlockingIOError):
                os.read(self._reading, 4096)
            added, removed = self._added, self._removed
            self._added, self._removed = [], []
            return added, removed

    def close(self) -> None:
        with self._lock:
            self._is_open = False
            os.close(self._reading)
            os.close(self._writing)


@dataclass
class PeerConnection:
    """The TCP connection to a peer of a listener with many."""

    descriptor: int
    bytes_due: int
    """The bytes that have left once NNG holds no frame for this peer."""


class NngLink(Link):
    """One end. A connector admits the pipe that it dialled; a listener admits pipes that show the token."""

    def __init__(self, address: Address, nng: pynng.Socket, listens: bool) -> None:
        self.url = address.url
        self._address = address
        self._nng = nng
        self._listens = listens
        self._greeting = TOKEN_PREFIX + address.token.encode()
        self._news = PipeNews()
        self._pipes: dict[int, pynng.Pipe] = {}
        """All pipes that are there."""
        self._candidates: dict[int, int] = {}
        """The time until which a pipe that has not shown the token may do so."""
        self._gone: set[int] = set()
        """Admitted pipes that NNG has removed; frames that came from them may still be with NNG."""
        self._had_peers = False
        self._refused = 0
        self._connections_to: dict[int, PeerConnection] = {}
        """The connections to the peers of a listener with many, by the number of their pipes."""
        self._is_open = True
        self.numbers = np.zeros(messages.PLACES, np.int64)
        self.numbers[messages.SOCKET] = nng.socket.id
        self.numbers[messages.POLLFDS : messages.POLLFDS + 2] = [pollfd(nng.recv_fd), pollfd(self._news.fd)]
        nng.add_post_pipe_connect_cb(self._news.add)
        nng.add_post_pipe_remove_cb(self._news.remove)
        _warm()

    def start(self, url: str) -> None:
        """Listen, or dial; a connector shows the token first. The link's url then has the port that a listener got."""
        if not self._listens:
            self._nng.send(self._greeting, block=False)
            self.numbers[messages.BYTES_SENT] += len(self._greeting)
            self.numbers[messages.FRAMES_SENT] += 1
            self._nng.dial(url, block=False)
            return
        self._nng.listen(url)
        port = str(self._nng.listeners[0].local_address).rpartition(":")[2]
        place = f"{self._address.place.rpartition(':')[0]}:{port}"
        self._address = replace(self._address, place=place)
        self.url = self._address.url

    @property
    def _admitted(self) -> list[int]:
        """The numbers of the pipes whose frames are received."""
        end = messages.PIPES + int(self.numbers[messages.ADMITTED])
        return [int(pipe) for pipe in self.numbers[messages.PIPES : end]]

    def _set_admitted(self, pipes: list[int]) -> None:
        self.numbers[messages.PIPES : messages.PIPES + len(pipes)] = pipes
        self.numbers[messages.ADMITTED] = len(pipes)
        self._had_peers = self._had_peers or bool(pipes)

    def _take_news(self) -> None:
        """Take note of the pipes that have come and gone, and refuse those that showed no token in time."""
        added, removed = self._news.take()
        for pipe in added:
            self._pipes[pipe.id] = pipe
            if not self._listens and self._had_peers:
                continue  # NNG dials again by itself, and the token went to the first pipe: this link is over
            if not self._listens:
                self._set_admitted([pipe.id])
            elif pipe.id in self._admitted:
                continue  # its token came before NNG reported it
            elif self._had_peers and not self._address.fan_in:
                self._refuse(pipe.id)
            else:
                self._candidates[pipe.id] = time.monotonic_ns() + CANDIDATE_NS
        for number in removed:
            self._pipes.pop(number, None)
            self._connections_to.pop(number, None)
            if self._candidates.pop(number, None) is not None:
                self._refused += 1
            if number in self._admitted:
                self._gone.add(number)
        for number, until_ns in list(self._candidates.items()):
            if time.monotonic_ns() > until_ns:
                self._refuse(number)

    def _refuse(self, number: int) -> None:
        """Close a pipe, and count it."""
        self._refused += 1
        self._candidates.pop(number, None)
        pipe = self._pipes.pop(number, None)
        if pipe is not None:
            with contextlib.suppress(pynng.NNGException):
                pipe.close()

    def _judge(self) -> None:
        """Judge the pipe of the message that waits: admit it, or refuse it. The message of an admitted pipe stays.

        A connector admits the pipe of the first message: NNG may hand the message over before it reports the pipe. A
        listener admits a pipe whose message is the token, and the message goes.
        """
        self._take_news()
        number = int(messages.pipe_of_message(self.numbers))
        if not self._listens and not self._had_peers:
            self._set_admitted([number])
        if number in self._admitted:
            return  # a frame, for the next `receive`
        text = np.zeros(len(self._greeting), np.uint8)
        size, _ = messages.take_message(self.numbers, text)
        if number in self._gone:
            return  # the last message of a peer that was admitted and has left
        if not self._listens:
            return  # a connector has one peer; this came over a later pipe, and the link is over
        is_token = size == len(text) and text.tobytes() == self._greeting
        if self._address.fan_in:
            has_room = len(self._admitted) < messages.MOST_PIPES
        else:
            has_room = not self._had_peers
        if is_token and has_room:
            self._candidates.pop(number, None)
            self._set_admitted([*self._admitted, number])
        else:
            self._refuse(number)

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        self._take_news()
        self._receive(batch)
        while self.numbers[messages.MESSAGE] and batch.has_room(batch.largest_frame):
            self._judge()
            self._receive(batch)
        self._take_counts()
        if batch.count == before and self._gone:
            self._drop_leavers(batch)
        return batch.count - before

    def _receive(self, batch: FrameBatch) -> None:
        count = messages.receive_frames(self.numbers, batch.buffer, batch.offsets, batch.count, batch.largest_frame)
        batch.count = int(count)

    def _take_counts(self) -> None:
        """Take over what the compiled calls counted. PeerGone for an error of NNG."""
        self.junk += int(self.numbers[messages.TOO_LONG])
        self.numbers[messages.TOO_LONG] = 0
        error = int(self.numbers[messages.ERROR])
        if error:
            self.numbers[messages.ERROR] = 0
            raise PeerGone(f"NNG failed at {self.url}: error {error}")

    def _drop_leavers(self, batch: FrameBatch) -> None:
        """Forget the peers that have left; PeerGone if no other is there and nothing more comes."""
        staying = [number for number in self._admitted if number not in self._gone]
        if staying:
            self._set_admitted(staying)
            self._gone.clear()
            return
        before = batch.count
        self._receive(batch)  # NNG may have frames of the last peer still
        if batch.count == before:
            raise PeerGone(f"the peer at {self.url} closed the connection")

    @property
    def _have_left(self) -> bool:
        """True if there were peers, and all have left."""
        return self._had_peers and all(number in self._gone for number in self._admitted)

    def send(self, batch: FrameBatch, first: int) -> int:
        if self._listens and self._address.fan_in:
            return self._send_to_each(batch, first)
        if self._listens and not self._had_peers:
            self._take_news()
            return first
        taken = messages.send_frames(self.numbers, batch.buffer, batch.offsets, first, batch.count)
        self._take_counts()
        return int(taken)

    def _send_to_each(self, batch: FrameBatch, first: int) -> int:
        """Send a frame or two to every peer, once NNG holds no earlier one: it would drop a frame without room."""
        self._take_news()
        if not self._had_peers or first == batch.count or not self._holds_nothing:
            return first
        end = min(first + FRAMES_AT_ONCE, batch.count)
        for index in range(first, end):
            begin = int(batch.offsets[index])
            size = int(batch.offsets[index + 1]) - begin
            messages.send_to_each(self.numbers, batch.buffer, begin, size)
            for number in self._admitted:
                if number in self._connections_to:
                    self._connections_to[number].bytes_due += size + LENGTH_BYTES + HOPS_BYTES
        return end

    @property
    def _holds_nothing(self) -> bool:
        """True if all frames to the peers of a listener with many have left: NNG holds none of them any more."""
        for number in self._admitted:
            if number in self._gone:
                continue
            connection = self._connections_to.get(number)
            if connection is None:
                descriptor = self._descriptor_of(number)
                if descriptor is None:
                    return False  # NNG has not reported the pipe, or its connection is about to end
                connection = PeerConnection(descriptor, HANDSHAKE_BYTES)
                self._connections_to[number] = connection
            bytes_left = bytes_that_left(connection.descriptor)
            if bytes_left is not None and bytes_left < connection.bytes_due:
                return False
        return True

    def _descriptor_of(self, number: int) -> int | None:
        """The descriptor of a pipe's connection; None if there is none, or NNG has not reported the pipe yet."""
        pipe = self._pipes.get(number)
        if pipe is None:
            return None
        ends = self._ends_of(pipe)
        for descriptor in _sockets_of_this_process():
            for connection in read_back([descriptor], self._address.nodelay):
                if _ends(connection) == ends:
                    return descriptor
        return None

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        watched = [(self._news.fd, READABLE)]
        if readable:
            watched.append((self._nng.recv_fd, READABLE))
        self._take_news()
        if writable and self._listens and self._address.fan_in:
            if self._had_peers and self._holds_nothing:
                return
            until_ns = min(until_ns, time.monotonic_ns() + SENT_LOOK_NS)
        elif writable and (self._had_peers or not self._listens):
            watched.append((self._nng.send_fd, READABLE))  # NNG makes it readable when there is room to send
        if not readable and self._have_left:
            raise PeerGone(f"the peer at {self.url} closed the connection")
        if not self._gone:  # else `receive` has to drop those that have left, at once
            Sleeper(watched).sleep(until_ns)
        self._take_news()
        if not readable and self._have_left:
            raise PeerGone(f"the peer at {self.url} closed the connection")

    def watched(self) -> list[tuple[int, int]]:
        return [(self._news.fd, READABLE), (self._nng.recv_fd, READABLE)]

    def lend(self) -> Lent | None:
        """The compiled calls of a pair that has its peer."""
        if self._address.fan_in or not HAS_PPOLL or not self._had_peers:
            return None
        from transports.nng.compiled import lent_calls

        return lent_calls(self.numbers, self._settle)

    def _settle(self) -> None:
        """Do what lent calls left to Python; see Lent.settle."""
        self.numbers[NOTICE] = 0
        self._take_news()
        if self.numbers[messages.MESSAGE]:
            self._judge()
        self._take_counts()

    def drain(self, until_ns: int) -> bool:
        """Wait until the kernel has sent the bytes of all frames."""
        while not self._has_sent_all:
            self._take_news()
            if time.monotonic_ns() >= until_ns or self._have_left:
                return False
            Sleeper([]).sleep(time.monotonic_ns() + LOOK_EVERY_NS)
        return True

    @property
    def _has_sent_all(self) -> bool:
        """True if the kernel has sent the bytes of all frames. Frames to a peer that has left do not count."""
        if self._listens and self._address.fan_in:
            return self._holds_nothing
        overhead = LENGTH_BYTES + (HOPS_BYTES if self._address.fan_in else 0)
        frames = int(self.numbers[messages.FRAMES_SENT])
        bytes_due = HANDSHAKE_BYTES + int(self.numbers[messages.BYTES_SENT]) + frames * overhead
        for number in self._admitted:
            descriptor = self._descriptor_of(number)
            bytes_left = None if descriptor is None else bytes_that_left(descriptor)
            if bytes_left is not None and bytes_left >= bytes_due:
                return True
        return False

    def sockets(self) -> list[dict[str, Any]]:
        self._await_news_of_the_admitted()
        peers = {self._ends_of(pipe) for number, pipe in self._pipes.items() if number in self._admitted}
        return [connection for connection in self._connections() if _ends(connection) in peers]

    def _await_news_of_the_admitted(self) -> None:
        """Take NNG's reports until it has reported every admitted pipe, for a moment at most.

        A pipe's first message may come before the report, which another thread makes.
        """
        until_ns = time.monotonic_ns() + NEWS_NS
        self._take_news()
        while time.monotonic_ns() < until_ns and any(
            number not in self._pipes and number not in self._gone for number in self._admitted
        ):
            Sleeper([(self._news.fd, READABLE)]).sleep(until_ns)
            self._take_news()

    @staticmethod
    def _ends_of(pipe: pynng.Pipe) -> tuple[str, str]:
        """Local and peer address of a pipe; empty if it has just ended."""
        try:
            return str(pipe.local_address), str(pipe.remote_address)
        except pynng.NNGException:
            return "", ""

    def _connections(self) -> list[dict[str, Any]]:
        """All TCP connections of this process, among which are those that NNG opened; NNG shows no descriptors."""
        return read_back(_sockets_of_this_process(), self._address.nodelay)

    @property
    def refused(self) -> int:  # type: ignore[override]
        if not self._is_open or not self._listens:
            return self._refused
        if self.numbers[messages.MESSAGE]:
            self._judge()
        self._take_news()
        ours = self._address.place
        connections = [connection for connection in self._connections() if connection["local"] == ours]
        without_handshake = max(len(connections) - len(self._pipes), 0)  # NNG makes no pipe of them
        without_token = len(self._candidates)  # so far
        return self._refused + without_handshake + without_token

    def close(self, linger_s: float = 1.0) -> None:
        if not self._is_open:
            return
        if linger_s and self._had_peers:
            self.drain(time.monotonic_ns() + int(linger_s * 1e9))
        self._is_open = False
        self._nng.close()
        self._news.close()


def _sockets_of_this_process() -> list[int]:
    """The descriptors of all sockets of this process."""
    descriptors = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                descriptors.append(int(name))
    return descriptors


def _ends(connection: dict[str, Any]) -> tuple[str, str]:
    return str(connection["local"]), str(connection["peer"])


def _warm() -> None:
    """Compile the kernels, or load them from disk, before frames flow."""
    numbers = np.zeros(messages.PLACES, np.int64)
    batch = FrameBatch(0, 1, 1)  # without room, so that nothing is received
    messages.receive_frames(numbers, batch.buffer, batch.offsets, 0, 1)
    messages.send_frames(numbers, batch.buffer, batch.offsets, 0, 0)
    messages.send_to_each(numbers, batch.buffer, 0, 0)
    if HAS_PPOLL:
        import transports.nng.compiled  # noqa: F401 (compiles the calls that a link lends)


def _opened(address: Address, listens: bool) -> NngLink:
    """A link on a new socket. BadAddress if the place is not host:port."""
    host, port = address.host_and_port()
    url = f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
    room = int(address.options.get("hwm", MOST_MESSAGES))
    if not address.fan_in:
        nng: pynng.Socket = pynng.Pair0()
    else:
        nng = pynng.Pair1(polyamorous=listens)
    nng.send_buffer_size = room
    nng.recv_buffer_size = room
    nng.recv_max_size = 2 * LONGEST_FRAME
    nng.reconnect_time_min = RECONNECT_MS
    nng.reconnect_time_max = RECONNECT_MS
    nng.tcp_nodelay = address.nodelay
    link = NngLink(address, nng, listens)
    try:
        link.start(url)
    except pynng.AddressInUse as error:
        link.close(0)
        raise CannotListen(f"cannot listen on {address.url}: {error}; choose another address") from error
    except pynng.NNGException as error:
        link.close(0)
        raise BadAddress(f"{address.url}: NNG cannot use this address: {error}") from error
    return link


def listen(address: Address) -> Link:
    """Open a listener's link. CannotListen if another listener has the address."""
    return _opened(address, listens=True)


def connect(address: Address, _until_ns: int) -> Link:
    """Open a connector's link. It returns at once; NNG connects as soon as a listener is there."""
    return _opened(address, listens=False)
