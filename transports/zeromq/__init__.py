from transports.zeromq.link import TRANSPORT

__all__ = ["TRANSPORT"]
