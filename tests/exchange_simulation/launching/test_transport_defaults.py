"""A run gets the defaults that its transport declares, and a setting that the transport lacks is refused."""

from __future__ import annotations

import re

import pytest

from exchange.allowed import BadSetting
from exchange.settings import RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.transport_defaults import defaults_of, with_transport_defaults
from exchange_simulation.launching.transport_urls import url_options_of


def test_a_transport_s_own_settings_have_its_defaults() -> None:
    settings = with_transport_defaults(RunSettings(transport="amqp", delivery="acked"))
    assert settings.amqp_client == "compiled"
    assert settings.delivery == "acked"
    assert with_transport_defaults(settings) == settings
    assert url_options_of(settings) == "client=compiled&delivery=acked"


def test_another_transport_has_none_of_them() -> None:
    assert with_transport_defaults(RunSettings(transport="zeromq")) == RunSettings()
    assert url_options_of(RunSettings()) == ""
    assert defaults_of("zeromq") == {}
    assert defaults_of("no such") == {}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"delivery": "acked"}, "delivery is 'acked'; allowed is nothing: zeromq has no broker"),
        ({"transport": "tcp", "amqp_client": "pika"}, "amqp-client is 'pika'; allowed is nothing: tcp has no broker"),
        ({"transport": "amqp", "delivery": "maybe"}, "allowed is lossy or acked or confirmed or durable"),
        ({"transport": "amqp", "delivery": "durabel"}, "confirmed or durable; did you mean 'durable'?"),
        ({"nagle": ("broker",)}, "nagle is 'broker'; allowed is gateway, engine, reporter; zeromq has no broker"),
    ],
)
def test_a_setting_that_the_transport_lacks_is_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadSetting, match=re.escape(sentence)):
        with_transport_defaults(RunSettings(**settings))


def test_an_unknown_transport_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UserError, match="unknown transport 'pigeon': known are amqp, amqps, memory, nats"):
        with_transport_defaults(RunSettings(transport="pigeon"))


def test_an_error_in_an_address_quotes_the_typed_text() -> None:
    with pytest.raises(UserError, match=r"^amqp\?queue=foo: queue is 'foo'; it takes classic, quorum, stream$"):
        with_transport_defaults(RunSettings(transport="amqp?queue=foo"))
