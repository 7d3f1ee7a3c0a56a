"""A Redis link: the keys by which two ends meet at a server, and how each knows that the other is there.

    listener   frames    <base>:in                from every connector
               words     <base>:words
    connector  frames    <base>:out:<name>        a pair's answers, for this connector alone
                         <base>:out               fan-in: the same frames for every connector
               words     <base>:words:<name>      its name is drawn at random

Words always go through channels, frames through channels or streams (carriers.py). Two ends meet before they send:

    connector ── hello <name> ──▶ listener      again until it is answered
    connector ◀── welcome ───────  listener      or `full`, if a pair has its one peer

A pair's connector sends once it is welcome; a fan-in takes everybody, so its connectors send at once.

An end is there while somebody subscribes to its channel for words; the server ends a subscription with its connection.
So a listener finds that its place is taken, and each end finds that the other has left: both ask once a second.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

from transports.base import Address, BadAddress, Link, PeerGone
from transports.frames import FrameBatch
from transports.lending import NOTICE, SOCKETS_ARE_COMPILED, Lent
from transports.redis import places
from transports.redis.carriers import Carrier, StreamCarrier
from transports.redis.connection import NOTHING, RedisConnection, ServerGone
from transports.redis.kinds import KINDS
from transports.redis.protocol import FULL, OTHER
from transports.redis.resp import Push
from transports.redis.wires import Wires
from transports.sockets import read_back
from transports.waiting import HAS_PPOLL, Sleeper

# The words that two ends exchange beside frames.
HELLO = b"hello"
WELCOME = b"welcome"
FULL_ALREADY = b"full"
HELLO_EVERY_NS = 20_000_000
CHECK_EVERY_NS = 1_000_000_000
AFTER_THE_END_NS = 1_000_000_000
"""How long the server may take to say why it hung up."""


class RedisLink(Link):
    """The parts that both ends have in common: frames, the check that the peers are there, waiting."""

    def __init__(self, address: Address, base: str, wires: Wires, carrier: Carrier) -> None:
        self.url = address.url
        self._address = address
        self._base = base
        self._wires = wires
        self._carrier = carrier
        self._peers: dict[str, str] = {}
        """The channel for words to each peer that has been met, by its name."""
        self._leaver: str | None = None
        """Why no peer is left, once all of the last one's frames have come; None while there is one, or none came."""
        self._next_check_ns = 0

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        self._check_peers()
        self._take_replies()
        if not self._carrier.is_frame_next():
            self._fill_messages()
        why = self._carrier.take(batch)
        while why == OTHER and self._take_other():
            why = self._carrier.take(batch)
        if batch.count == before and why != FULL:
            self._raise_if_left()
        return batch.count - before

    def _fill_messages(self) -> None:
        """Take in what has come on the connection for messages. PeerGone says why the server has closed it, if so."""
        try:
            self._wires.messages.fill()
        except ServerGone as error:
            raise self._explained(error) from error

    def _explained(self, error: ServerGone) -> PeerGone:
        """Return the error; if the server still runs, with the probable reasons for which it hung up."""
        try:
            second_connection = RedisConnection.open(self._address, time.monotonic_ns() + AFTER_THE_END_NS)
        except (PeerGone, BadAddress):
            return error
        with contextlib.closing(second_connection):
            limit = _limit_of_slow_clients(second_connection)
        return PeerGone(
            f"{error}, but it is still running. Probably this client was too slow: more waited for it than "
            f"client-output-buffer-limit pubsub allows ({limit}). Or an administrator ended it by CLIENT KILL"
        )

    def _take_other(self) -> bool:
        """Handle one value that is no frame. False if no such value has come as a whole."""
        value = self._wires.next_control_value()
        if value is NOTHING:
            return False
        if not isinstance(value, Push):
            self._carrier.handle(value)
        elif value.items[0] == b"message" and len(value.items) == 3:
            word, _, name = bytes(value.items[2]).partition(b" ")
            self._handle_word(word, name.decode("ascii", "replace"))
        return True

    def _handle_word(self, word: bytes, name: str) -> None:
        """Handle a word of the other end; `name` is the connector that a HELLO names."""
        raise NotImplementedError

    def _handle_absence(self, name: str) -> None:
        """Handle the server's answer that nobody subscribes to this peer's words any more."""
        raise NotImplementedError

    def _publish(self, channel: str, words: bytes) -> None:
        self._wires.command("PUBLISH", channel, words)

    def _take_replies(self) -> None:
        """Count the server's replies, and see from the answers to PUBSUB NUMSUB who is not there any more."""
        for answer in self._wires.take_replies():
            for at in range(0, len(answer) - 1, 2):
                if answer[at + 1] == 0:
                    self._miss(answer[at])

    def _miss(self, channel: object) -> None:
        for name, its_channel in list(self._peers.items()):
            if its_channel.encode() == channel:
                self._handle_absence(name)

    def _lose_last_peer(self, sentence: str) -> None:
        """Note that no peer is left; PeerGone is due once what the server has for us has come."""
        self._leaver = sentence
        self._carrier.ask_for_mark()

    def _check_peers(self) -> None:
        """Ask once a second whether the peers are there."""
        now_ns = time.monotonic_ns()
        if now_ns < self._next_check_ns:
            return
        self._next_check_ns = now_ns + CHECK_EVERY_NS
        self._carrier.keep_alive()
        if self._peers:
            self._wires.command("PUBSUB", "NUMSUB", *self._peers.values())

    @property
    def _has_left(self) -> bool:
        return self._leaver is not None and not self._carrier.mark_is_due

    def _raise_if_left(self) -> None:
        if self._has_left:
            raise PeerGone(str(self._leaver))

    def send(self, batch: FrameBatch, first: int) -> int:
        if not self._may_send:
            self._check_peers()
            return first
        taken = self._wires.send_frames(batch, first)
        self._take_replies()
        return taken

    @property
    def _may_send(self) -> bool:
        return bool(self._peers)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        wires = self._wires
        self._check_peers()
        self._take_replies()
        if not (readable and self._carrier.is_frame_next()):
            self._fill_messages()
        while not self._carrier.is_frame_next() and self._take_other():
            pass
        wires.flush()
        if not readable:
            self._raise_if_left()
        holds_frames = self._carrier.is_frame_next()
        if readable and (holds_frames or self._has_left):
            return
        if writable and self._may_send and not wires.commands.has_unsent:
            return
        watched = [wires.messages.events(readable or not holds_frames), wires.commands.events(readable=True)]
        Sleeper(watched).sleep(min(until_ns, self._next_check_ns))

    def watched(self) -> list[tuple[int, int]]:
        return [self._wires.messages.events(readable=True), self._wires.commands.events(readable=True)]

    def lend(self) -> Lent | None:
        """The compiled calls; None without a peer, or while bytes are unsent, which only Python sends. See lent_by."""
        if not SOCKETS_ARE_COMPILED or not HAS_PPOLL:
            return None
        if not self._peers or self._leaver is not None or self._wires.has_unsent or self._carrier.holds_left_over:
            return None
        from transports.redis.compiled import lent_calls

        return lent_calls(self._wires, self._is_stream, self._next_check_ns, self._settle)

    @property
    def _is_stream(self) -> bool:
        return isinstance(self._carrier, StreamCarrier)

    def _settle(self) -> None:
        """Do what lent calls left to Python; see Lent.settle. The next `receive` raises PeerGone if that is due."""
        self._wires.numbers[NOTICE] = 0
        self._wires.flush()
        self._take_replies()
        self._check_peers()

    @property
    def junk(self) -> int:  # type: ignore[override]
        return int(self._wires.numbers[places.TOO_LONG])

    def sockets(self) -> list[dict[str, Any]]:
        return read_back([self._wires.commands.fd, self._wires.messages.fd], self._address.nodelay)

    def facts(self) -> dict[str, Any]:
        about = self._wires.commands.facts
        return {
            "server": "Redis",
            "version": about.get("version"),
            "kind": kind_of(self._address),
            **self._carrier.facts(),
        }

    def drain(self, until_ns: int) -> bool:
        """Wait until the server has replied to all that was sent: it has passed on, or kept, each frame."""
        wires = self._wires
        try:
            while True:
                has_gone = wires.flush()
                self._take_replies()
                if has_gone and not wires.has_unanswered:
                    return True
                if time.monotonic_ns() >= until_ns:
                    return False
                wires.commands.sleep(until_ns)
        except PeerGone:
            return False

    def close(self, linger_s: float = 1.0) -> None:
        until_ns = time.monotonic_ns() + int(linger_s * 1e9)
        if self.drain(until_ns):
            with contextlib.suppress(PeerGone):
                self._carrier.forget()
            self.drain(until_ns)
        self._wires.close()


