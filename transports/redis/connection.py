"""One connection to a Redis server: the greeting, the buffers of both directions, and what is no frame.

A link has two connections. Their buffers and bounds lie in two arrays of the link, in which the compiled calls that it
lends go on where Python stopped; see compiled.py.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from transports.base import Address, BadAddress, PeerGone
from transports.frames import LONGEST_FRAME, Bytes, Longs
from transports.redis.resp import ErrorReply, NoResp, command, parse
from transports.sockets import connect_socket, set_nodelay
from transports.waiting import READABLE, WRITABLE, Sleeper

PORT = 6379
PASSWORD = "EXCHANGE_REDIS_PASSWORD"
"""The variable with the password of the address's user, or without a user the server's password."""
ANSWER_S = 10.0
"""How long a server may take to answer a command before the first frame."""
RETRY_NS = 10_000_000
INCOMING_BYTES = LONGEST_FRAME + (1 << 18)
SMALL_BYTES = 1 << 17
"""The buffers of a connection that carries no frames."""

# Places in a connection's `bounds`.
BEGIN = 0
"""The begin, in the incoming bytes, of those that are not taken."""
END = 1
"""The end of those bytes."""
UNSENT = 2
"""The begin, in the outgoing bytes, of those that are not sent."""
UNSENT_END = 3
"""The end of those bytes."""
BOUNDS = 4
"""The length of `bounds`."""

Version = tuple[int, ...]
OLDEST: Version = (6, 0)
"""The first Redis with RESP3, in which one connection has messages of channels beside replies."""


@dataclass(frozen=True)
class RedisAddress:
    """A server's host and port, and our user there."""

    host: str
    port: int
    user: str

    @classmethod
    def of(cls, address: Address) -> RedisAddress:
        """The parts of an address. BadAddress if a part is missing or wrong, or if the URL has a password."""
        parts = urlsplit(address.url)
        if parts.password is not None:
            raise BadAddress(f"{address.masked_url}: a URL takes no password: set {PASSWORD}")
        try:
            port = parts.port
        except ValueError:
            port = 0
        if port == 0:
            raise BadAddress(f"{address.masked_url}: the port is to be 1..65535")
        if not parts.hostname:
            raise BadAddress(f"{address.masked_url!r} lacks a host: it takes the form redis://host:port")
        if parts.path not in ("", "/"):
            raise BadAddress(
                f"{address.masked_url}: {parts.path!r} means nothing here: it takes the form redis://host:port"
            )
        return cls(parts.hostname, port or PORT, unquote(parts.username or ""))

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"


class ServerGone(PeerGone):
    """The server has closed a connection, or cannot be reached any more."""


