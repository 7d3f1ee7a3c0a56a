"""The two ways in which Redis carries messages."""

PUBSUB = "pubsub"
"""Publish and subscribe: a message goes to whoever has subscribed now, and is kept nowhere."""
STREAM = "stream"
"""Streams: a message is kept until its reader has acknowledged it."""
KINDS = (PUBSUB, STREAM)
SYNCS = ("everysec", "always", "no")
"""When a server syncs its file of streams to the disk, in Redis' words of `appendfsync`; the first is its default."""
