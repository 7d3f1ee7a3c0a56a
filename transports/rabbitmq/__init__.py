"""A private RabbitMQ node in a folder of its own, on loopback only; it ends with us. See docs/broker.md.

TransportError
└── RabbitMqError
    ├── RabbitMqMissing   not installed, or not where EXCHANGE_RABBITMQ_SERVER says
    ├── BadNodeSetting    nonsense in NodeSettings
    ├── NodePortTaken     another process has the port that was asked for
    └── NodeDidNotStart   the node ended, or did not speak AMQP in time
"""

from transports.rabbitmq.boot import RabbitMqMissing, server_in_words
from transports.rabbitmq.node import Node, NodeDidNotStart, NodePortTaken, private_node
from transports.rabbitmq.process import NodeAddress
from transports.rabbitmq.settings import BadNodeSetting, NodeSettings, RabbitMqError
from transports.rabbitmq.standing import reclaim, running_node, start_standing_node

__all__ = [
    "BadNodeSetting",
    "Node",
    "NodeAddress",
    "NodeDidNotStart",
    "NodePortTaken",
    "NodeSettings",
    "RabbitMqError",
    "RabbitMqMissing",
    "private_node",
    "reclaim",
    "running_node",
    "server_in_words",
    "start_standing_node",
]
