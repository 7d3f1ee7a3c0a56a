"""Whether everything that was sent came, once, in order, and as it was sent: sentences, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from messaging.roles import Told


def wrong_with(
    senders: Mapping[str, Told], receivers: Mapping[str, Told], expected: int, shared: bool = False
) -> list[str]:
    """`expected` messages were to be sent, and received, in all; `shared`: of a queue each consumer leaves some out."""
    return [
        *_stopped({**senders, **receivers}),
        *_amounts(senders, receivers, expected),
        *_one_by_one(receivers, shared),
    ]


def wrong_with_each(senders: Mapping[str, Told], receivers: Mapping[str, Told], expected: int) -> list[str]:
    """Each receiver is to have everything that was sent; what is said of all is said once."""
    reasons = [wrong for name, told in receivers.items() for wrong in wrong_with(senders, {name: told}, expected)]
    return list(dict.fromkeys(reasons))


def _stopped(told: Mapping[str, Told]) -> Iterator[str]:
    return (f"{name}: {of_role.stopped}" for name, of_role in told.items() if of_role.stopped)


def _amounts(senders: Mapping[str, Told], receivers: Mapping[str, Told], expected: int) -> Iterator[str]:
    sent, came = sum(told.sent for told in senders.values()), sum(told.received for told in receivers.values())
    if sent != expected:
        yield f"{sent:,} messages were sent instead of {expected:,}"
    if came != expected:
        yield f"{_names(receivers)} received {came:,} messages instead of {expected:,}"
    checksums = [
        _sum(told.sent_checksum for told in senders.values()),
        _sum(told.received_checksum for told in receivers.values()),
    ]
    if sent == came == expected and checksums[0] != checksums[1]:
        yield f"checksums differ: {checksums[0]:016x} sent, {checksums[1]:016x} received by {_names(receivers)}"


def _one_by_one(receivers: Mapping[str, Told], shared: bool) -> Iterator[str]:
    for name, told in receivers.items():
        for what, many in told.wrong.items():
            if not (shared and what == "left out"):
                yield f"{name}: {many:,} messages {what}"


def _names(told: Mapping[str, Told]) -> str:
    names = list(told)
    return f"the {names[0]}" if len(names) == 1 else f"{names[0]} to {names[-1]}"


def _sum(checksums: Iterable[int]) -> int:
    return sum(checksums) % 2**64


def wrong_with_bounces(asker: Told, answerer: Told, expected: int) -> list[str]:
    """Every message is to have come back to who asked, as it went."""
    found = wrong_with({"publisher": asker}, {"publisher": asker}, expected)
    if answerer.stopped:
        found.append(f"consumer: {answerer.stopped}")
    if answerer.sent != expected:
        found.append(f"the consumer answered {answerer.sent:,} messages instead of {expected:,}")
    return found
