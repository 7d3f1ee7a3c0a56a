"""A link over shared memory: a Unix socket by which two processes meet, and a segment for each peer.

The connector makes the segment, and sends its descriptor with a preamble that has the token. From then on the socket
carries only bytes that wake the other process; when it is closed, the peer has left. A fan-in has a segment for each
peer.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import time
from pathlib import Path

from transports.base import Address, BadAddress, CannotListen, Link, PeerGone
from transports.frames import FrameBatch
from transports.lending import Lent
from transports.shm import segment
from transports.shm.door import SegmentDoor
from transports.shm.peer import Peer
from transports.waiting import HAS_PPOLL, READABLE, Sleeper

GREETING = b"exchange-shm"
RETRY_NS = 10_000_000
BACKLOG = 4096
MOST_PATH_BYTES = 107
"""The longest path of a Unix socket."""
OWNER_ONLY = 0o600


class ShmLink(Link):
    """One end: a connector with its one peer, or a listener with a door."""

    def __init__(self, address: Address, door: SegmentDoor | None = None) -> None:
        self.url = address.url
        self._address = address
        self._spins = address.options.get("pace") == "spin"
        self._door = door
        self._peers: list[Peer] = []
        self._had_peers = False
        self._is_open = True

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        for peer in self._peers:
            peer.receive(batch)
            self.junk += peer.take_too_long()
        if batch.count == before:
            self._drop_leavers(batch)
        return batch.count - before

    def _drop_leavers(self, batch: FrameBatch) -> None:
        """Forget peers that have left and whose frames were all delivered; a broken one is counted as junk too.

        PeerGone if the last peer has left or is broken.
        """
        for peer in [peer for peer in self._peers if peer.has_left]:
            before = batch.count
            peer.receive(batch)  # what came between the last look and the peer's end
            if batch.count > before:
                return
            if len(self._peers) == 1:
                if peer.is_broken:
                    raise PeerGone(f"the peer at {self.url} wrote into the shared memory what no peer of ours writes")
                raise PeerGone(f"the peer at {self.url} closed its end")
            if peer.is_broken:
                self.junk += 1
            peer.close()
            self._peers.remove(peer)

    def send(self, batch: FrameBatch, first: int) -> int:
        receivers = [peer for peer in self._peers if not peer.has_left]
        if len(receivers) == 1:
            return receivers[0].send(batch, first, batch.count)
        if not receivers:
            return first
        end = min(peer.first_without_room(batch, first) for peer in receivers)
        for peer in receivers:
            peer.send(batch, first, end)
        return end

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        peers = self._peers
        if self._have_left and not readable:  # a caller that also receives gets PeerGone from `receive`
            raise PeerGone(f"the peer at {self.url} closed its end")
        if self._spins and len(peers) == 1 and not self._address.fan_in:
            peers[0].watch(self._newcomers)
            peers[0].spin(until_ns, readable, writable)
        else:
            self._sleep(until_ns, readable, writable)
        self._admit()

    def _sleep(self, until_ns: int, readable: bool, writable: bool) -> None:
        """Sleep, unless what the caller waits for is there already."""
        may_sleep = [peer.prepare_sleep(readable, writable) for peer in self._peers]
        if all(may_sleep):
            watched = [*(peer.fd for peer in self._peers), *self._newcomers]
            Sleeper([(descriptor, READABLE) for descriptor in watched]).sleep(until_ns)
        for peer in self._peers:
            peer.end_sleep()

    def watched(self) -> list[tuple[int, int]]:
        """Ask the peers to wake this end, until the next `wait`; return their descriptors, and those of newcomers.

        Empty if the caller must not sleep, since a peer's frame is there already.
        """
        may_sleep = [peer.prepare_sleep(readable=True, writable=False) for peer in self._peers]
        if not all(may_sleep):
            return []
        watched = [*(peer.fd for peer in self._peers), *self._newcomers]
        return [(descriptor, READABLE) for descriptor in watched]

    @property
    def _newcomers(self) -> list[int]:
        """The descriptors that show newcomers."""
        if self._door is None:
            return []
        return [sock.fileno() for sock in self._door.sockets]

    @property
    def _have_left(self) -> bool:
        """True if there were peers, and all have left."""
        return self._had_peers and all(peer.has_left for peer in self._peers)

    def lend(self) -> Lent | None:
        """The compiled calls of a pair that has its peer."""
        if len(self._peers) != 1 or self._address.fan_in or not HAS_PPOLL:
            return None
        from transports.shm.compiled import lent_calls

        self._peers[0].watch(self._newcomers)
        return lent_calls(self._peers[0], self._settle)

    def _settle(self) -> None:
        """Do what lent calls left to Python; see Lent.settle. The next `receive` raises PeerGone if that is due."""
        for peer in self._peers:
            peer.clear_notice()
            self.junk += peer.take_too_long()
        self._admit()

    def _admit(self) -> None:
        """Let newcomers in. Only a fan-in takes more than one peer."""
        if self._door is None:
            return
        for newcomer, _ in self._door.admit():
            if self._had_peers and not self._address.fan_in:
                self._door.refuse(newcomer)
                continue
            try:
                memory = self._door.take_segment(newcomer)
            except (segment.BadSegment, segment.NoSharedMemory):
                self._door.refuse(newcomer)
                continue
            self.adopt(Peer(newcomer, memory, listens=True, spins=self._spins))

    def adopt(self, peer: Peer) -> None:
        """Make a peer one of this link's."""
        self._peers.append(peer)
        self._had_peers = True

    @property
    def refused(self) -> int:  # type: ignore[override]
        if self._door is None:
            return 0
        if self._is_open:
            self._admit()
        return self._door.refused

    def close(self, linger_s: float = 1.0) -> None:  # noqa: ARG002 (what was sent is in memory that the peer has)
        if not self._is_open:
            return
        self._is_open = False
        if self._door is not None:
            self._admit()
            self._door.close()
            Path(self._address.place).unlink(missing_ok=True)
        for peer in self._peers:
            peer.close()
        self._peers = []


