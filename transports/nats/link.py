"""A NATS link: the subjects by which two ends meet at a server, and how each knows that the other is there.

    listener   frames    <base>.in                from every connector
               words     <base>.words
    connector  frames    <base>.out.<name>        a pair's answers, for this connector alone
                         <base>.out               fan-in: the same frames for every connector
                         <base>.out               delivery=durable: the same subject for each connector
               words     <base>.words.<name>      its name is drawn at random
    each end   nobody    <base>.nobody.<name>.*   the server's word that the last name has no subscription

NATS keeps nothing for a subscriber that has not come yet, so two ends meet before they send:

    connector ── hello <name> ──▶ listener      again until it is answered
    connector ◀── welcome ───────  listener      or `full`, if a pair has its one peer

A pair's connector sends once it is welcome; a fan-in takes everybody, so its connectors send at once.

The server tells a publisher at once when nobody has subscribed to a subject ("no responders", NATS 2.2). By that a
listener finds that its place is taken, and each end finds that the other has left: each end checks once a second.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

from transports.base import Address, Link, PeerGone
from transports.blocks import lay_out
from transports.facts import MAX_PAYLOAD
from transports.frames import FrameBatch
from transports.lending import NOTICE, SOCKETS_ARE_COMPILED, Lent
from transports.nats.carriers import CoreCarrier
from transports.nats.connection import TOO_LONG, Connection, Control
from transports.nats.protocol import FULL, OTHER
from transports.sockets import read_back
from transports.waiting import HAS_PPOLL, Sleeper

# The numbers of an end's subscriptions beside FRAME_SUBSCRIPTION.
WORD_SUBSCRIPTION = 2
"""The other end's words."""
NOBODY_SUBSCRIPTION = 3
"""The server's answers that the other end has no subscription."""
LISTENER = "listener"
"""The name of the end that is there first."""

# The words that two ends exchange beside frames.
HELLO = b"hello"
WELCOME = b"welcome"
FULL_ALREADY = b"full"
ARE_YOU_THERE = b"?"
"""Asked only for the server's answer, in case nobody is there."""
HELLO_EVERY_NS = 20_000_000
CHECK_EVERY_NS = 1_000_000_000
NO_RESPONDERS = b"NATS/1.0 503"
"""The beginning of the headers with which the server answers for a subject without subscribers."""


class NatsLink(Link):
    """The parts that both ends have in common: frames, the check that the peers are there, waiting."""

    def __init__(self, address: Address, base: str, connection: Connection, name: str, carrier: CoreCarrier) -> None:
        self.url = address.url
        self._address = address
        self._base = base
        self._connection = connection
        self._name = name
        self._carrier = carrier
        self._peers: dict[str, str] = {}
        """The subject for words to each peer that has been met, by its name."""
        self._problem: str | None = None
        """Why no peer is left; None while there is one, or none has come yet."""
        self._next_check_ns = 0
        _warm()

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        self._carrier.come_back()
        self._carrier.serve()
        self._check_peers()
        if not self._connection.is_frame_next:
            self._connection.fill()
        why = self._carrier.take(batch)
        while why == OTHER and self._take_control():
            why = self._carrier.take(batch)
        if batch.count == before and why != FULL:
            self._raise_if_left()
        return batch.count - before

    def _take_control(self) -> bool:
        """Handle one block that is no frame. False if no such block has come as a whole."""
        control = self._connection.next_control()
        if control is None:
            return False
        if control.operation == "PING":
            self._connection.write(b"PONG\r\n")
        elif control.operation == "-ERR":
            raise self._connection.gone(self._connection.in_words(control))
        elif control.operation in ("MSG", "HMSG"):
            self._handle_message(control)
        return True

    def _handle_message(self, control: Control) -> None:
        """Handle a word of the other end, or the server's answer that the other end has no subscription."""
        if control.operation == "HMSG":
            if control.payload.startswith(NO_RESPONDERS):
                self._handle_absence(control.words[0].rpartition(".")[2])
            return
        word, _, name = control.payload.partition(b" ")
        self._handle_word(word, name.decode("ascii", "replace"))

    def _handle_word(self, word: bytes, name: str) -> None:
        """Handle a word of the other end; `name` is the connector that a HELLO names."""
        raise NotImplementedError

    def _handle_absence(self, name: str) -> None:
        """Handle the server's answer that the end with this name has no subscription any more."""
        raise NotImplementedError

    def _publish_words(self, subject: str, words: bytes, reply_to: str = "") -> None:
        """Publish words beside the frames; the server answers to `reply_to` if nobody has subscribed."""
        head = f"PUB {subject} {reply_to} {len(words)}" if reply_to else f"PUB {subject} {len(words)}"
        self._connection.write(head.encode() + b"\r\n" + words + b"\r\n")

    def _check_peers(self) -> None:
        """Ask once a second whether the peers are there; the server answers for those that are not."""
        now_ns = time.monotonic_ns()
        if now_ns < self._next_check_ns:
            return
        self._next_check_ns = now_ns + CHECK_EVERY_NS
        for name, subject in self._peers.items():
            self._publish_words(subject, ARE_YOU_THERE, f"{self._base}.nobody.{self._name}.{name}")

    def _lose_last_peer(self, sentence: str) -> None:
        """Note that no peer is left; PeerGone is due once what the server has for us has come."""
        self._problem = sentence
        self._carrier.ask_for_mark()

    @property
    def _has_left(self) -> bool:
        return self._problem is not None and not self._carrier.mark_is_due

    def _raise_if_left(self) -> None:
        if self._has_left:
            raise PeerGone(str(self._problem))

    def send(self, batch: FrameBatch, first: int) -> int:
        if not self._may_send:
            self._check_peers()
            return first
        return self._carrier.send(batch, first)

    @property
    def _may_send(self) -> bool:
        return bool(self._peers)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        connection = self._connection
        carrier = self._carrier
        self._check_peers()
        carrier.serve()
        if not (readable and connection.is_frame_next):
            connection.fill()
        while not connection.is_frame_next and self._take_control():
            pass
        connection.flush()
        if not readable:
            self._raise_if_left()
        holds_frames = carrier.holds_frames
        if readable and (holds_frames or self._has_left):
            return
        if writable and self._may_send and carrier.has_room:
            return
        watched = [connection.events(readable or not holds_frames), *carrier.events()]
        Sleeper(watched).sleep(min(until_ns, self._next_check_ns, carrier.next_ns))

    def watched(self) -> list[tuple[int, int]]:
        return [self._connection.events(readable=True), *self._carrier.events()]

    def lend(self) -> Lent | None:
        """The compiled calls; None without a peer, or while bytes are unsent, which only Python sends. See lent_by."""
        if not SOCKETS_ARE_COMPILED or not HAS_PPOLL:
            return None
        if not self._carrier.lends or not self._peers or self._problem is not None or self._connection.has_unsent:
            return None
        from transports.nats.compiled import lent_calls

        return lent_calls(self._connection, self._next_check_ns, self._settle)

    def _settle(self) -> None:
        """Do what lent calls left to Python; see Lent.settle. The next `receive` raises PeerGone if that is due."""
        self._connection.numbers[NOTICE] = 0
        self._connection.flush()
        self._check_peers()

    @property
    def junk(self) -> int:  # type: ignore[override]
        return int(self._connection.numbers[TOO_LONG])

    def sockets(self) -> list[dict[str, Any]]:
        return read_back([self._connection.fd, *self._carrier.descriptors()], self._address.nodelay)

    def facts(self) -> dict[str, Any]:
        info = self._connection.info
        about = {"server": "NATS", "version": info.get("version"), MAX_PAYLOAD: info.get("max_payload")}
        return {**about, **self._carrier.facts()}

    def drain(self, until_ns: int) -> bool:
        connection = self._connection
        carrier = self._carrier
        try:
            while True:
                connection.flush()
                if carrier.settle():
                    return True
                if time.monotonic_ns() >= until_ns:
                    return False
                Sleeper([connection.events(readable=False), *carrier.events()]).sleep(until_ns)
        except PeerGone:
            return False

    def close(self, linger_s: float = 1.0) -> None:
        until_ns = time.monotonic_ns() + int(linger_s * 1e9)
        if self.drain(until_ns):
            self._connection.end(until_ns)
        with contextlib.suppress(PeerGone):
            self._carrier.close()
        self._connection.close()


