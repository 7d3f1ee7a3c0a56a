"""The two ways in which Redis carries a link's frames: channels, which keep nothing, and streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from transports.base import BadAddress
from transports.frames import LONGEST_FRAME, WITHOUT_ROOM, Bytes, FrameBatch, Longs, ReturnAddresses
from transports.redis import places
from transports.redis.connection import Version
from transports.redis.protocol import (
    ENTRIES,
    FULL,
    IDS_BYTES,
    IS_READ,
    NAME_BYTES,
    OLD_BYTES,
    OLD_IDS,
    READING_PLACES,
    lay_out_acknowledgement,
    lay_out_read,
    scan_entries,
    scan_messages,
    scan_published,
)
from transports.redis.resp import command
from transports.redis.wires import Wires
from transports.server_stream import BEGIN, END, UNSENT_END

BLOCK_MS = 250
"""How long a read of a stream waits at the server before it answers that there is nothing."""
UNUSED_S = 600
"""The server removes a stream that nobody used for this long, such as a killed run's."""
NO_ADDRESSES = ReturnAddresses(0)
"""Return addresses for frames that get no answer."""
GROUP_EXISTS = "BUSYGROUP"
"""The first word of the server's refusal to create a group that exists."""
GROUP = "exchange"
CONSUMER = "exchange"
FIELD = "f"
"""The one field of an entry; its value is the frame."""


class Carrier(ABC):
    """Frames to one key, and frames from another one."""

    oldest: Version
    """The first version of Redis that has what is needed."""

    def __init__(self, wires: Wires) -> None:
        self._wires = wires
        self._marks_due = 0
        """The marks of the server that are still to come until everything that was sent before has come."""

    @abstractmethod
    def send_to(self, key: str) -> None:
        """Send frames to this channel or stream from now on."""

    @abstractmethod
    def read_from(self, key: str, *others: str) -> None:
        """Take frames from this channel or stream; `others` are channels with words."""

    def create(self, key: str) -> None:  # noqa: B027
        """Called before `read_from`: make what the server keeps under this key."""

    holds_left_over: bool = False
    """True while frames that a killed reader has left are to be handed over."""

    @abstractmethod
    def _scan(self, batch: FrameBatch, largest: int, is_look: bool) -> tuple[int, int, int, int]:
        """Copy the frames at the front of what has come into the batch's arrays, and return as scan_messages does.

        A look leaves the carrier's own state as it is.
        """

    @property
    def _expected(self) -> Bytes:
        """The bytes of a message, or of a read, before its first number. `read_from` puts them here for the scan."""
        return self._wires.words(places.EXPECTED, places.EXPECTED_BYTES)

    def take(self, batch: FrameBatch) -> int:
        """Append the frames at the front of what has come; returns why that ended: INCOMPLETE, FULL or OTHER."""
        why, at, count, too_long = self._scan(batch, batch.largest_frame, is_look=False)
        self._wires.messages.bounds[BEGIN] = at
        self._wires.numbers[places.TOO_LONG] += too_long
        batch.count = int(count)
        return int(why)

    def is_frame_next(self) -> bool:
        """True if a whole frame is at the front of what has come."""
        why, _, _, _ = self._scan(WITHOUT_ROOM, LONGEST_FRAME, is_look=True)
        return bool(why == FULL)

    @abstractmethod
    def ask_for_mark(self) -> None:
        """Have the server send a mark behind everything that it has for us; `mark_is_due` until the mark comes."""

    @abstractmethod
    def handle(self, value: Any) -> None:
        """Handle a value that is neither a frame nor a word."""

    @property
    def mark_is_due(self) -> bool:
        return self._marks_due > 0

    def keep_alive(self) -> None:  # noqa: B027
        """Called once a second: tell the server that what it keeps for us is used."""

    def forget(self) -> None:  # noqa: B027
        """Called at the end: delete what the server keeps for us alone."""

    def facts(self) -> dict[str, Any]:
        return {}


