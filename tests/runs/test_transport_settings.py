"""What a run's settings ask of its transport."""

from __future__ import annotations

import pytest

from exchange.allowed import BadSetting
from exchange.settings import RunSettings
from runs.errors import UserError
from runs.transport_settings import as_options, defaults_of, settled


def test_a_transport_s_own_settings_have_its_defaults() -> None:
    found = settled(RunSettings(transport="amqp", delivery="acked"))
    assert (found.amqp_client, found.delivery) == ("compiled", "acked")
    assert settled(found) == found
    assert as_options(found) == "client=compiled&delivery=acked"


def test_another_transport_has_none_of_them() -> None:
    assert settled(RunSettings(transport="zeromq")) == RunSettings()
    assert (as_options(RunSettings()), defaults_of("zeromq"), defaults_of("no such")) == ("", {}, {})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"delivery": "acked"}, "delivery is 'acked'; allowed is none: zeromq has no broker"),
        ({"transport": "tcp", "amqp_client": "pika"}, "amqp-client is 'pika'; allowed is none: tcp has no broker"),
        ({"transport": "amqp", "delivery": "maybe"}, "allowed is lossy or acked or confirmed or durable"),
        ({"nagle": ("broker",)}, "nagle is 'broker'; allowed is gateway, engine, reporter; zeromq has no broker"),
    ],
)
def test_a_setting_that_the_transport_lacks_is_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadSetting, match=sentence):
        settled(RunSettings(**settings))


def test_an_unknown_transport_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UserError, match="unknown transport 'pigeon': known are amqp, amqps, memory, tcp, zeromq"):
        settled(RunSettings(transport="pigeon"))
