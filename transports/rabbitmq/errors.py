"""What can go wrong with a private node; each is a sentence for the user.

TransportError
└── RabbitMqError
    ├── RabbitMqMissing   not installed, or not where it was said to be
    ├── BadNodeSetting    nonsense in NodeSettings
    ├── NodePortTaken     the port that was asked for is somebody else's
    └── NodeDidNotStart   it ended, or did not speak AMQP in time
"""

from __future__ import annotations

from transports.base import TransportError


class RabbitMqError(TransportError):
    pass


class RabbitMqMissing(RabbitMqError):
    def __init__(self, reason: str = "RabbitMQ is not installed") -> None:
        super().__init__(
            f"{reason}: on Debian and Ubuntu `sudo apt-get install rabbitmq-server`, on macOS `brew install rabbitmq`"
        )


class BadNodeSetting(RabbitMqError):
    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(f"{field} is {value!r}: it takes {allowed}")


class NodePortTaken(RabbitMqError):
    def __init__(self, port: int, why: str) -> None:
        super().__init__(f"port {port} cannot be had for RabbitMQ ({why}): name another, or none for a free one")


class NodeDidNotStart(RabbitMqError):
    def __init__(self, what: str, last_lines: str) -> None:
        super().__init__(f"RabbitMQ {what}" + (f"; it said last:\n{last_lines}" if last_lines else ""))
