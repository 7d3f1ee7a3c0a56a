"""No test is timed: a slow machine is not a wrong answer."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