class Channels(Carrier):
    """Publish and subscribe."""

    oldest = (6, 0)

    def send_to(self, key: str) -> None:
        head = command("PUBLISH", key, "").removesuffix(b"0\r\n\r\n")
        self._wires.put_words(places.HEAD, places.HEAD_BYTES, head)

    def read_from(self, key: str, *others: str) -> None:
        expected = b">3\r\n$7\r\nmessage\r\n$%d\r\n%s\r\n$" % (len(key), key.encode())
        self._wires.put_words(places.EXPECTED, places.EXPECTED_BYTES, expected)
        self._wires.subscribe(key, *others)

    def _scan(self, batch: FrameBatch, largest: int, is_look: bool) -> tuple[int, int, int, int]:  # noqa: ARG002
        bounds = self._wires.messages.bounds
        return scan_messages(
            self._wires.messages.incoming,
            int(bounds[BEGIN]),
            int(bounds[END]),
            self._expected,
            largest,
            batch.buffer,
            batch.offsets,
            batch.count,
        )

    def ask_for_mark(self) -> None:
        self._marks_due += 1
        self._wires.messages.write(command("PING"))

    def handle(self, value: Any) -> None:
        if value == b"PONG" and self._marks_due:
            self._marks_due -= 1

    def facts(self) -> dict[str, Any]:
        return {"reached_nobody": int(self._wires.numbers[places.UNHEARD])}


class PublishedChannels(Channels):
    """Publish and subscribe with patterns: every channel whose name begins with a prefix has frames."""

    def __init__(self, wires: Wires, prefix: str, answers: str = "", addresses: ReturnAddresses = NO_ADDRESSES) -> None:
        """`answers`: the beginning of the channel to which an answer goes, before the name of the asker.

        `addresses` keep the beginning of the answer to each frame.
        """
        super().__init__(wires)
        self.addresses = addresses
        self._prefix = np.frombuffer(prefix.encode(), np.uint8).copy()
        head = command("PUBLISH", answers + "-" * NAME_BYTES, "").removesuffix(b"0\r\n\r\n")
        self._answer = np.frombuffer(head, np.uint8).copy()

    def read_from_patterns(self, channels: list[str], patterns: list[str], *others: str) -> None:
        """Take frames from these channels and from those that match a pattern; `others` are channels with words."""
        self._wires.subscribe(*channels, *others)
        self._wires.subscribe_patterns(*patterns)

    def _scan(self, batch: FrameBatch, largest: int, is_look: bool) -> tuple[int, int, int, int]:
        bounds = self._wires.messages.bounds
        addresses = NO_ADDRESSES if is_look else self.addresses
        return scan_published(
            self._wires.messages.incoming,
            int(bounds[BEGIN]),
            int(bounds[END]),
            self._prefix,
            largest,
            batch.buffer,
            batch.offsets,
            batch.count,
            self._answer,
            addresses.addresses,
            addresses.lengths,
            addresses.counts,
        )


