"""Opens the links of Redis: which class an end is, and what it hears before it says a word."""

from __future__ import annotations

import secrets
import time
from urllib.parse import quote

from transports.base import Address, BadAddress, CannotListen, Link, Pattern, PeerGone
from transports.frames import FrameBatch, ReturnAddresses
from transports.lending import SOCKETS_ARE_COMPILED
from transports.redis import SHARED_PATTERNS
from transports.redis.carriers import GROUP, Carrier, Channels, PublishedChannels, QueueCarrier, StreamCarrier
from transports.redis.kinds import STREAM
from transports.redis.link import HELLO_EVERY_NS, RedisConnector, RedisListener, kind_of
from transports.redis.names import base_of
from transports.redis.patterns import (
    ROLL_CALL,
    RedisAnswerer,
    RedisAsker,
    RedisConsumer,
    RedisPublisher,
    RedisSharedLink,
)
from transports.redis.wires import Wires
from transports.topics import check_key
from transports.waiting import HAS_PPOLL, Sleeper


def _carrier_of(address: Address, wires: Wires, group: str = GROUP) -> Carrier:
    """The carrier that the address names. BadAddress if the server is too old for it."""
    is_stream = kind_of(address) == STREAM
    carrier = StreamCarrier(wires, group) if is_stream else Channels(wires)
    wires.commands.require(carrier.oldest, f"{address.scheme}?kind={kind_of(address)}")
    return carrier


def listen(address: Address) -> Link:
    """CannotListen if somebody listens there already; patterns with many listeners have no such limit."""
    base = base_of(address)
    if address.pattern in SHARED_PATTERNS:
        return _listen_beside_others(address, base)
    wires = Wires(address, time.monotonic_ns())
    try:
        carrier = _carrier_of(address, wires)
        words = f"{base}:words"
        if _subscribers(wires, words):
            raise CannotListen(
                f"{address.masked_url} has a listener of this name already: choose another server or name"
            )
        carrier.create(f"{base}:in")
        carrier.read_from(f"{base}:in", words)
        if _subscribers(wires, words) > 1:
            raise CannotListen(
                f"{address.masked_url} got two listeners of this name at once: choose another server or name"
            )
        if address.fan_in:
            carrier.send_to(f"{base}:out")
        _warm(wires, carrier)
    except BaseException:
        wires.close()
        raise
    return RedisListener(address, base, wires, carrier)


def connect(address: Address, until_ns: int) -> Link:
    """Return once a listener has subscribed; it need not be served yet. PeerGone if none comes in time."""
    base = base_of(address)
    name = secrets.token_hex(8)
    wires = Wires(address, until_ns)
    try:
        if address.pattern in SHARED_PATTERNS:
            return _connect_beside_others(address, base, wires, name)
        carrier = _carrier_of(address, wires, group=name if address.fan_in else GROUP)
        while not _subscribers(wires, f"{base}:words"):
            if time.monotonic_ns() >= until_ns:
                raise PeerGone(f"nobody listens at the Redis server {address.masked_url}")
            Sleeper([]).sleep(time.monotonic_ns() + HELLO_EVERY_NS)
        frames = f"{base}:out" if address.fan_in else f"{base}:out:{name}"
        carrier.create(frames)
        # Before the hello, since a listener sends as soon as it has got that.
        carrier.read_from(frames, f"{base}:words:{name}")
        carrier.send_to(f"{base}:in")
        _warm(wires, carrier)
    except BaseException:
        wires.close()
        raise
    return RedisConnector(address, base, wires, carrier, name)


def _warm(wires: Wires, carrier: Carrier) -> None:
    """Load every kernel, so that nothing compiles once frames flow."""
    _warm_python_calls(wires, carrier)
    if SOCKETS_ARE_COMPILED and HAS_PPOLL:
        from transports.redis.compiled import lent_calls

        lent_calls(wires, isinstance(carrier, StreamCarrier), 0, lambda: None)


def _warm_python_calls(wires: Wires, carrier: Carrier) -> None:
    """Load the kernels of links whose calls are not lent."""
    carrier.is_frame_next()
    wires.send_frames(FrameBatch(0, 1, 1), 0)
    wires.take_replies()


def _subscribers(wires: Wires, channel: str) -> int:
    """How many have subscribed to a channel."""
    answer = wires.commands.ask("PUBSUB", "NUMSUB", channel)
    return int(answer[1])