class NatsListener(NatsLink):
    """The end that is there first. A pair's listener has one peer, a fan-in's any number."""

    def __init__(self, address: Address, base: str, connection: Connection, carrier: CoreCarrier) -> None:
        super().__init__(address, base, connection, LISTENER, carrier)

    def _handle_word(self, word: bytes, name: str) -> None:
        if word != HELLO or not name.isalnum():
            return
        subject = f"{self._base}.words.{name}"
        if name not in self._peers:
            if self._peers and not self._address.fan_in:
                self.refused += 1
                self._publish_words(subject, FULL_ALREADY)
                self._next_check_ns = 0  # the peer that it has may be gone
                return
            self._peers[name] = subject
            self._problem = None
            if not self._address.fan_in:
                self._carrier.answer(name)
        self._publish_words(subject, WELCOME)

    def _handle_absence(self, name: str) -> None:
        if self._peers.pop(name, None) is not None and not self._peers:
            self._lose_last_peer(f"the peer at {self.url} has left the NATS server")


class NatsConnector(NatsLink):
    """The end that comes to a listener."""

    def __init__(self, address: Address, base: str, connection: Connection, name: str, carrier: CoreCarrier) -> None:
        super().__init__(address, base, connection, name, carrier)
        self._check_peers()

    def _check_peers(self) -> None:
        """Greet the listener until it answers; then as every link."""
        if self._peers or self._problem is not None:
            super()._check_peers()
        elif time.monotonic_ns() >= self._next_check_ns:
            self._next_check_ns = time.monotonic_ns() + HELLO_EVERY_NS
            self._publish_words(f"{self._base}.words", HELLO + b" " + self._name.encode())

    @property
    def _may_send(self) -> bool:
        return self._address.fan_in or super()._may_send

    def _handle_word(self, word: bytes, name: str) -> None:  # noqa: ARG002
        if word == WELCOME:
            self._peers[LISTENER] = f"{self._base}.words"
            self._next_check_ns = time.monotonic_ns() + CHECK_EVERY_NS
        elif word == FULL_ALREADY and not self._peers:
            self._lose_last_peer(f"{self.url} has its one peer already")

    def _handle_absence(self, name: str) -> None:
        if name == LISTENER and self._peers:
            self._peers.clear()
            self._lose_last_peer(f"the listener at {self.url} has left the NATS server")

    def excuse(self) -> str:
        return "" if self._peers else f" (nobody listens at the NATS server {self._address.masked_url})"


def _warm() -> None:
    """Compile the kernels, or load them from disk, before frames flow. The hello has used the scanner already."""
    nothing = FrameBatch(0, 1, 1)
    lay_out(nothing.buffer, nothing.offsets, 0, 0, nothing.buffer, nothing.buffer, 0)
    if SOCKETS_ARE_COMPILED and HAS_PPOLL:
        import transports.nats.compiled  # noqa: F401 (compiles the calls that a link lends)
