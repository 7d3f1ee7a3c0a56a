"""One connection to a NATS server: the greeting, the buffers of both directions, and what is not a frame.

The buffers and their bounds are two arrays, so that compiled code can continue where Python stopped: compiled.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from typing import Any, NamedTuple

import numpy as np

from transports import server_stream
from transports.base import Address, BadAddress, PeerGone
from transports.blocks import lay_out
from transports.frames import LONGEST_FRAME, WITHOUT_ROOM, FrameBatch, ReturnAddresses
from transports.nats.protocol import FULL, INCOMPLETE, LONGEST_LINE, OTHER, scan_frames
from transports.server_address import RETRY_NS, ServerAddress
from transports.server_stream import ServerStream
from transports.sockets import set_nodelay

PORT = 4222
PASSWORD = "EXCHANGE_NATS_PASSWORD"
"""The variable with the password of the address's user, or without a user the server's token."""
OLDEST = (2, 2)
"""The first version of NATS that says when nobody has subscribed to a subject."""
SLOW_CONSUMER = "Slow Consumer"
"""The server's word for a client that reads too slowly."""
TOO_LONG_MESSAGE = "Maximum Payload Violation"
"""The server's word for a message that is longer than it takes."""
ANSWER_S = 10.0
"""How long a server may take for its greeting, and for each control line that we wait for before the first frame."""
NO_ADDRESSES = ReturnAddresses(0)
"""Return addresses for frames that get no answer."""
INCOMING_BYTES = LONGEST_FRAME + (1 << 18)
OUTGOING_BYTES = LONGEST_FRAME + (1 << 18)

# Places in `numbers`. The first is transports.lending.NOTICE; the next ones are the bounds of transports.server_stream.
BOUNDS_AT = 1
BEGIN = BOUNDS_AT + server_stream.BEGIN
END = BOUNDS_AT + server_stream.END
UNSENT_END = BOUNDS_AT + server_stream.UNSENT_END
DESCRIPTOR = 5
"""The socket's descriptor."""
HEAD_BYTES = 6
"""The length of the head of a PUB block."""
TIMER_NS = 7
"""The time of the link's next check of its peers."""
TOO_LONG = 8
"""How many frames were dropped because they were longer than a batch's largest."""
POLLFD = 9
"""A struct pollfd."""
TIMESPEC = 10
"""A struct timespec, two numbers."""
PLACES = 12
"""The length of `numbers`."""

# Places in `memory`, whose first bytes are the incoming ones.
OUTGOING = INCOMING_BYTES
"""The bytes to send."""
HEAD = INCOMING_BYTES + OUTGOING_BYTES
"""The head of a PUB block: `PUB <subject> `."""
MEMORY_BYTES = HEAD + LONGEST_LINE


class Control(NamedTuple):
    """A block from the server that is no frame."""

    operation: str
    """MSG, HMSG, PING, PONG, +OK, -ERR or INFO."""
    words: list[str]
    """The words behind the operation; the text of an error as one word."""
    payload: bytes = b""


def server_address(address: Address) -> ServerAddress:
    """Return the server's host, port and user. BadAddress if a part of the URL is missing or wrong."""
    return ServerAddress.of(address, PORT, PASSWORD)


