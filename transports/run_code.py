"""A code for a run's name, for what a broker's messages carry, so that no run's messages are longer than another's.

An exchange of AMQP, a subject of NATS and a channel of Redis travel with each message. With the run's name in them a
comparison of two arms would also be one of the lengths of their names: nine bytes a message between
`01-nagle-off-...` and `01-nagle-on-at-broker-...`.
"""

from __future__ import annotations

import hashlib

BYTES = 6


def run_code(run: str) -> str:
    """12 hexadecimal digits of the run's name, by BLAKE2s."""
    return hashlib.blake2s(run.encode(), digest_size=BYTES).hexdigest()
