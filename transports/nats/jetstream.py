"""Frames through a stream of JetStream, which keeps each of them on disk until its reader has acknowledged it.

    sender    PUB <subject> <base>.kept.<name> <bytes>     the stream answers each frame once it has kept it
    reader    MSG <base>.deliver.<name> 1 <acknowledgement's subject> <bytes>
              PUB <acknowledgement's subject> 0            acknowledges that frame and all before it

A reader acknowledges frames when its component asks for the next ones: then the component has handled them. A sender
has at most WINDOW frames unanswered. It uses a connection of its own, where answers wait behind no frame.

Each direction has a stream, which keeps a frame while a consumer has not acknowledged it (retention `interest`).

    pair; fan-in to the listener (<base>.in)
        The reader has a consumer of its own. The next reader of the stream begins with the first frame that was not
        acknowledged, and then deletes the consumer of the previous reader.
    fan-in from the listener (<base>.out); fanout, topic
        Each reader has a consumer of its own, which gets all frames from now on.
    queue
        All readers share one consumer, and acknowledge each frame by itself. A frame that is longer than its reader
        takes is ended (+TERM), since no other reader of the group would take that frame either.

Source: docs.nats.io/reference/reference-protocols/nats_api_reference.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from transports.base import Address, BadAddress, PeerGone
from transports.blocks import lay_out_answers
from transports.confirm_times import ConfirmTimes
from transports.frames import ANSWERED, RECEIVED, FrameBatch, ReturnAddresses
from transports.nats.carriers import GROUP, CoreCarrier
from transports.nats.connection import BEGIN, END, TOO_LONG, UNSENT_END, Connection, Control
from transports.nats.protocol import (
    ACKNOWLEDGEMENT_SUBSCRIPTION,
    FRAME_SUBSCRIPTION,
    OTHER,
    count_acknowledgements,
    replies_to_long_messages,
)
from transports.waiting import READABLE, WRITABLE

API = "$JS.API"
API_SUBSCRIPTION = 6
"""The number of the subscription to answers of the server's API."""
WINDOW = 1_000
"""Frames of one sender that may wait for the stream's answer. A server refuses more than 10,000 of all senders."""
MOST_DELIVERED = 8_192
"""Frames that a reader may have unacknowledged."""
REDELIVER_NS = 3_600_000_000_000
"""The time after which an unacknowledged frame is delivered again: a reader that is alive shall get none twice."""
REDELIVER_TO_GROUP_NS = 30_000_000_000
"""The same for a queue, where another consumer gets what a killed one had taken; this is NATS's own default."""
UNUSED_NS = 600_000_000_000
"""The server removes a consumer that nobody used for this long, such as a killed run's."""
ASK_AGAIN_NS = 10_000_000
END_DELIVERY = b"+TERM"
"""The answer to a frame that is not to be delivered again, though nobody has handled it."""
ABSENT = 404
"""The code of the server's refusal if a stream or a consumer does not exist."""
OLDEST_WITH_FILTERS = (2, 10)
"""The first version of NATS in which a consumer takes several subjects."""
Answer = dict[str, Any]
FROM_NOW_ON: Answer = {"deliver_policy": "new"}
FROM_THE_FIRST: Answer = {"deliver_policy": "all"}


class NoJetStream(BadAddress):
    """The server was started without JetStream."""


class JetStreamApi:
    """Questions to the server's JetStream, over a connection without subscriptions to frames."""

    def __init__(self, connection: Connection, inbox: str) -> None:
        self._connection = connection
        self._inbox = inbox
        self.mark_subject = f"{inbox}.mark"
        """The subject of the answers to `ask_for_mark`."""
        self._asked = 0
        connection.write(f"SUB {inbox}.* {API_SUBSCRIPTION}\r\n".encode())

    def ask(self, subject: str, question: Answer) -> Answer:
        """Return the answer; it has an `error` if the server refuses.

        NoJetStream if there is none; BadAddress if the server does not answer in time.
        Each question has a subject of its own for its answer, so an answer that comes late is not taken for the next.
        """
        self._asked += 1
        reply_to = f"{self._inbox}.{self._asked}"
        control = self._connection.request(f"{API}.{subject}", json.dumps(question).encode(), reply_to)
        if control is None:
            raise NoJetStream(
                f"the NATS server at {self._connection.place} has no JetStream, which delivery=durable needs: "
                "start it with --jetstream"
            )
        answer: Answer = json.loads(control.payload)
        return answer

    def insist(self, subject: str, question: Answer) -> Answer:
        """Return the answer. BadAddress, with the server's words, if it refuses."""
        answer = self.ask(subject, question)
        if "error" in answer:
            raise BadAddress(
                f"JetStream of the NATS server at {self._connection.place} refused us: {reason_of(answer)}"
            )
        return answer

    def streams(self, subjects: str) -> list[str]:
        """Return the names of the streams with these subjects; empty if the server has no JetStream."""
        try:
            answer = self.ask("STREAM.NAMES", {"subject": subjects})
        except NoJetStream:
            return []
        return answer.get("streams") or []


