"""The frames of AMQP 0-9-1 that the data plane uses (specification, sections 2.3.5 and 4.2).

    type u8 · channel u16 · size u32 · payload · 0xCE        all numbers big-endian

A message is a method frame (Basic.Publish, or Basic.Deliver), a header frame with its length and properties,
and as many body frames as its length needs at the negotiated frame size.
"""

from __future__ import annotations

from pika import frame
from pika.amqp_object import Method
from pika.spec import Basic, BasicProperties

METHOD = 1
HEADER = 2
BODY = 3
FRAME_END = 0xCE
HEAD_BYTES = 7
"""Bytes of a frame before its payload."""
OVERHEAD_BYTES = HEAD_BYTES + 1
"""Bytes of a frame besides its payload: the head, and FRAME_END."""
METHOD_BYTES = 4
"""Bytes of a method's number, class and method in one, with which a method frame's payload begins."""
TAG_BYTES = 8
"""Bytes of a delivery tag."""
BITS_BYTES = 1
"""Bytes of the bits after a delivery tag."""
BASIC = 60
MANDATORY = 1
PERSISTENT = 2

# Flags of the properties that a message has.
DELIVERY_MODE = 0x1000
"""Whether the message is persistent: one octet."""
CORRELATION_ID = 0x0400
"""The id of a request, or of the request that the message answers: a short string."""
REPLY_TO = 0x0200
"""The queue for the answer to a request: a short string."""


def short_string(text: str) -> bytes:
    """A length octet, then UTF-8. ValueError beyond 255 bytes."""
    encoded = text.encode()
    if len(encoded) > 255:
        raise ValueError(f"{text!r} has {len(encoded)} bytes; a short string takes 255")
    return bytes([len(encoded)]) + encoded


def method_frame(channel: int, method: Method) -> bytes:
    return bytes(frame.Method(channel, method).marshal())


def publish_method(channel: int, exchange: str, routing_key: str, mandatory: bool) -> bytes:
    """The whole method frame of a Basic.Publish: the same for every message of a link."""
    return method_frame(channel, Basic.Publish(exchange=exchange, routing_key=routing_key, mandatory=mandatory))


def publish_begin(exchange: str) -> bytes:
    """The begin of a Basic.Publish before its routing key: class and method, the reserved ticket, the exchange."""
    class_and_method = Basic.Publish.INDEX.to_bytes(4, "big")
    ticket = bytes(2)
    return class_and_method + ticket + short_string(exchange)


def content_header(channel: int, persistent: bool, correlation_id: str = "", reply_to: str = "") -> bytes:
    """The whole header frame of a message; the caller writes the length to bytes 11..18."""
    mode = PERSISTENT if persistent else None
    properties = BasicProperties(delivery_mode=mode, correlation_id=correlation_id or None, reply_to=reply_to or None)
    return bytes(frame.Header(channel, 0, properties).marshal())


BODY_LENGTH_AT = HEAD_BYTES + 4
"""The offset of the message's length in a header frame."""
BODY_LENGTH_BYTES = 8
PROPERTIES_AT = 12
"""The offset of the properties in a header frame's payload: flags, then each property that is present."""
FLAGS_BYTES = 2
FIRST_PROPERTY_AT = PROPERTIES_AT + FLAGS_BYTES
"""The offset of the first property, after the flags."""


KEY_NUMBER_BYTES = 2
"""The bytes of its key's number, little-endian, with which a routed message begins."""


def wrong_key_number(message: bytes, destinations: int) -> str:
    """The sentence about a message that begins with a number that no destination has."""
    if len(message) < KEY_NUMBER_BYTES:
        return f"a message of {len(message)} bytes lacks its key number, which takes {KEY_NUMBER_BYTES}"
    number = int.from_bytes(message[:KEY_NUMBER_BYTES], "little")
    return f"a message begins with key number {number}; there are {destinations} destinations, numbered from 0"


def correlation_id_at(persistent: bool) -> int:
    """The offset of the correlation id's text in a header frame that `content_header` wrote."""
    delivery_mode_bytes = 1 if persistent else 0
    length_octet = 1
    return HEAD_BYTES + FIRST_PROPERTY_AT + delivery_mode_bytes + length_octet