def warm() -> None:
    """Compile the kernels, or load them from disk, before frames flow. NoSharedMemory if the system has none left."""
    descriptor = segment.create()
    try:
        memory = segment.mapped(descriptor)
    finally:
        os.close(descriptor)
    ours, theirs = socket.socketpair()
    peer = Peer(ours, memory, listens=True, spins=True)
    batch = FrameBatch(1, 1, 1)
    peer.receive(batch)
    peer.send(batch, 0, 0)
    peer.first_without_room(batch, 0)
    peer.prepare_sleep(readable=True, writable=True)
    peer.end_sleep()
    peer.spin(0, readable=True, writable=True)
    peer.close()
    theirs.close()
    if HAS_PPOLL:
        import transports.shm.compiled  # noqa: F401 (compiles the calls that a link lends)


def _path_of(address: Address) -> str:
    """The path of an address. BadAddress if it is none of this host, or too long for a Unix socket."""
    path = address.place
    if not path.startswith("/"):
        raise BadAddress(
            f"{address.url}: shm joins processes of one host, so it takes the path of a socket, as in "
            "shm:///tmp/exchange; between hosts use zeromq or tcp"
        )
    if len(os.fsencode(path)) > MOST_PATH_BYTES:
        raise BadAddress(
            f"{address.url}: the path has over {MOST_PATH_BYTES} bytes, which no Unix socket takes: "
            f"name a shorter path, or a shorter folder with TMPDIR"
        )
    return path


def _preamble(address: Address) -> bytes:
    """The first bytes on a connection: the greeting, the length of the token as u16, little-endian, and the token."""
    token = address.token.encode()
    return GREETING + struct.pack("<H", len(token)) + token


def _remove_orphan(path: str) -> None:
    """Remove the socket of a process that was killed: nobody listens on it."""
    if not Path(path).is_socket():
        return
    with socket.socket(socket.AF_UNIX) as caller:
        if caller.connect_ex(path) == errno.ECONNREFUSED:
            Path(path).unlink(missing_ok=True)


def listen(address: Address) -> Link:
    """Open a listener's link.

    CannotListen if another listener has the path, or we may not use it; NoSharedMemory if the system has none left.
    """
    path = _path_of(address)
    warm()
    _remove_orphan(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.setblocking(False)
    try:
        listener.bind(path)
        os.chmod(path, OWNER_ONLY)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotListen(f"cannot listen on {address.url}: {error.strerror}; choose another path") from error
    return ShmLink(address, SegmentDoor(listener, _preamble(address)))


def connect(address: Address, until_ns: int) -> Link:
    """Open a connector's link. PeerGone if nobody listens in time, NoSharedMemory if the system has none left."""
    path = _path_of(address)
    warm()
    link = ShmLink(address)
    descriptor = segment.create()
    try:
        memory = segment.mapped(descriptor)
        sock = _connected(address, path, until_ns)
        peer = Peer(sock, memory, listens=False, spins=address.options.get("pace") == "spin")
        with contextlib.suppress(ConnectionError):  # the listener has gone; the link will notice
            socket.send_fds(sock, [_preamble(address)], [descriptor])
    finally:
        os.close(descriptor)
    link.adopt(peer)
    return link


def _connected(address: Address, path: str, until_ns: int) -> socket.socket:
    """Try to connect until there is a listener. PeerGone if there is none in time."""
    while True:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(path)
            return sock
        except OSError as error:
            sock.close()
            if time.monotonic_ns() >= until_ns:
                raise PeerGone(f"nobody listens on {address.url} ({error.strerror or error})") from error
            Sleeper([]).sleep(time.monotonic_ns() + RETRY_NS)