class Connection(ServerStream):
    """Bytes to and from one server. A connection that breaks raises PeerGone, whose sentence names the server."""

    def __init__(self, sock: socket.socket, server: ServerAddress, nodelay: bool) -> None:
        self.numbers = np.zeros(PLACES, np.int64)
        self.memory = np.zeros(MEMORY_BYTES, np.uint8)
        bounds = self.numbers[BOUNDS_AT : BOUNDS_AT + server_stream.BOUNDS]
        super().__init__(sock, bounds, self.memory[:INCOMING_BYTES], self.memory[OUTGOING:HEAD])
        self._server = server
        self._address: Address | None = None
        """The address of a server that has accepted us; None before."""
        self._has_given_reason = False
        """True once the server has said why it hangs up."""
        self.info: dict[str, Any] = {}
        """The server's facts about itself: server_name, version, max_payload, ..."""
        self._head = self.memory[HEAD:HEAD]
        set_nodelay(self.fd, nodelay)

    @classmethod
    def open(cls, address: Address, until_ns: int) -> Connection:
        """Connect, and return once the server has accepted our introduction.

        BadAddress if the server is no NATS server or refuses us; PeerGone if there is none in time.
        """
        server = server_address(address)
        connection = cls(server.connect(address, until_ns, "NATS"), server, address.nodelay)
        try:
            connection._greet()
            connection.ask(b"")
        except BaseException:
            connection.close()
            raise
        connection._address = address
        return connection

    def fill(self) -> None:
        """Take in the bytes that have come. PeerGone if the server hung up, with a probable reason if it gave none."""
        try:
            super().fill()
        except PeerGone as error:
            raise self._with_reason(error) from error

    def flush(self) -> bool:
        """Send what is unsent. True if all of it has gone. PeerGone if the server hung up, as `fill` says it."""
        try:
            return super().flush()
        except PeerGone as error:
            raise self._with_reason(error) from error

    def _with_reason(self, error: PeerGone) -> PeerGone:
        """Return the error, with the probable reason if the server gave none and had accepted us before."""
        if self._address is None or self._has_given_reason:
            return error
        return self._explained(error, self._address)

    def _explained(self, error: PeerGone, address: Address) -> PeerGone:
        """Return the error of a server that hung up without a word; if the server still runs, with the probable reason.

        A server that still runs hangs up on a client for which too much waits. It runs if it accepts a new connection.
        """
        try:
            Connection.open(address, time.monotonic_ns()).close()
        except (PeerGone, BadAddress):
            return error
        return PeerGone(
            f"{error}, but it is still running. Probably this client was too slow ({SLOW_CONSUMER}): more waited for "
            "it than the server keeps for a client (its option max_pending)"
        )

    @property
    def place(self) -> str:
        """The server's host and port."""
        return self._server.place

    def ask(self, lines: bytes) -> list[Control]:
        """Send control lines and a PING; return the answers that the server sent before the PONG.

        Use it only before the first subscription to frames. BadAddress if the server reports an error.
        """
        self.write(lines + b"PING\r\n")
        answers: list[Control] = []
        while True:
            control = self._await_control("answer")
            if control.operation == "PONG":
                return answers
            answers.append(control)

    def request(self, subject: str, question: bytes, reply_to: str) -> Control | None:
        """Publish a question, and return the answer; None if the server has nobody who answers on that subject.

        Use it only before the first subscription to frames. BadAddress if no answer comes in time.
        """
        self.write(f"PUB {subject} {reply_to} {len(question)}\r\n".encode() + question + b"\r\n")
        while True:
            control = self._await_control("answer")
            if control.operation == "PING":
                self.write(b"PONG\r\n")
            elif control.words[:1] == [reply_to]:
                has_headers = control.operation == "HMSG"
                # Only the server's own reply has headers: status 503, since nobody has subscribed to the subject.
                return None if has_headers else control

    def _greet(self) -> None:
        """Read the server's INFO, and send CONNECT."""
        greeting = self._await_control("greeting")
        if greeting.operation != "INFO":
            raise BadAddress(f"{self._server.place} is no NATS server: it began with {greeting.operation[:20]!r}")
        self.info = json.loads(greeting.payload)
        self.require(OLDEST, "this transport")
        if self.info.get("tls_required"):
            raise BadAddress(f"the NATS server at {self._server.place} takes TLS only, which this transport lacks")
        password = os.environ.get(PASSWORD, "")
        if self._server.user:
            identity = {"user": self._server.user, "pass": password}
        elif password:
            identity = {"auth_token": password}
        else:
            identity = {}
        options = {
            "verbose": False,
            "pedantic": False,
            "headers": True,
            "no_responders": True,
            "echo": False,
            "lang": "python",
            "version": "1",
            **identity,
        }
        self.write(b"CONNECT %s\r\n" % json.dumps(options).encode())

    def require(self, oldest: tuple[int, int], feature: str) -> None:
        """BadAddress if the server is older than the version that a feature needs.

        A version that does not begin with two numbers, as that of a build of one's own, is accepted.
        """
        version = str(self.info.get("version", ""))
        numbers = version.split(".")[:2]
        if not all(number.isdecimal() for number in numbers) or len(numbers) < 2:
            return
        if (int(numbers[0]), int(numbers[1])) < oldest:
            raise BadAddress(
                f"the server at {self._server.place} is NATS {version}; {feature} needs NATS {oldest[0]}.{oldest[1]} "
                "or newer"
            )

    def _await_control(self, expected: str) -> Control:
        """Wait for the server's next control line. BadAddress if the line is an error, or none comes in time.

        `expected` names the line in the error: greeting, answer.
        """
        until_ns = time.monotonic_ns() + int(ANSWER_S * 1e9)
        while True:
            # Read the clock first: if this process was stopped, the line may have come in the meantime.
            is_late = time.monotonic_ns() > until_ns
            control = self.next_control()
            if control is None:
                self.fill()
                control = self.next_control()
            if control is not None and control.operation == "-ERR":
                raise BadAddress(f"the NATS server at {self._server.place} refused us: {self.in_words(control)}")
            if control is not None:
                return control
            if is_late:
                raise self._sent_nothing(expected)
            self.sleep(time.monotonic_ns() + RETRY_NS, readable=True)

    def _sent_nothing(self, expected: str) -> BadAddress:
        """Return the error for a line that did not come in time. A server that sent no INFO is no NATS server."""
        if self.info:
            return BadAddress(f"the NATS server at {self._server.place} sent no {expected} within {ANSWER_S:g} s")
        return BadAddress(f"{self._server.place} is no NATS server: it sent no {expected} in time")

    def in_words(self, error: Control) -> str:
        """The text of an error that the server reported, with what to do if we know it."""
        text = " ".join(error.words).strip("'")
        if text.lower() == "authorization violation":
            return f"{text}: set {PASSWORD} to the user's password, or to the server's token"
        if text.lower() == SLOW_CONSUMER.lower():
            return f"{text}: it had more for us than it keeps for a client (its option max_pending), and hung up"
        if text.lower() == TOO_LONG_MESSAGE.lower():
            return f"{text}: it takes messages of at most {self.info.get('max_payload')} bytes (its option max_payload)"
        return text

    def gone(self, why: str) -> PeerGone:
        """The error of a connection that ended. An error that the server reported before its end replaces `why`."""
        with contextlib.suppress(PeerGone):
            control = self.next_control()
            while control is not None:
                if control.operation == "-ERR":
                    why = self.in_words(control)
                    self._has_given_reason = True
                control = self.next_control()
        return PeerGone(f"the NATS server at {self._server.place} went away: {why}")

    def take_frames(self, batch: FrameBatch, addresses: ReturnAddresses = NO_ADDRESSES) -> int:
        """Append the frames at the front of what has come. Returns why the scan ended: INCOMPLETE, FULL or OTHER.

        `addresses` receives the reply subject of each frame.
        """
        ended_by, position, count, too_long = self._scan(batch, batch.largest_frame, addresses)
        self.numbers[BEGIN] = position
        self.numbers[TOO_LONG] += too_long
        batch.count = int(count)
        return int(ended_by)

    def _scan(self, batch: FrameBatch, largest: int, addresses: ReturnAddresses) -> tuple[int, int, int, int]:
        """Copy frames into the batch's arrays.

        Returns as `scan_frames`: why it stopped, where the next block begins, the batch's new count, and how many
        frames were dropped because they were longer than `largest` bytes.
        """
        return scan_frames(
            self.incoming,
            int(self.numbers[BEGIN]),
            int(self.numbers[END]),
            largest,
            batch.buffer,
            batch.offsets,
            batch.count,
            addresses.addresses,
            addresses.lengths,
            addresses.counts,
        )

    def _front(self) -> int:
        """Return what is at the front of what has come: FULL for a whole frame, INCOMPLETE, or OTHER.

        The scan ends with FULL at a frame, since it gets a batch without room.
        """
        ended_by, _, _, _ = self._scan(WITHOUT_ROOM, LONGEST_FRAME, NO_ADDRESSES)
        return int(ended_by)

    @property
    def is_frame_next(self) -> bool:
        """True if a whole frame is at the front of what has come."""
        return self._front() == FULL

    def next_control(self) -> Control | None:
        """Take the next block if it is no frame; None if it is a frame, or has not come as a whole."""
        begin = int(self.numbers[BEGIN])
        end = int(self.numbers[END])
        front = self._front()
        if front != OTHER:
            is_too_long = end - begin == len(self.incoming)
            if front == INCOMPLETE and is_too_long:
                raise self._speaks_otherwise()
            return None
        line, newline, _ = self.incoming[begin:end].tobytes().partition(b"\r\n")
        if not newline:
            raise self._speaks_otherwise()
        operation, _, rest = line.partition(b" ")
        name = operation.decode("ascii", "replace").upper()
        after_line = begin + len(line) + 2
        if name == "INFO":
            self.numbers[BEGIN] = after_line
            return Control(name, [], rest)
        if name not in ("MSG", "HMSG"):
            self.numbers[BEGIN] = after_line
            return Control(name, [rest.decode("utf-8", "replace")] if rest else [])
        words = rest.decode("utf-8", "replace").split()
        if len(words) < 3 or not words[-1].isdecimal():
            raise self._speaks_otherwise(line)
        size = int(words[-1])
        if size > LONGEST_FRAME + LONGEST_LINE:
            raise self._speaks_otherwise(line)
        if after_line + size + 2 > end:
            return None
        self.numbers[BEGIN] = after_line + size + 2
        return Control(name, words, self.incoming[after_line : after_line + size].tobytes())

    def _speaks_otherwise(self, line: bytes = b"") -> PeerGone:
        """Return the error for bytes, or for a line, that the NATS protocol does not have."""
        quoted_line = f": {line[:80]!r}" if line else ""
        return PeerGone(f"what came from {self._server.place} is no NATS protocol{quoted_line}")

    def publish_to(self, subject: str) -> None:
        """Send the frames of `send_frames` to this subject from now on."""
        head = f"PUB {subject} ".encode()
        self._head = self.memory[HEAD : HEAD + len(head)]
        self._head[:] = np.frombuffer(head, np.uint8)
        self.numbers[HEAD_BYTES] = len(head)

    def send_frames(self, batch: FrameBatch, first: int, end: int | None = None) -> int:
        """Take frames from `first` on, up to `end`, while there is room; returns the first one that was not taken."""
        if self._waiting_commands:
            self.flush()
        numbers = self.numbers
        taken, used = lay_out(
            batch.buffer,
            batch.offsets,
            first,
            batch.count if end is None else end,
            self._head,
            self.outgoing,
            int(numbers[UNSENT_END]),
        )
        numbers[UNSENT_END] = used
        self.flush()
        return int(taken)
