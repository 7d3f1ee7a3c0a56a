"""Servers between two components: these files find, start, watch and end one, whatever the product.

private.py   a server of our own: a folder, a process, an address; it ends with us, however we end
programs.py  finds the program of a server: a variable, the environment of this Python, the PATH
starting.py  the wait until the server answers
usage.py     the server's use of CPU and memory
paths.py     paths in the settings of a server
accepted.py  the connections that the server has accepted
ending.py    the end of the server and of its helpers

NATS and Redis are descriptions for private.py. RabbitMQ has a life of its own (transports/rabbitmq/node.py), made of
the other files: docs/decisions/0018-private-servers.md says what differs.
"""