class RedisListener(RedisLink):
    """The end that is there first. A pair's listener has one peer, a fan-in's any number."""

    def _handle_word(self, word: bytes, name: str) -> None:
        if word != HELLO or not name.isalnum():
            return
        channel = f"{self._base}:words:{name}"
        if name not in self._peers:
            if self._peers and not self._address.fan_in:
                self.refused += 1
                self._publish(channel, FULL_ALREADY)
                self._next_check_ns = 0  # the peer that it has may be gone
                return
            self._peers[name] = channel
            self._leaver = None
            if not self._address.fan_in:
                self._carrier.send_to(f"{self._base}:out:{name}")
        self._publish(channel, WELCOME)

    def _handle_absence(self, name: str) -> None:
        if self._peers.pop(name, None) is not None and not self._peers:
            self._lose_last_peer(f"the peer at {self._address.masked_url} has left the Redis server")


class RedisConnector(RedisLink):
    """The end that comes to a listener."""

    def __init__(self, address: Address, base: str, wires: Wires, carrier: Carrier, name: str) -> None:
        super().__init__(address, base, wires, carrier)
        self._name = name
        self._check_peers()

    def _check_peers(self) -> None:
        """Greet the listener until it answers; then as every link."""
        if self._peers or self._leaver is not None:
            super()._check_peers()
        elif time.monotonic_ns() >= self._next_check_ns:
            self._next_check_ns = time.monotonic_ns() + HELLO_EVERY_NS
            self._publish(f"{self._base}:words", HELLO + b" " + self._name.encode())

    @property
    def _may_send(self) -> bool:
        return self._address.fan_in or super()._may_send

    def _handle_word(self, word: bytes, name: str) -> None:  # noqa: ARG002
        if word == WELCOME:
            self._peers["listener"] = f"{self._base}:words"
            self._next_check_ns = time.monotonic_ns() + CHECK_EVERY_NS
        elif word == FULL_ALREADY and not self._peers:
            self._lose_last_peer(f"{self._address.masked_url} has its one peer already")

    def _handle_absence(self, name: str) -> None:
        if self._peers.pop(name, None) is not None:
            self._lose_last_peer(f"the listener at {self._address.masked_url} has left the Redis server")

    def excuse(self) -> str:
        return "" if self._peers else f" (nobody listens at the Redis server {self._address.masked_url})"


def kind_of(address: Address) -> str:
    return address.options.get("kind", KINDS[0])


def _limit_of_slow_clients(server: RedisConnection) -> str:
    """The limit of what the server keeps for a subscriber, as it stands in its configuration."""
    try:
        answer = server.ask("CONFIG", "GET", "client-output-buffer-limit")
        limits = bytes(next(iter(answer.values()))).decode()
    except (BadAddress, PeerGone, AttributeError, StopIteration):
        return "it does not tell how much"
    return limits.partition("pubsub ")[2] or limits
