"""A link's two connections to a server, and the arrays that both share with compiled code.

    commands   PUBLISH or XADD out, their replies in
    messages   subscriptions and reads of a stream out, messages in

A connection that waits for entries of a stream can send nothing meanwhile, so one is not enough.
"""

from __future__ import annotations

import numpy as np

from transports.base import Address, BadAddress
from transports.blocks import lay_out
from transports.frames import Bytes, FrameBatch
from transports.redis import places
from transports.redis.connection import NOTHING, ConnectionArrays, RedisConnection
from transports.redis.protocol import INCOMPLETE, scan_replies
from transports.redis.resp import ErrorReply, NoResp, Push, command
from transports.server_stream import BEGIN, BOUNDS, END, UNSENT_END


class Wires:
    """Both connections. PeerGone from any call if the server is gone, or refuses a message."""

    def __init__(self, address: Address, until_ns: int) -> None:
        """BadAddress if the server is no Redis server or refuses us; PeerGone if there is none in time."""
        self.numbers = np.zeros(places.PLACES, np.int64)
        self.memory = np.zeros(places.MEMORY_BYTES, np.uint8)
        numbers, memory = self.numbers, self.memory
        commands_arrays = ConnectionArrays(
            bounds=numbers[places.COMMANDS : places.COMMANDS + BOUNDS],
            incoming=memory[places.COMMANDS_IN : places.COMMANDS_IN_END],
            outgoing=memory[places.COMMANDS_OUT : places.COMMANDS_OUT_END],
        )
        messages_arrays = ConnectionArrays(
            bounds=numbers[places.MESSAGES : places.MESSAGES + BOUNDS],
            incoming=memory[places.MESSAGES_IN : places.MESSAGES_IN_END],
            outgoing=memory[places.MESSAGES_OUT : places.MESSAGES_OUT_END],
        )
        self.commands = RedisConnection.open(address, until_ns, commands_arrays)
        try:
            self.messages = RedisConnection.open(address, until_ns, messages_arrays)
        except BaseException:
            self.commands.close()
            raise
        numbers[places.COMMANDS_FD] = self.commands.fd
        numbers[places.MESSAGES_FD] = self.messages.fd

    def subscribe(self, *channels: str) -> None:
        """Subscribe to channels; on return the server has done so."""
        self._subscribe("SUBSCRIBE", channels)

    def subscribe_patterns(self, *patterns: str) -> None:
        """Subscribe to all channels whose names match a pattern; on return the server has done so."""
        self._subscribe("PSUBSCRIBE", patterns)

    def _subscribe(self, word: str, names: tuple[str, ...]) -> None:
        if not names:
            return
        self.messages.write(command(word, *names))
        for _ in names:
            answer = self.messages.await_value()
            if isinstance(answer, ErrorReply):
                raise BadAddress(str(self.messages.refused(answer)))
            assert isinstance(answer, Push)

    def put_words(self, place: int, length_place: int, words: bytes) -> None:
        """Keep words of a command in the memory, for compiled code."""
        self.memory[place : place + len(words)] = np.frombuffer(words, np.uint8)
        self.numbers[length_place] = len(words)

    def words(self, place: int, length_place: int) -> Bytes:
        """The words that `put_words` has kept."""
        return self.memory[place : place + int(self.numbers[length_place])]

    def command(self, *words: str | bytes) -> None:
        """Send a command whose reply `take_replies` will take."""
        self.numbers[places.SENT] += 1
        self.commands.write(command(*words))

    def send_frames(self, batch: FrameBatch, first: int) -> int:
        """Take frames from `first` on while there is room; returns the first one that was not taken."""
        commands = self.commands
        if commands.has_waiting_commands:
            commands.flush()
        head = self.words(places.HEAD, places.HEAD_BYTES)  # the publishing command, up to the frame's size
        used = int(commands.bounds[UNSENT_END])
        taken, used = lay_out(batch.buffer, batch.offsets, first, batch.count, head, commands.outgoing, used)
        commands.bounds[UNSENT_END] = used
        self.numbers[places.SENT] += taken - first
        commands.flush()
        return int(taken)

    def take_replies(self) -> list[list[object]]:
        """Take the replies that have come. Returns those that are lists, the answers to PUBSUB NUMSUB."""
        commands = self.commands
        numbers = self.numbers
        lists: list[list[object]] = []
        while True:
            commands.fill()
            begin, end = int(commands.bounds[BEGIN]), int(commands.bounds[END])
            # `unheard` counts the messages that reached no subscriber.
            why, at, replies, unheard = scan_replies(commands.incoming, begin, end)
            commands.bounds[BEGIN] = at
            numbers[places.REPLIES] += replies
            numbers[places.UNHEARD] += unheard
            if why == INCOMPLETE:
                return lists
            # The scan has stopped at a value that is no plain reply: an error, or the list that answers PUBSUB NUMSUB.
            value = self._next_value()
            if value is NOTHING:
                return lists
            numbers[places.REPLIES] += 1
            if isinstance(value, ErrorReply):
                raise commands.refused(value)
            if isinstance(value, list):
                lists.append(value)

    def _next_value(self) -> object:
        try:
            return self.commands.next_value()
        except NoResp as error:
            raise self.commands.no_redis(error) from error

    def next_control_value(self) -> object:
        """Return the value at which the scan for frames has stopped; NOTHING if it has not come as a whole."""
        try:
            value = self.messages.next_value()
        except NoResp as error:
            raise self.messages.no_redis(error) from error
        if isinstance(value, ErrorReply):
            raise self.messages.refused(value)
        return value

    @property
    def has_unsent(self) -> bool:
        return self.commands.has_unsent or self.messages.has_unsent

    @property
    def has_unanswered(self) -> bool:
        return bool(self.numbers[places.REPLIES] < self.numbers[places.SENT])

    def flush(self) -> bool:
        """Write what was taken. True if all of it has gone."""
        has_gone = self.commands.flush()
        return self.messages.flush() and has_gone

    def close(self) -> None:
        self.commands.close()
        self.messages.close()