class StreamCarrier(Carrier):
    """Streams. One consumer of one group reads each of them, and acknowledges the messages that it has handed over."""

    oldest = (6, 2)

    def __init__(self, wires: Wires, group: str = GROUP, consumer: str = CONSUMER) -> None:
        """`group` is a group of our own, for a stream that others read too; by default we are the only reader."""
        super().__init__(wires)
        self._consumer = consumer
        self._group = group
        self._is_shared = group != GROUP
        self._key = ""
        self._left_over = FrameBatch()
        """Frames that an earlier reader of this stream, which was killed, has not acknowledged."""
        self._left_over_taken = 0
        self._left_over_ids: list[bytes] = []
        numbers, memory = wires.numbers, wires.memory
        self._reading = numbers[places.READING : places.READING + READING_PLACES]
        self._old_ids = memory[places.OLD_IDS : places.OLD_IDS + IDS_BYTES]
        self._new_ids = memory[places.NEW_IDS : places.NEW_IDS + IDS_BYTES]

    def send_to(self, key: str) -> None:
        head = command("XADD", key, "*", FIELD, "").removesuffix(b"0\r\n\r\n")
        self._wires.put_words(places.HEAD, places.HEAD_BYTES, head)

    def read_from(self, key: str, *others: str) -> None:
        wires = self._wires
        self._key = key
        wires.subscribe(*others)
        wires.put_words(places.EXPECTED, places.EXPECTED_BYTES, b"%%1\r\n$%d\r\n%s\r\n*" % (len(key), key.encode()))
        acknowledge = command("XACK", key, self._group).partition(b"\r\n")[2]
        wires.put_words(places.ACKNOWLEDGE, places.ACKNOWLEDGE_BYTES, acknowledge)
        wires.put_words(places.TRIM, places.TRIM_BYTES, self._trim_words(key))
        wires.put_words(places.READ, places.READ_BYTES, self._read_command(">", "BLOCK", str(BLOCK_MS)))
        self._lay_out_acknowledgement()  # there is none yet: this loads the kernel
        self._read_on()

    def _trim_words(self, key: str) -> bytes:
        """XTRIM up to the id before which all entries are acknowledged; empty to cut off nothing."""
        if self._is_shared:
            return b""
        return command("XTRIM", key, "MINID", "").removesuffix(b"$0\r\n\r\n")

    def _acknowledge_old(self) -> None:
        """Called before the entries of the read before are acknowledged."""

    def create(self, key: str) -> None:
        """Create the stream and its group, or take those that a killed reader has left, with what it left in them."""
        commands = self._wires.commands
        is_left_over = not self._is_shared and commands.ask("EXISTS", key) and commands.ask("XINFO", "GROUPS", key)
        if not is_left_over:
            commands.ask("XGROUP", "CREATE", key, self._group, "$" if self._is_shared else "0", "MKSTREAM")
            return
        self._key = key
        after = "0"
        while True:
            # One entry a read, on the connection whose buffer has room for the longest.
            read = _words_of_read(key, self._group, self._consumer, 1, after)
            answer = self._wires.messages.ask(*read)
            entries = answer.get(key.encode(), []) if isinstance(answer, dict) else []
            if not entries:
                return
            for entry_id, fields in entries:
                self._left_over_ids.append(entry_id)
                if fields:  # None for an entry that was deleted
                    self._left_over.append(fields[1])
            after = entries[-1][0].decode()

    def _read_command(self, after: str, *options: str) -> bytes:
        return command(*_words_of_read(self._key, self._group, self._consumer, ENTRIES, after, *options))

    def _read_on(self) -> None:
        """Acknowledge the read before, and ask for more."""
        self._acknowledge_old()
        messages = self._wires.messages
        read = self._wires.words(places.READ, places.READ_BYTES)
        used = int(messages.bounds[UNSENT_END])
        messages.bounds[UNSENT_END] = lay_out_read(*self._acknowledging, read, messages.outgoing, used)
        messages.flush()

    def _scan(self, batch: FrameBatch, largest: int, is_look: bool) -> tuple[int, int, int, int]:
        bounds = self._wires.messages.bounds
        return scan_entries(
            self._wires.messages.incoming,
            int(bounds[BEGIN]),
            int(bounds[END]),
            self._expected,
            largest,
            batch.buffer,
            batch.offsets,
            batch.count,
            self._reading.copy() if is_look else self._reading,
            self._new_ids,
        )

    def take(self, batch: FrameBatch) -> int:
        if not self._take_left_over(batch):
            return FULL
        why = super().take(batch)
        if self._reading[IS_READ]:
            self._read_on()
        return why

    @property
    def holds_left_over(self) -> bool:  # type: ignore[override]
        return bool(self._left_over_ids)

    def _take_left_over(self, batch: FrameBatch) -> bool:
        """Append the frames of a killed reader. False if the batch has no room for all of them."""
        left_over = self._left_over
        while self._left_over_taken < left_over.count:
            frame = left_over[self._left_over_taken]
            if len(frame) > batch.largest_frame:
                self._wires.numbers[places.TOO_LONG] += 1
            elif not batch.has_room(len(frame)):
                return False
            else:
                batch.append(frame)
            self._left_over_taken += 1
        for ids in _pieces(self._left_over_ids, ENTRIES):
            self._wires.command("XACK", self._key, self._group, *ids)
        self._left_over_ids = []
        return True

    def is_frame_next(self) -> bool:
        return self.holds_left_over or super().is_frame_next()

    def ask_for_mark(self) -> None:
        """The server answers a read that finds nothing. The first such answer may have been under way already."""
        self._marks_due = 2

    def handle(self, value: Any) -> None:
        if value is None:
            self._marks_due = max(self._marks_due - 1, 0)
            self._lay_out_acknowledgement()  # of the read before; the next read acknowledges the last one
            self._read_on()

    def _lay_out_acknowledgement(self) -> None:
        self._acknowledge_old()
        messages = self._wires.messages
        used = int(messages.bounds[UNSENT_END])
        messages.bounds[UNSENT_END] = lay_out_acknowledgement(*self._acknowledging, messages.outgoing, used)

    @property
    def _acknowledging(self) -> tuple[Longs, Bytes, Bytes, Bytes, Bytes]:
        """The first arguments of the kernels that acknowledge: the reader's state, its ids, and words of commands."""
        wires = self._wires
        acknowledge = wires.words(places.ACKNOWLEDGE, places.ACKNOWLEDGE_BYTES)
        trim = wires.words(places.TRIM, places.TRIM_BYTES)
        return self._reading, self._old_ids, self._new_ids, acknowledge, trim

    def keep_alive(self) -> None:
        self._wires.command("EXPIRE", self._key, str(UNUSED_S))

    def forget(self) -> None:
        if self._is_shared:
            self._wires.command("XGROUP", "DESTROY", self._key, self._group)
        else:
            self._wires.command("DEL", self._key)


