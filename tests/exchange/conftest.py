"""A compiled kernel's first call, or a busy machine, takes its time: no example has a deadline."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unhurried", settings(), deadline=None)
settings.load_profile("unhurried")