class RedisConnection:
    """Bytes to and from one server. A connection that breaks raises ServerGone, whose sentence names the server."""

    def __init__(
        self, sock: socket.socket, server: RedisAddress, bounds: Longs, incoming: Bytes, outgoing: Bytes
    ) -> None:
        self._socket = sock
        self._server = server
        self.fd = sock.fileno()
        self.facts: dict[str, Any] = {}
        """The server's answer to HELLO: server, version, mode, role."""
        self.bounds = bounds
        self.incoming = incoming
        self.outgoing = outgoing
        self._later: list[bytes] = []
        """Commands that found no room in the outgoing buffer."""
        sock.setblocking(False)

    @classmethod
    def open(cls, address: Address, until_ns: int, arrays: tuple[Longs, Bytes, Bytes] | None = None) -> RedisConnection:
        """Connect, and return once the server has accepted our introduction.

        `arrays` are bounds, incoming and outgoing bytes; without them, the connection has small ones of its own.
        BadAddress if the server is no Redis server or refuses us; PeerGone if there is none in time.
        """
        server = RedisAddress.of(address)
        bounds, incoming, outgoing = arrays or (
            np.zeros(BOUNDS, np.int64),
            np.zeros(SMALL_BYTES, np.uint8),
            np.zeros(SMALL_BYTES, np.uint8),
        )
        while True:
            connection = cls(_connected(server, address, until_ns), server, bounds, incoming, outgoing)
            set_nodelay(connection.fd, address.nodelay)
            try:
                answer = connection._introduce()
            except BaseException:
                connection.close()
                raise
            if not isinstance(answer, ErrorReply):
                return connection
            connection.close()
            if answer.code != "LOADING" or time.monotonic_ns() >= until_ns:
                raise BadAddress(f"the Redis server at {server.place} refused us: {in_words(answer)}")
            Sleeper([]).sleep(time.monotonic_ns() + RETRY_NS)

    def _introduce(self) -> ErrorReply | None:
        """Ask for RESP3, with our password if there is one. Returns the server's refusal."""
        password = os.environ.get(PASSWORD, "")
        words = ["HELLO", "3"]
        if password or self._server.user:
            words += ["AUTH", self._server.user or "default", password]
        self.write(command(*words))
        try:
            answer = self.await_value()
        except NoResp as error:
            raise BadAddress(f"{self._server.place} is no Redis server: it began with {error}") from error
        except ServerGone as error:
            raise BadAddress(
                f"{self._server.place} is no Redis server, or it wants TLS, which this transport lacks: "
                "it closed the connection at our first command"
            ) from error
        if isinstance(answer, ErrorReply):
            return answer
        if not isinstance(answer, dict):
            raise BadAddress(f"{self._server.place} is no Redis server: it answered {answer!r}")
        self.facts = {_text(name): _text(value) for name, value in answer.items()}
        return None

    @property
    def version(self) -> Version:
        """The server's version; () if it does not say one."""
        numbers = str(self.facts.get("version", "")).split(".")
        return tuple(int(number) for number in numbers if number.isdecimal())

    def require(self, oldest: Version, what: str) -> None:
        """BadAddress if the server is older than that; `what` is what needs it, as the begin of a sentence."""
        if self.version < oldest:
            needs = ".".join(map(str, oldest))
            raise BadAddress(
                f"{what} needs Redis {needs} or newer; {self._server.place} is version {self.facts.get('version')}"
            )

    def ask(self, *words: str | bytes) -> Any:
        """Send a command, and return the answer. Use it only while no other answer is due.

        BadAddress if the server refuses, or does not answer in time.
        """
        self.write(command(*words))
        try:
            answer = self.await_value()
        except NoResp as error:
            raise self.no_redis(error) from error
        if isinstance(answer, ErrorReply):
            raise BadAddress(f"the Redis server at {self._server.place} refused {words[0]!r}: {in_words(answer)}")
        return answer

    def await_value(self) -> Any:
        """Wait for the next value. BadAddress if none comes in time."""
        until_ns = time.monotonic_ns() + int(ANSWER_S * 1e9)
        while True:
            is_late = time.monotonic_ns() > until_ns  # before the look: we may have been slow ourselves, not the server
            self.flush()
            value = self.next_value()
            if value is NOTHING:
                self.fill()
                value = self.next_value()
            if value is not NOTHING:
                return value
            if is_late:
                raise BadAddress(f"{self._server.place} is no Redis server: it sent no answer in time")
            self.sleep(time.monotonic_ns() + RETRY_NS)

    def next_value(self) -> Any:
        """Take the next value that is no frame; NOTHING if it has not come as a whole. NoResp if it is none."""
        begin, end = int(self.bounds[BEGIN]), int(self.bounds[END])
        if begin == end:
            return NOTHING
        parsed = parse(self.incoming[begin:end].tobytes(), 0)
        if parsed is None:
            if end - begin == len(self.incoming):
                raise NoResp("a value without an end")
            return NOTHING
        self.bounds[BEGIN] = begin + parsed.end
        return parsed.value

    def fill(self) -> None:
        """Take in the bytes that have come, as far as there is room."""
        bounds = self.bounds
        incoming = self.incoming
        begin, end = int(bounds[BEGIN]), int(bounds[END])
        if begin == end:
            begin = end = 0
        elif end == len(incoming):
            incoming[: end - begin] = incoming[begin:end].copy()
            begin, end = 0, end - begin
        bounds[BEGIN], bounds[END] = begin, end
        if end == len(incoming):
            return
        try:
            came = self._socket.recv_into(incoming.data[end:])
        except BlockingIOError:
            return
        except OSError as error:
            raise self.gone(error.strerror or str(error)) from error
        if came == 0:
            raise self.gone("it closed the connection")
        bounds[END] = end + came

    def gone(self, why: str) -> ServerGone:
        """The error of a connection that ended. An error that the server reported before its end replaces `why`."""
        with contextlib.suppress(NoResp):
            value = self.next_value()
            while value is not NOTHING:
                if isinstance(value, ErrorReply):
                    why = in_words(value)
                value = self.next_value()
        return ServerGone(f"the Redis server at {self._server.place} went away: {why}")

    def refused(self, answer: ErrorReply) -> PeerGone:
        """The error of a message, or of another command after the first frame, that the server refuses."""
        return PeerGone(f"the Redis server at {self._server.place} refused a message: {in_words(answer)}")

    def no_redis(self, error: NoResp) -> PeerGone:
        return PeerGone(f"what came from {self._server.place} is no Redis protocol: {error}")

    def write(self, words: bytes) -> None:
        """Send a command behind everything that was taken before."""
        self._later.append(words)
        self.flush()

    def flush(self) -> bool:
        """Write what was taken. True if all of it has gone."""
        bounds = self.bounds
        while True:
            begin, end = int(bounds[UNSENT]), int(bounds[UNSENT_END])
            if begin == end:
                bounds[UNSENT] = bounds[UNSENT_END] = begin = end = 0
                if not self._later:
                    return True
            while self._later and end + len(self._later[0]) <= len(self.outgoing):
                words = self._later.pop(0)
                self.outgoing[end : end + len(words)] = np.frombuffer(words, np.uint8)
                end += len(words)
                bounds[UNSENT_END] = end
            try:
                bounds[UNSENT] = begin + self._socket.send(self.outgoing.data[begin:end])
            except BlockingIOError:
                return False
            except OSError as error:
                raise self.gone(error.strerror or str(error)) from error

    @property
    def has_unsent(self) -> bool:
        return bool(self.bounds[UNSENT] < self.bounds[UNSENT_END] or self._later)

    @property
    def has_later(self) -> bool:
        """True if a command waits for room in the outgoing buffer."""
        return bool(self._later)

    def events(self, readable: bool) -> tuple[int, int]:
        """What to sleep on: until bytes have come (`readable`), and until unsent bytes can go."""
        return self.fd, (READABLE if readable else 0) | (WRITABLE if self.has_unsent else 0)

    def sleep(self, until_ns: int, readable: bool = True) -> None:
        Sleeper([self.events(readable)]).sleep(until_ns)

    def close(self) -> None:
        self._socket.close()


