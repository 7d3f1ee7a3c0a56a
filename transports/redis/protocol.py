"""The data plane of RESP3, compiled: messages of channels and entries of streams become frames; replies are counted.

    a channel's message   >3 message <channel> <frame>
    a read of a stream    %1 <stream> *n, then n entries   *2 <id> *2 f <frame>
    a reply to PUBLISH    :<number of subscribers that get it>
    a reply to XADD       <id>

All but the frame, the id and the numbers is the same for each message of a link, so it is compared as a whole: the
`head`. Everything else stops a scan, and Python handles it (resp.py). transports/blocks.py makes commands of frames.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from transports.blocks import MOST_DIGITS
from transports.frames import ANSWERED, NOBODY, RECEIVED, Bytes, Longs
from transports.lending import move_bytes

# Why a scan ended.
INCOMPLETE = 0
"""The next value has not come as a whole."""
FULL = 1
"""The batch has no room for the next frame."""
OTHER = 2
"""The next value is no frame and no reply that the scan counts."""

ENTRIES = 500
"""The most entries that one read of a stream returns."""
IDS_BYTES = 48 * ENTRIES
"""Room for the ids of one read, each as a word of a command: `$15\\r\\n1700000000000-0\\r\\n`."""

# Places in `reading`, the state of a stream's reader.
LEFT = 0
"""Entries of the current read that have not been taken."""
IS_READ = 1
"""1 once the current read has been taken as a whole, and no further read was asked for."""
NEW_IDS = 2
"""The number of ids of the current read."""
NEW_BYTES = 3
"""The bytes of these ids."""
OLD_IDS = 4
"""The number of ids of the read before, which are acknowledged with the next read."""
OLD_BYTES = 5
"""The bytes of these ids."""
SINCE_TRIM = 6
"""Entries that were acknowledged since the stream was last cut off in front."""
READING_PLACES = 7

TRIM_EVERY = 64
"""Acknowledged entries after which the stream is cut off in front."""

_CARRIAGE_RETURN = ord("\r")
_NEWLINE = ord("\n")
_ZERO = ord("0")
_COLON = ord(":")
_DOLLAR = ord("$")
_STAR = ord("*")
_PUSH = ord(">")
_MESSAGE_LETTERS = len("message")
NAME_BYTES = 16
"""The length of the name of an end, which is drawn at random."""

BEFORE_ID = np.frombuffer(b"*2\r\n$", np.uint8)
BEFORE_FRAME = np.frombuffer(b"*2\r\n$1\r\nf\r\n$", np.uint8)
_NOT_YET = -1
_NO_NUMBER = -2


@njit(cache=True, nogil=True)
def matches(stream: Bytes, at: int, end: int, head: Bytes) -> int:
    """1 if the head is at this place, 0 if its beginning is and the rest has not come, -1 if something else is."""
    have = min(end - at, len(head))
    for i in range(have):
        if stream[at + i] != head[i]:
            return -1
    return 1 if have == len(head) else 0


@njit(cache=True, nogil=True)
def read_number(stream: Bytes, at: int, end: int) -> tuple[int, int]:
    """A number and the place behind the end of its line.

    The place is _NOT_YET if the line has not come as a whole, and _NO_NUMBER if it is no number of a few digits.
    """
    number = 0
    begin = at
    while at < end and _ZERO <= stream[at] <= _ZERO + 9:
        number = 10 * number + stream[at] - _ZERO
        at += 1
        if at - begin > MOST_DIGITS:
            return 0, _NO_NUMBER
    if at == end or at + 1 == end:
        return 0, _NOT_YET
    if at == begin or stream[at] != _CARRIAGE_RETURN or stream[at + 1] != _NEWLINE:
        return 0, _NO_NUMBER
    return number, at + 2


@njit(cache=True, nogil=True)
def take_frame(
    stream: Bytes, at: int, end: int, largest: int, buffer: Bytes, offsets: Longs, count: int
) -> tuple[int, int, int, int]:
    """Copy the frame whose size is at this place into a batch's arrays.

    Returns why it was not taken, or -1; the place behind the frame; the new count; and 1 if the frame was longer than
    `largest` bytes and was dropped.
    """
    size, frame = read_number(stream, at, end)
    if frame == _NOT_YET or (frame >= 0 and frame + size + 2 > end):
        return INCOMPLETE, at, count, 0
    if frame < 0:
        return OTHER, at, count, 0
    if size > largest:
        return -1, frame + size + 2, count, 1
    start = offsets[count]
    if count + 1 >= len(offsets) or start + size > len(buffer):
        return FULL, at, count, 0
    move_bytes(buffer[start:].ctypes, stream[frame:].ctypes, size)
    offsets[count + 1] = start + size
    return -1, frame + size + 2, count + 1, 0


@njit(cache=True, nogil=True)
def scan_messages(
    stream: Bytes, begin: int, end: int, head: Bytes, largest: int, buffer: Bytes, offsets: Longs, count: int
) -> tuple[int, int, int, int]:
    """Copy the messages of one channel at the beginning of stream[begin:end] into a batch's arrays.

    `head` is all of a message before the frame's size. Returns why it stopped, where the next value begins, the
    batch's new count, and how many frames were longer than `largest` bytes and were dropped.
    """
    at = begin
    too_long = 0
    while True:
        match = matches(stream, at, end, head)
        if match < 0:
            return OTHER, at, count, too_long
        if match == 0:
            return INCOMPLETE, at, count, too_long
        why, after, count, dropped = take_frame(stream, at + len(head), end, largest, buffer, offsets, count)
        if why >= 0:
            return why, at, count, too_long
        too_long += dropped
        at = after


@njit(cache=True, nogil=True)
def find_bulk(stream: Bytes, at: int, end: int) -> tuple[int, int]:
    """The place and the size of the text at this place: `$<size>`, an end of line, the text, an end of line.

    The place is _NOT_YET if the text has not come as a whole, and _NO_NUMBER if there is something else.
    """
    if at >= end:
        return _NOT_YET, 0
    if stream[at] != _DOLLAR:
        return _NO_NUMBER, 0
    size, text = read_number(stream, at + 1, end)
    if text >= 0 and text + size + 2 > end:
        return _NOT_YET, 0
    return text, size


@njit(cache=True, nogil=True)
def find_channel(  # noqa: PLR0911 (a return for each thing that may be there instead)
    stream: Bytes, begin: int, end: int, prefix: Bytes
) -> tuple[int, int, int, int]:
    """The message at the beginning of stream[begin:end], if its channel begins with a prefix.

    Returns -1, the place and the size of the channel's name, and the place of the frame's size; or why there is none.
    A message of a pattern has four parts, the pattern among them: >4 pmessage <pattern> <channel> <frame>.
    """
    if end - begin < 4:
        return INCOMPLETE, begin, 0, begin
    parts = stream[begin + 1] - _ZERO
    if stream[begin] != _PUSH or not 3 <= parts <= 4 or stream[begin + 2] != _CARRIAGE_RETURN:
        return OTHER, begin, 0, begin
    at = begin + 4
    channel = at
    size = 0
    for part in range(parts - 1):
        channel, size = find_bulk(stream, at, end)
        if channel == _NOT_YET:
            return INCOMPLETE, begin, 0, begin
        if channel == _NO_NUMBER:
            return OTHER, begin, 0, begin
        is_of_pattern = parts == 4
        if part == 0 and size != _MESSAGE_LETTERS + is_of_pattern:
            return OTHER, begin, 0, begin
        at = channel + size + 2
    if size < len(prefix):
        return OTHER, begin, 0, begin
    for i in range(len(prefix)):
        if stream[channel + i] != prefix[i]:
            return OTHER, begin, 0, begin
    if at >= end:
        return INCOMPLETE, begin, 0, begin
    if stream[at] != _DOLLAR:
        return OTHER, begin, 0, begin
    return -1, channel, size, at + 1


@njit(cache=True, nogil=True)
def scan_published(
    stream: Bytes,
    begin: int,
    end: int,
    prefix: Bytes,
    largest: int,
    buffer: Bytes,
    offsets: Longs,
    count: int,
    answer: Bytes,
    addresses: Bytes,
    lengths: Longs,
    counts: Longs,
) -> tuple[int, int, int, int]:
    """Copy the messages of all channels that begin with `prefix` at the beginning of stream[begin:end] into a batch.

    `addresses`, `lengths` and `counts` are the arrays of ReturnAddresses, which keep the beginning of each answer:
    `answer`, whose last bytes give way to the last bytes of the channel's name, then an end of line and a `$`. With a
    capacity of 0 they keep nothing. Returns as scan_messages does.
    """
    at = begin
    too_long = 0
    while True:
        why, channel, size, frame = find_channel(stream, at, end, prefix)
        if why >= 0:
            return why, at, count, too_long
        if len(lengths) > 0 and counts[RECEIVED] - counts[ANSWERED] >= len(lengths):
            return FULL, at, count, too_long
        count_before = count
        why, after, count, dropped = take_frame(stream, frame, end, largest, buffer, offsets, count)
        if why >= 0:
            return why, at, count, too_long
        too_long += dropped
        if len(lengths) > 0 and count > count_before:
            place = counts[RECEIVED] % len(lengths)
            name_bytes = size - len(prefix) - 1  # the name is behind a colon
            if name_bytes != NAME_BYTES:
                lengths[place] = NOBODY
            else:
                begin_of_name = len(answer) - NAME_BYTES - 3
                name = stream[channel + size - NAME_BYTES :]
                move_bytes(addresses[place].ctypes, answer.ctypes, len(answer))
                move_bytes(addresses[place, begin_of_name:].ctypes, name.ctypes, NAME_BYTES)
                lengths[place] = len(answer)
            counts[RECEIVED] += 1
        at = after


@njit(cache=True, nogil=True)
def take_begin_of_read(stream: Bytes, at: int, end: int, head: Bytes, reading: Longs) -> tuple[int, int]:
    """Take the begin of a read, or a line with a number: the reply to an XACK or XTRIM.

    Returns why it was not taken, or -1, and the place behind it.
    """
    if at < end and stream[at] == _COLON:
        _, after = read_number(stream, at + 1, end)
        number = -1
    else:
        match = matches(stream, at, end, head)
        if match <= 0:
            return OTHER if match < 0 else INCOMPLETE, at
        number, after = read_number(stream, at + len(head), end)
    if after == _NOT_YET:
        return INCOMPLETE, at
    if after == _NO_NUMBER or number > ENTRIES:
        return OTHER, at
    if number >= 0:
        reading[LEFT] = number
        reading[IS_READ] = number == 0
    return -1, after


@njit(cache=True, nogil=True)
def find_frame_of_entry(stream: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """The places of an entry's id, as a word of a command, and of its frame's size, which ends that word.

    Returns -1 and the two places; or why they are not there.
    """
    match = matches(stream, at, end, BEFORE_ID)
    if match <= 0:
        return OTHER if match < 0 else INCOMPLETE, at, at
    id_word = at + len(BEFORE_ID) - 1
    size, id_begin = read_number(stream, id_word + 1, end)
    if id_begin == _NO_NUMBER:
        return OTHER, at, at
    if id_begin == _NOT_YET or id_begin + size + 2 > end:
        return INCOMPLETE, at, at
    after_id = id_begin + size + 2
    match = matches(stream, after_id, end, BEFORE_FRAME)
    if match <= 0:
        return OTHER if match < 0 else INCOMPLETE, at, at
    return -1, id_word, after_id + len(BEFORE_FRAME)


@njit(cache=True, nogil=True)
def scan_entries(
    stream: Bytes,
    begin: int,
    end: int,
    head: Bytes,
    largest: int,
    buffer: Bytes,
    offsets: Longs,
    count: int,
    reading: Longs,
    ids: Bytes,
) -> tuple[int, int, int, int]:
    """Copy the entries at the beginning of stream[begin:end] into a batch's arrays, and their ids into `ids`.

    `head` is all of a read before the number of entries. Returns as scan_messages does.
    """
    at = begin
    too_long = 0
    while True:
        if reading[LEFT] == 0:
            why, at = take_begin_of_read(stream, at, end, head, reading)
            if why >= 0:
                return why, at, count, too_long
            continue
        why, id_word, frame = find_frame_of_entry(stream, at, end)
        if why >= 0:
            return why, at, count, too_long
        word_bytes = frame - len(BEFORE_FRAME) - id_word
        if reading[NEW_BYTES] + word_bytes > len(ids):
            return OTHER, at, count, too_long
        why, after, count, dropped = take_frame(stream, frame, end, largest, buffer, offsets, count)
        if why >= 0:
            return why, at, count, too_long
        too_long += dropped
        move_bytes(ids[reading[NEW_BYTES] :].ctypes, stream[id_word:].ctypes, word_bytes)
        reading[NEW_BYTES] += word_bytes
        reading[NEW_IDS] += 1
        reading[LEFT] -= 1
        reading[IS_READ] = reading[LEFT] == 0
        at = after


@njit(cache=True, nogil=True)
def scan_replies(stream: Bytes, begin: int, end: int) -> tuple[int, int, int, int]:
    """Count the replies to PUBLISH and XADD at the beginning of stream[begin:end].

    Returns why it stopped, where the next value begins, the number of replies, and how many of them say that a message
    reached nobody.
    """
    at = begin
    replies = 0
    unheard = 0
    while at < end:
        kind = stream[at]
        if kind not in (_COLON, _DOLLAR):
            return OTHER, at, replies, unheard
        number, after = read_number(stream, at + 1, end)
        if after == _NOT_YET:
            break
        if after == _NO_NUMBER:
            return OTHER, at, replies, unheard
        if kind == _COLON:
            unheard += number == 0
        elif after + number + 2 > end:
            break
        else:
            after += number + 2
        replies += 1
        at = after
    return INCOMPLETE, at, replies, unheard


@njit(cache=True, nogil=True)
def put(out: Bytes, used: int, words: Bytes, size: int) -> int:
    """Write the first `size` bytes of `words` behind out[:used]; returns the bytes used."""
    move_bytes(out[used:].ctypes, words.ctypes, size)
    return used + size


@njit(cache=True, nogil=True)
def put_count(out: Bytes, used: int, count: int) -> int:
    """Write `*<count>` and the end of a line behind out[:used]; returns the bytes used."""
    out[used] = _STAR
    used += 1
    factor = 1
    while count // factor >= 10:
        factor *= 10
    while factor:
        out[used] = _ZERO + count // factor % 10
        used += 1
        factor //= 10
    out[used] = _CARRIAGE_RETURN
    out[used + 1] = _NEWLINE
    return used + 2


@njit(cache=True, nogil=True)
def lay_out_acknowledgement(
    reading: Longs, old_ids: Bytes, new_ids: Bytes, acknowledge: Bytes, trim: Bytes, out: Bytes, used: int
) -> int:
    """Write the acknowledgement of the read before behind out[:used]; the current read takes its place.

    `acknowledge` is XACK up to the ids, without the number of words; `trim` is XTRIM up to the id before which the
    stream is cut off, or empty. Returns the bytes used.
    """
    if reading[OLD_IDS] > 0:
        used = put_count(out, used, 3 + reading[OLD_IDS])
        used = put(out, used, acknowledge, len(acknowledge))
        used = put(out, used, old_ids, reading[OLD_BYTES])
        reading[SINCE_TRIM] += reading[OLD_IDS]
        if len(trim) > 0 and reading[SINCE_TRIM] >= TRIM_EVERY:
            last = reading[OLD_BYTES] - 1
            while old_ids[last] != _DOLLAR:
                last -= 1
            used = put(out, used, trim, len(trim))
            used = put(out, used, old_ids[last:], reading[OLD_BYTES] - last)
            reading[SINCE_TRIM] = 0
    move_bytes(old_ids.ctypes, new_ids.ctypes, reading[NEW_BYTES])
    reading[OLD_IDS] = reading[NEW_IDS]
    reading[OLD_BYTES] = reading[NEW_BYTES]
    reading[NEW_IDS] = 0
    reading[NEW_BYTES] = 0
    return used


@njit(cache=True, nogil=True)
def lay_out_read(
    reading: Longs, old_ids: Bytes, new_ids: Bytes, acknowledge: Bytes, trim: Bytes, read: Bytes, out: Bytes, used: int
) -> int:
    """Write the acknowledgement of the read before, and the command `read`, behind out[:used]; returns bytes used."""
    used = lay_out_acknowledgement(reading, old_ids, new_ids, acknowledge, trim, out, used)
    reading[IS_READ] = 0
    return put(out, used, read, len(read))