def _listen_beside_others(address: Address, base: str) -> Link:
    """A consumer of a queue, a publisher, or the end that answers requests."""
    name = secrets.token_hex(8)
    wires = Wires(address, time.monotonic_ns())
    words = f"{base}:words"
    try:
        if address.pattern is Pattern.QUEUE:
            queue = QueueCarrier(wires, name)
            queue.create(f"{base}:queue")
            queue.read_from(f"{base}:queue", words)
            _warm_python_calls(wires, queue)
            return RedisConsumer(address, base, wires, queue, name)
        if address.pattern is Pattern.REQUESTS:
            return _answerer(address, base, wires, name)
        carrier = _shared_carrier(address, wires, base, GROUP)
        carrier.send_to(f"{base}:out{_of_key(address.keys[0])}" if address.pattern is Pattern.TOPIC else f"{base}:out")
        carrier.create(f"{base}:in")
        carrier.read_from(f"{base}:in", words)
        _warm_python_calls(wires, carrier)
        wires.command("PUBLISH", f"{base}:roll", ROLL_CALL)
        return RedisPublisher(address, base, wires, carrier, name)
    except BaseException:
        wires.close()
        raise


def _answerer(address: Address, base: str, wires: Wires, name: str) -> Link:
    """The end that answers. CannotListen if there is one already: a channel gives each request to every subscriber."""
    words = f"{base}:words"
    if _subscribers(wires, words):
        raise CannotListen(f"{address.masked_url} has somebody who answers already: channels take one")
    carrier = PublishedChannels(wires, f"{base}:in", f"{base}:answers:", ReturnAddresses())
    carrier.read_from_patterns([], [f"{base}:in:*"], words)
    _warm_python_calls(wires, carrier)
    return RedisAnswerer(address, base, wires, carrier, name)


def _connect_beside_others(address: Address, base: str, wires: Wires, name: str) -> Link:
    """A publisher to a queue, an asker, or a subscriber to all publishers. The listeners may come later."""
    if address.pattern is Pattern.QUEUE:
        queue = QueueCarrier(wires, name)
        queue.send_to(f"{base}:queue")
        wires.subscribe(f"{base}:words:{name}")
        _warm_python_calls(wires, queue)
        return RedisSharedLink(address, base, wires, queue, name)
    if address.pattern is Pattern.REQUESTS:
        channels = Channels(wires)
        channels.send_to(f"{base}:in:{name}")
        channels.read_from(f"{base}:answers:{name}", f"{base}:words:{name}")
        _warm_python_calls(wires, channels)
        return RedisAsker(address, base, wires, channels, name, bool(_subscribers(wires, f"{base}:words")))
    carrier = _shared_carrier(address, wires, base, name)
    carrier.send_to(f"{base}:in")
    if isinstance(carrier, PublishedChannels):
        channels_of_keys, patterns = _subscriptions(address, base)
        carrier.read_from_patterns(channels_of_keys, patterns, f"{base}:roll")
    else:
        carrier.create(f"{base}:out")
        carrier.read_from(f"{base}:out", f"{base}:roll")
    _warm_python_calls(wires, carrier)
    subscriber = RedisSharedLink(address, base, wires, carrier, name)
    subscriber.say_hello()
    return subscriber


def _shared_carrier(address: Address, wires: Wires, base: str, group: str) -> Carrier:
    """The carrier of fanout and topic."""
    if kind_of(address) == STREAM:
        return _carrier_of(address, wires, group)
    is_publisher = group == GROUP
    return Channels(wires) if is_publisher else PublishedChannels(wires, f"{base}:out")


def _of_key(key: str) -> str:
    """The end of the channel of a key. BadAddress for a bad key."""
    return f":{_quoted(check_key(key))}"


def _subscriptions(address: Address, base: str) -> tuple[list[str], list[str]]:
    """The channels of a subscriber, and its patterns, each once. BadAddress for a pattern that Redis cannot express."""
    if address.pattern is not Pattern.TOPIC:
        return [f"{base}:out"], []
    channels: list[str] = []
    patterns: list[str] = []
    for pattern in address.keys:
        words = check_key(pattern).split(".")
        if any(word in ("*", "#") for word in words[:-1]) or words[-1] == "*":
            raise BadAddress(
                f"Redis' * stands for any text, dots too, so the pattern {pattern!r} may have a # at its end and no "
                "wildcard else"
            )
        stem = _quoted(".".join(words[:-1]))
        if words[-1] != "#":
            channels.append(f"{base}:out:{_quoted(pattern)}")
        elif stem:
            channels.append(f"{base}:out:{stem}")
            patterns.append(f"{base}:out:{stem}.*")
        else:
            patterns.append(f"{base}:out:*")
    return list(dict.fromkeys(channels)), list(dict.fromkeys(patterns))


def _quoted(key: str) -> str:
    """A key without the characters that mean something in a pattern of Redis."""
    return quote(key, safe="")
