"""Places in the two arrays of a link, `numbers` and `memory`, which Python and the compiled calls share.

`numbers` begins with the notice of transports/lending.py. `memory` has the buffers of both connections: one for
commands and their replies, one for messages; then the words that the compiled calls put into commands.
"""

from transports.redis.connection import LARGE_BYTES, SMALL_BYTES
from transports.redis.protocol import IDS_BYTES, READING_PLACES
from transports.server_stream import BOUNDS

# Places in `numbers`.
COMMANDS = 1
"""The bounds of the connection for commands."""
MESSAGES = COMMANDS + BOUNDS
"""The bounds of the connection for messages."""
READING = MESSAGES + BOUNDS
"""The state of a stream's reader."""
COMMANDS_FD = READING + READING_PLACES
"""The descriptors of the two connections."""
MESSAGES_FD = COMMANDS_FD + 1
SENT = MESSAGES_FD + 1
"""The number of commands written to the connection for commands."""
REPLIES = SENT + 1
"""The number of replies that came for them."""
UNHEARD = REPLIES + 1
"""The number of messages that reached no subscriber."""
TOO_LONG = UNHEARD + 1
"""How many frames were dropped because they were longer than a batch's largest."""
TIMER_NS = TOO_LONG + 1
"""The time of the link's next check of its peers."""
HEAD_BYTES = TIMER_NS + 1
"""The length of HEAD's bytes in `memory`."""
EXPECTED_BYTES = HEAD_BYTES + 1
"""The length of EXPECTED's bytes in `memory`."""
ACKNOWLEDGE_BYTES = EXPECTED_BYTES + 1
TRIM_BYTES = ACKNOWLEDGE_BYTES + 1
READ_BYTES = TRIM_BYTES + 1
POLLFD = READ_BYTES + 1
"""A struct pollfd."""
TIMESPEC = POLLFD + 1
"""A struct timespec, two numbers."""
PLACES = TIMESPEC + 2
"""The length of `numbers`."""

# Places in `memory`.
WORDS_BYTES = 4096
"""Room for the words of one command."""
MESSAGES_IN = 0
MESSAGES_IN_END = MESSAGES_IN + LARGE_BYTES
COMMANDS_OUT = MESSAGES_IN_END
COMMANDS_OUT_END = COMMANDS_OUT + LARGE_BYTES
COMMANDS_IN = COMMANDS_OUT_END
COMMANDS_IN_END = COMMANDS_IN + SMALL_BYTES
MESSAGES_OUT = COMMANDS_IN_END
MESSAGES_OUT_END = MESSAGES_OUT + SMALL_BYTES
OLD_IDS = MESSAGES_OUT_END
NEW_IDS = OLD_IDS + IDS_BYTES
HEAD = NEW_IDS + IDS_BYTES
"""The command that publishes a frame (PUBLISH or XADD), up to the frame's size."""
EXPECTED = HEAD + WORDS_BYTES
"""The bytes with which each message, or each reply to a read of the stream, begins, up to its first number."""
ACKNOWLEDGE = EXPECTED + WORDS_BYTES
TRIM = ACKNOWLEDGE + WORDS_BYTES
READ = TRIM + WORDS_BYTES
MEMORY_BYTES = READ + WORDS_BYTES
