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

import numpy as np

from transports.base import Address, BadAddress, PeerGone
from transports.frames import LONGEST_FRAME, Bytes, Longs
from transports.redis.resp import ErrorReply, NoResp, command, parse
from transports.server_address import RETRY_NS, ServerAddress
from transports.server_stream import BEGIN, BOUNDS, END, ServerStream
from transports.sockets import set_nodelay
from transports.waiting import Sleeper

PORT = 6379
PASSWORD = "EXCHANGE_REDIS_PASSWORD"
"""The variable with the password of the address's user, or without a user the server's password."""
ANSWER_S = 10.0
"""How long a server may take to answer a command before the first frame."""
LARGE_BYTES = LONGEST_FRAME + (1 << 18)
"""The length of a buffer for frames."""
SMALL_BYTES = 1 << 17
"""The length of a buffer without frames."""

Version = tuple[int, ...]
OLDEST: Version = (6, 0)
"""The first Redis with RESP3, in which one connection has messages of channels beside replies."""


class ServerGone(PeerGone):
    """The server has closed a connection, or cannot be reached any more."""


def server_address(address: Address) -> ServerAddress:
    """Return the server's place. BadAddress, as ServerAddress.of has it."""
    return ServerAddress.of(address, PORT, PASSWORD)


@dataclass(frozen=True)
class ConnectionArrays:
    """A connection's bounds and buffers, which compiled code may share."""

    bounds: Longs
    incoming: Bytes
    outgoing: Bytes


class RedisConnection(ServerStream):
    """Bytes to and from one server. A connection that breaks raises ServerGone, whose sentence names the server."""

    def __init__(self, sock: socket.socket, server: ServerAddress, arrays: ConnectionArrays) -> None:
        super().__init__(sock, arrays.bounds, arrays.incoming, arrays.outgoing)
        self._server = server
        self.facts: dict[str, Any] = {}
        """The server's answer to HELLO: server, version, mode, role."""
        self._answers_due = 0
        """Answers to `ask` that have not come. More than one if the server was too slow with an earlier one."""

    @classmethod
    def open(cls, address: Address, until_ns: int, arrays: ConnectionArrays | None = None) -> RedisConnection:
        """Connect, and return once the server has accepted our introduction.

        Without `arrays`, the connection has small ones of its own.
        BadAddress if the server is no Redis server or refuses us; PeerGone if there is none in time.
        """
        server = server_address(address)
        if arrays is None:
            arrays = ConnectionArrays(
                bounds=np.zeros(BOUNDS, np.int64),
                incoming=np.zeros(SMALL_BYTES, np.uint8),
                outgoing=np.zeros(SMALL_BYTES, np.uint8),
            )
        while True:
            connection = cls(server.connect(address, until_ns, "Redis"), server, arrays)
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
        """Send a command, and return the answer. Use it only while no answer to another call than `ask` is due.

        BadAddress if the server refuses, or does not answer in time. A late answer is dropped by the next call.
        """
        self.write(command(*words))
        self._answers_due += 1
        answer = None
        try:
            while self._answers_due:
                answer = self.await_value()
                self._answers_due -= 1
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
                raise self._no_answer()
            self.sleep(time.monotonic_ns() + RETRY_NS)

    def _no_answer(self) -> BadAddress:
        """The error of an answer that did not come in time, from a server that introduced itself or did not."""
        if self.facts:
            return BadAddress(f"the Redis server at {self._server.place} sent no answer within {ANSWER_S:g} s")
        return BadAddress(f"{self._server.place} is no Redis server: it sent no answer in time")

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

    def gone(self, why: str) -> ServerGone:
        """The error of a connection that ended. An error that the server reported before its end replaces `why`."""
        waiting = self.incoming[int(self.bounds[BEGIN]) : int(self.bounds[END])].tobytes()
        with contextlib.suppress(NoResp):
            parsed = parse(waiting, 0)
            while parsed is not None:
                if isinstance(parsed.value, ErrorReply):
                    why = in_words(parsed.value)
                parsed = parse(waiting, parsed.end)
        return ServerGone(f"the Redis server at {self._server.place} went away: {why}")

    def refused(self, answer: ErrorReply) -> PeerGone:
        """The error of a message, or of another command after the first frame, that the server refuses."""
        return PeerGone(f"the Redis server at {self._server.place} refused a message: {in_words(answer)}")

    def no_redis(self, error: NoResp) -> PeerGone:
        return PeerGone(f"what came from {self._server.place} is no Redis protocol: {error}")


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
