"""No test is timed: a slow machine is not a wrong answer. Every test that needs a broker shares one private node."""

from hypothesis import settings

from tests.broker import rabbitmq_node

__all__ = ["rabbitmq_node"]

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