class QueueCarrier(StreamCarrier):
    """A stream that several consumers of one group share: each entry goes to one of them, and is deleted once read."""

    def __init__(self, wires: Wires, consumer: str) -> None:
        super().__init__(wires, GROUP, consumer)

    def create(self, key: str) -> None:
        """Create the stream and its group, unless another consumer has."""
        try:
            self._wires.commands.ask("XGROUP", "CREATE", key, self._group, "0", "MKSTREAM")
        except BadAddress as error:
            if GROUP_EXISTS not in str(error):
                raise

    def _trim_words(self, key: str) -> bytes:  # noqa: ARG002
        """None: another consumer may not have acknowledged earlier entries."""
        return b""

    def _acknowledge_old(self) -> None:
        """Delete the entries that are acknowledged next."""
        ids = int(self._reading[OLD_IDS])
        if ids:
            words = self._old_ids[: int(self._reading[OLD_BYTES])].tobytes()
            head = command("XDEL", self._key).partition(b"\r\n")[2]
            self._wires.messages.write(b"*%d\r\n" % (2 + ids) + head + words)

    def forget(self) -> None:
        """Another consumer may be there, so the server removes the stream once nobody has used it for a while."""
        if self._key:
            self.keep_alive()


def _words_of_read(key: str, group: str, consumer: str, most: int, after: str, *options: str) -> tuple[str, ...]:
    """The command that reads at most this many entries behind the id `after`."""
    return ("XREADGROUP", "GROUP", group, consumer, "COUNT", str(most), *options, "STREAMS", key, after)


def _pieces(ids: list[bytes], size: int) -> Iterator[list[bytes]]:
    for first in range(0, len(ids), size):
        yield ids[first : first + size]
