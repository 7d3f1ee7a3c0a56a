"""The frames of AMQP 0-9-1 that the data plane uses (specification, sections 2.3.5 and 4.2).

    type u8 · channel u16 · size u32 · payload · 0xCE        all numbers big-endian

A message is a method frame (Basic.Publish, or Basic.Deliver), a header frame with its length and properties,
and as many body frames as its length needs at the negotiated frame size.
"""

from __future__ import annotations

import struct

METHOD, HEADER, BODY = 1, 2, 3
FRAME_END = 0xCE
HEAD_BYTES = 7
OVERHEAD_BYTES = HEAD_BYTES + 1
BASIC = 60
PUBLISH, RETURN, DELIVER, GET, GET_OK, GET_EMPTY, ACK, NACK = 40, 50, 60, 70, 71, 72, 80, 120
MANDATORY = 1
PERSISTENT = 2
DELIVERY_MODE, CORRELATION_ID, REPLY_TO = 0x1000, 0x0400, 0x0200
"""Flags of properties: the message is persistent, answers a request, names the queue for answers."""


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes([FRAME_END])


def short_string(text: str) -> bytes:
    """A length octet, then UTF-8. ValueError beyond 255 bytes."""
    encoded = text.encode()
    if len(encoded) > 255:
        raise ValueError(f"{text!r} has {len(encoded)} bytes; a short string takes 255")
    return bytes([len(encoded)]) + encoded


def publish_method(channel: int, exchange: str, routing_key: str, mandatory: bool) -> bytes:
    """The whole method frame of a Basic.Publish: the same for every message of a link."""
    arguments = bytes(2) + short_string(exchange) + short_string(routing_key) + bytes([MANDATORY * mandatory])
    return frame(METHOD, channel, struct.pack(">HH", BASIC, PUBLISH) + arguments)


def content_header(channel: int, persistent: bool, correlation_id: str = "", reply_to: str = "") -> bytes:
    """The whole header frame of a message; the caller writes the length to bytes 11..18."""
    properties = [(DELIVERY_MODE, bytes([PERSISTENT]) if persistent else b"")]
    properties += [(CORRELATION_ID, short_string(correlation_id) if correlation_id else b"")]
    properties += [(REPLY_TO, short_string(reply_to) if reply_to else b"")]
    flags = sum(flag for flag, value in properties if value)
    values = b"".join(value for _, value in properties)
    return frame(HEADER, channel, struct.pack(">HHQH", BASIC, 0, 0, flags) + values)


BODY_LENGTH_AT = HEAD_BYTES + 4
"""The offset of the message's length, u64, in a header frame."""
PROPERTIES_AT = 12
"""The offset of the properties in a header frame's payload: flags, u16, then each property that is present."""


def get_method(channel: int, queue: str) -> bytes:
    """The whole frame of a Basic.Get whose message must be acknowledged."""
    return frame(METHOD, channel, struct.pack(">HHH", BASIC, GET, 0) + short_string(queue) + bytes([0]))


def acknowledge_one(channel: int, delivery_tag: int) -> bytes:
    return frame(METHOD, channel, struct.pack(">HHQB", BASIC, ACK, delivery_tag, 0))


def give_back(channel: int, delivery_tag: int) -> bytes:
    """A Basic.Nack of every unacknowledged message up to `delivery_tag`: each returns to its place in the queue."""
    return frame(METHOD, channel, struct.pack(">HHQB", BASIC, NACK, delivery_tag, 0b11))


def acknowledgement(channel: int, delivery_tag: int) -> bytes:
    """A Basic.Ack of everything up to `delivery_tag`."""
    return frame(METHOD, channel, struct.pack(">HHQB", BASIC, ACK, delivery_tag, 1))
