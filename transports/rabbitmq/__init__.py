"""A private RabbitMQ node: in a folder of its own, on loopback only, gone when we are. See docs/broker.md."""

from transports.rabbitmq.address import NodeAddress
from transports.rabbitmq.errors import (
    BadNodeSetting,
    NodeDidNotStart,
    NodePortTaken,
    RabbitMqError,
    RabbitMqMissing,
)
from transports.rabbitmq.node import Node, private_node
from transports.rabbitmq.settings import NodeSettings
from transports.rabbitmq.standing import reclaim, running_node, start_standing_node
from transports.rabbitmq.usage import NodeUsage
from transports.rabbitmq.where import Where

__all__ = [
    "BadNodeSetting",
    "Node",
    "NodeAddress",
    "NodeDidNotStart",
    "NodePortTaken",
    "NodeSettings",
    "NodeUsage",
    "RabbitMqError",
    "RabbitMqMissing",
    "Where",
    "private_node",
    "reclaim",
    "running_node",
    "start_standing_node",
]