class _Nothing:
    """The type of NOTHING: None is a value of RESP."""


NOTHING = _Nothing()


def in_words(answer: ErrorReply) -> str:
    """A server's refusal, with what to do if we know it."""
    advice = ADVICE.get(answer.code, "")
    if answer.code == "ERR" and "HELLO" in answer.text.upper():
        advice = f"it is older than Redis {'.'.join(map(str, OLDEST))}, which this transport needs"
    if answer.code == "MOVED":
        advice = (
            f"it is a member of a cluster that keeps this stream at {answer.text.rpartition(' ')[2]}: name that one"
        )
    return f"{answer.text}: {advice}" if advice else answer.text


ADVICE = {
    "NOAUTH": f"set {PASSWORD} to its password, and put a user into the address if it has users",
    "WRONGPASS": f"set {PASSWORD} to the password of the address's user, or without a user to the server's",
    "NOPERM": "its user may not do that: see ACL SETUSER",
    "DENIED": f"it is open to its own host only until it has a password: give it one, and set {PASSWORD}",
    "OOM": "its memory is full: raise its maxmemory",
    "READONLY": "it is a replica: name the server that it follows",
    "MISCONF": "it cannot write to its disk",
    "NOPROTO": "it is no Redis 6 or newer",
    "CLUSTERDOWN": "its cluster does not work",
    "WRONGTYPE": "somebody else uses this name for another kind of value",
}
"""What to do about a refusal, by the first word of the server's answer."""


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _connected(server: RedisAddress, address: Address, until_ns: int) -> socket.socket:
    """Connect, again and again until there is a server. PeerGone if there is none in time."""
    while True:
        try:
            return connect_socket(server.host, server.port, max((until_ns - time.monotonic_ns()) / 1e9, 0.01), address)
        except OSError as error:
            if time.monotonic_ns() >= until_ns:
                why = error.strerror or str(error)
                raise PeerGone(f"no Redis server answers at {server.place} ({why})") from error
            Sleeper([]).sleep(time.monotonic_ns() + RETRY_NS)
