"""The two guarantees of a NATS server, when it syncs what it keeps, and the clients that carry frames."""

LOSSY = "lossy"
"""Core NATS: a message goes from the server's memory to those that have subscribed now."""
DURABLE = "durable"
"""JetStream: a stream keeps a message in a file until its reader has acknowledged it."""
DELIVERIES = (LOSSY, DURABLE)
SYNCS = ("2m", "always")
"""When a server syncs its streams to the disk, in NATS's words of `sync_interval`; the first is its default."""
NATS_PY = "nats-py"
CLIENTS = ("compiled", NATS_PY)
"""What writes and reads frames: our own kernels, or the client library nats-py."""
