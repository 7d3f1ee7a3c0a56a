"""No run's messages at a broker are longer than another's: what they carry of the run's name has one length."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from transports.amqp.topology import LinkSide
from transports.base import Address, Pattern
from transports.nats import subjects
from transports.redis import names
from transports.run_code import run_code

SHORT = "01-nagle-off-amqp-at-1000-orders-s-8cb649"
LONG = "01-nagle-on-at-broker-amqp-at-1000-orders-s-e36707"


def exchange_of_amqp(address: Address) -> str:
    publishes_to = LinkSide.of(address, listens=True).publishes_to
    assert publishes_to is not None
    return publishes_to.exchange.name


CARRIED = {
    "amqp://localhost:1": exchange_of_amqp,
    "nats://localhost:1": subjects.base_of,
    "redis://localhost:1": names.base_of,
}
"""What each message carries of its run's name, by the broker's URL."""


@pytest.mark.parametrize("pattern", [Pattern.PAIR, Pattern.FANOUT])
@pytest.mark.parametrize("url", CARRIED)
def test_what_messages_carry_is_as_long_for_every_run_and_differs(url: str, pattern: Pattern) -> None:
    carried: Callable[[Address], str] = CARRIED[url]
    short, long = (carried(Address.parse(url, token=run, pattern=pattern)) for run in (SHORT, LONG))
    assert len(short) == len(long)
    assert short != long


def test_a_code_is_the_same_in_every_process() -> None:
    assert run_code("a-run") == "b06b87534f97"