def reason_of(answer: Answer) -> str:
    """The server's words for its refusal."""
    return str(answer["error"].get("description", answer["error"]))


def stream_name(subject: str) -> str:
    """The name of the stream for a subject: a name has no dots."""
    return subject.replace(".", ":")


class JetStreamCarrier(CoreCarrier):
    """Frames that the server keeps on disk until they are acknowledged."""

    lends = False

    def __init__(self, address: Address, connection: Connection, base: str, name: str, until_ns: int) -> None:
        """`name`: that of our end. BadAddress if the server has no JetStream."""
        super().__init__(connection, base)
        self._name = name
        self._sender = Connection.open(address, until_ns)
        try:
            self._api = JetStreamApi(self._sender, f"{base}.api.{name}")
            self._acknowledgement_subject = f"{base}.kept.{name}"
            self._sender.write(f"SUB {self._acknowledgement_subject} {ACKNOWLEDGEMENT_SUBSCRIPTION}\r\n".encode())
        except BaseException:
            self._sender.close()
            raise
        self._stream = ""
        """The stream that we read."""
        self._consumer = ""
        """The name of our consumer there: our own, or that of our group."""
        self._is_in_group = False
        self._empty = FrameBatch(MOST_DELIVERED, 1, 1)
        """Empty frames, one for each that a reader can have to acknowledge."""
        self._replies = ReturnAddresses(MOST_DELIVERED)
        self._acknowledgement = b""
        """Acknowledges what was handed over last; empty if nothing was."""
        self._sent = 0
        self._answered = 0
        self._confirm_times = ConfirmTimes()
        self._leftover = 0
        """Frames that had been delivered to an earlier reader, and are delivered again."""
        self._ended = 0
        """Frames of a queue that were longer than we take, and that the server delivers to nobody any more."""

    def subscribe_alone(self, subject: str) -> None:
        """Take the frames of a stream, from the first one that was not acknowledged.

        If another reader is alive, take those that come from now on.
        """
        self._open_stream(subject)
        consumers = self._consumers()
        abandoned = [consumer for consumer in consumers if not consumer.get("push_bound")]
        is_another_alive = len(abandoned) < len(consumers)
        if is_another_alive:
            self._read_alone([subject], FROM_NOW_ON)
            return
        self._read_alone([subject], _beginning(abandoned))
        for consumer in abandoned:
            self._leftover += int(consumer["num_ack_pending"])
            self._api.insist(f"CONSUMER.DELETE.{self._stream}.{consumer['name']}", {})

    def subscribe_with_others(self, subjects: Sequence[str]) -> None:
        self._open_stream(subjects[0])
        self._read_alone(subjects, FROM_NOW_ON)

    def _read_alone(self, subjects: Sequence[str], beginning: Answer) -> None:
        """Create a consumer of our own, which acknowledges all frames before the one that it acknowledges."""
        deliver = f"{self._base}.deliver.{self._name}"
        self._connection.ask(f"SUB {deliver} {FRAME_SUBSCRIPTION}\r\n".encode())
        self._consumer = self._name
        config = {
            "deliver_subject": deliver,
            "ack_policy": "all",
            "ack_wait": REDELIVER_NS,
            **self._filter(subjects),
            **beginning,
        }
        self._create_consumer(config)

    def subscribe_in_group(self, subject: str) -> None:
        self._open_stream(subject)
        deliver = f"{self._base}.deliver.{GROUP}"
        self._connection.write(f"SUB {deliver} {GROUP} {FRAME_SUBSCRIPTION}\r\n".encode())
        self._consumer = GROUP
        self._is_in_group = True
        config = {
            "deliver_subject": deliver,
            "deliver_group": GROUP,
            "ack_policy": "explicit",
            "ack_wait": REDELIVER_TO_GROUP_NS,
            **self._filter([subject]),
            **FROM_THE_FIRST,
        }
        self._create_consumer(config)

    def _create_consumer(self, config: Answer) -> None:
        """Create the consumer with the name `self._consumer`, unless it exists. BadAddress if the server refuses."""
        config |= {
            "durable_name": self._consumer,
            "max_ack_pending": MOST_DELIVERED,
            "inactive_threshold": UNUSED_NS,
        }
        place = f"{self._stream}.{self._consumer}"
        self._api.insist(f"CONSUMER.DURABLE.CREATE.{place}", {"stream_name": self._stream, "config": config})

    def _filter(self, subjects: Sequence[str]) -> Answer:
        """The configuration of a consumer that gets these subjects. BadAddress if the server is too old for several."""
        if len(subjects) == 1:
            return {"filter_subject": subjects[0]}
        self._connection.require(OLDEST_WITH_FILTERS, "a durable subscriber with several patterns")
        return {"filter_subjects": list(subjects)}

    def _open_stream(self, subject: str) -> None:
        """Read the stream of a subject. It is created unless it exists."""
        self._stream = self._create_stream(subject)

    def _create_stream(self, subject: str) -> str:
        """Create the stream that keeps a subject, unless it exists; returns its name.

        A stream keeps all subjects that begin as `<base>.in`, `<base>.out` or `<base>.queue` do.
        """
        direction = subject.removeprefix(f"{self._base}.").partition(".")[0]
        all_of_direction = f"{self._base}.{direction}"
        name = stream_name(all_of_direction)
        config = {
            "name": name,
            "subjects": [all_of_direction, f"{all_of_direction}.>"],
            "retention": "interest",
            "storage": "file",
            "discard": "new",
            "max_msgs": -1,
            "max_bytes": -1,
            "max_age": 0,
            "num_replicas": 1,
        }
        self._api.insist(f"STREAM.CREATE.{name}", config)
        return name

    def _consumers(self) -> list[Answer]:
        """Return what the server knows of our stream's consumers. One whose reader is alive is `push_bound`."""
        return self._api.insist(f"CONSUMER.LIST.{self._stream}", {}).get("consumers") or []

    def publish_to(self, subject: str, reply_to: str = "") -> None:
        """Send frames to a subject from now on; the stream answers each of them, so nobody else can (`reply_to`)."""
        assert not reply_to
        self._create_stream(subject)
        self._sender.publish_to(f"{subject} {self._acknowledgement_subject}")

    def subscribe_to_listener(self, name: str, is_shared: bool) -> None:  # noqa: ARG002
        subject = f"{self._base}.out"
        if is_shared:
            self.subscribe_with_others([subject])
        else:
            self.subscribe_alone(subject)

    def answer(self, connector: str) -> None:
        """Do nothing: from the beginning, the listener publishes to the stream that all connectors read."""

    def come_back(self) -> None:
        """Acknowledge what was handed over last."""
        if self._is_in_group:
            self._acknowledge_each()
        elif self._acknowledgement:
            self._connection.write(self._acknowledgement)
            self._acknowledgement = b""

    def _acknowledge_each(self) -> None:
        """Answer each frame that was handed over with an empty message; those without room wait for the next call."""
        connection = self._connection
        replies = self._replies
        unanswered = int(replies.counts[RECEIVED] - replies.counts[ANSWERED])
        if unanswered == 0:
            return
        connection.flush()
        _, used = lay_out_answers(
            self._empty.buffer,
            self._empty.offsets,
            0,
            unanswered,
            replies.addresses,
            replies.lengths,
            replies.counts,
            connection.outgoing,
            int(connection.numbers[UNSENT_END]),
        )
        connection.numbers[UNSENT_END] = used
        connection.flush()

    def take(self, batch: FrameBatch) -> int:
        replies = self._replies
        numbers = self._connection.numbers
        received_before = int(replies.counts[RECEIVED])
        too_long_before = int(numbers[TOO_LONG])
        begin = int(numbers[BEGIN])
        why = self._connection.take_frames(batch, replies)
        received = int(replies.counts[RECEIVED])
        if self._is_in_group and numbers[TOO_LONG] > too_long_before:
            scanned = self._connection.incoming[begin : int(numbers[BEGIN])]
            self._end_delivery(replies_to_long_messages(scanned, batch.largest_frame))
        if received > received_before and not self._is_in_group:
            last = (received - 1) % len(replies)
            # An address is "PUB <reply subject> "; without an address, its length is NOBODY, which is negative.
            head = replies.addresses[last, : max(int(replies.lengths[last]), 0)].tobytes()
            self._acknowledgement = head + b"0\r\n\r\n"
            replies.counts[ANSWERED] = received
        return why

    def _end_delivery(self, replies: list[str]) -> None:
        """Tell the server to deliver these frames to nobody any more; `replies` are the subjects for the answers."""
        for reply in replies:
            self._connection.write(f"PUB {reply} {len(END_DELIVERY)}\r\n".encode() + END_DELIVERY + b"\r\n")
        self._ended += len(replies)

    @property
    def _taken(self) -> int:
        """Frames that came, those that were too long too."""
        return int(self._replies.counts[RECEIVED]) + int(self._connection.numbers[TOO_LONG])

    def send(self, batch: FrameBatch, first: int) -> int:
        self.serve()
        end = min(batch.count, first + WINDOW - (self._sent - self._answered))
        taken = self._sender.send_frames(batch, first, end)
        if taken > first:
            self._sent += taken - first
            self._confirm_times.sent(self._sent)
        return taken

    def serve(self) -> None:
        """Take the stream's answers."""
        sender = self._sender
        sender.flush()
        sender.fill()
        while True:
            begin, end = int(sender.numbers[BEGIN]), int(sender.numbers[END])
            why, at, answered = count_acknowledgements(sender.incoming, begin, end)
            sender.numbers[BEGIN] = at
            self._answered += int(answered)
            self._confirm_times.confirmed(self._answered)
            if why != OTHER:
                break
            control = sender.next_control()
            if control is None:
                break
            self._handle_control(control)
        if self.mark_is_due and time.monotonic_ns() >= self.next_ns:
            self.ask_for_mark()

    def _handle_control(self, control: Control) -> None:
        """Handle what came on the sender's connection and is no answer to a frame that was kept."""
        if control.operation == "PING":
            self._sender.write(b"PONG\r\n")
        elif control.operation == "-ERR":
            raise self._sender.gone(self._sender.in_words(control))
        elif control.operation == "HMSG" and control.words[0] == self._acknowledgement_subject:
            raise PeerGone(f"the stream {self._base}.* at the NATS server {self._sender.place} was deleted")
        elif control.operation == "MSG" and control.words[0] == self._acknowledgement_subject:
            raise PeerGone(
                f"the NATS server at {self._sender.place} did not keep a message: "
                f"{reason_of(json.loads(control.payload))}"
            )
        elif control.operation == "MSG" and control.words[0] == self._api.mark_subject:
            self._handle_mark(json.loads(control.payload))

    def ask_for_mark(self) -> None:
        """Ask for the consumer's state: whether all that the stream has for us was delivered."""
        self.mark_is_due = True
        self.next_ns = 1 << 62
        question = f"{API}.CONSUMER.INFO.{self._stream}.{self._consumer}"
        self._sender.write(f"PUB {question} {self._api.mark_subject} 0\r\n\r\n".encode())

    def _handle_mark(self, answer: Answer) -> None:
        """Note whether all that the stream has for us has come; else ask again soon."""
        is_gone = answer.get("error", {}).get("code") == ABSENT
        if is_gone or (answer.get("num_pending") == 0 and answer["delivered"]["consumer_seq"] <= self._taken):
            self.mark_is_due = False
        else:
            self.next_ns = time.monotonic_ns() + ASK_AGAIN_NS

    @property
    def has_room(self) -> bool:
        return self._sent - self._answered < WINDOW and not self._sender.has_unsent

    def settle(self) -> bool:
        self.serve()
        return self._sent == self._answered and not self._sender.has_unsent and not self._connection.has_unsent

    def events(self) -> list[tuple[int, int]]:
        return [(self._sender.fd, READABLE | (WRITABLE if self._sender.has_unsent else 0))]

    def descriptors(self) -> list[int]:
        return [self._sender.fd]

    def facts(self) -> dict[str, Any]:
        return {
            "confirmed": self._answered,
            "unconfirmed": self._sent - self._answered,
            "left_over": self._leftover,
            "ended_too_long": self._ended,
            **self._confirm_times.facts(),
        }

    def close(self) -> None:
        """Delete our consumer, and with it what it has not acknowledged; that of a group stays for the others."""
        if self._consumer and not self._is_in_group:
            question = f"{API}.CONSUMER.DELETE.{self._stream}.{self._consumer}"
            self._sender.write(f"PUB {question} 0\r\n\r\n".encode())
            self._sender.flush()
        self._sender.close()


def _beginning(consumers: list[Answer]) -> Answer:
    """The policy of a new consumer: all frames, or those that the consumers before it have not acknowledged."""
    if not consumers:
        return FROM_THE_FIRST
    acknowledged = min(int(consumer["ack_floor"]["stream_seq"]) for consumer in consumers)
    return {"deliver_policy": "by_start_sequence", "opt_start_seq": acknowledged + 1}
