"""The data plane of NNG, compiled over the libnng that pynng has loaded: messages become frames, frames messages.

pynng owns the sockets: it listens, dials and reports connections. Python runs once a batch, compiled code once a
message.

NNG calls a connection a pipe. A message of a pipe that is not admitted is kept (`numbers[MESSAGE]`), so that Python can
check whether it is the peer's handshake; if Python admits the pipe, the next call receives the message.
"""

from __future__ import annotations

import ctypes
from importlib.util import find_spec
from typing import Any

import llvmlite.binding
import numpy as np
import pynng
from numba import njit, types

from transports.frames import Bytes, Longs
from transports.lending import NOTICE, move_bytes

_SOCKET = types.uint32
_PIPE = types.uint32
_MESSAGE = types.uintp
_SIGNATURES = {
    "nng_send": types.int32(_SOCKET, types.uintp, types.uintp, types.int32),
    "nng_recvmsg": types.int32(_SOCKET, types.voidptr, types.int32),
    "nng_sendmsg": types.int32(_SOCKET, _MESSAGE, types.int32),
    "nng_msg_alloc": types.int32(types.voidptr, types.uintp),
    "nng_msg_free": types.void(_MESSAGE),
    "nng_msg_body": types.uintp(_MESSAGE),
    "nng_msg_len": types.uintp(_MESSAGE),
    "nng_msg_get_pipe": _PIPE(_MESSAGE),
    "nng_msg_set_pipe": types.void(_MESSAGE, _PIPE),
}
"""The C functions. A socket and a pipe are structs of one u32, which pass as that number."""


def _library_of_pynng() -> ctypes.CDLL:
    """The extension module of pynng, of which libnng is a part. ImportError if this pynng has none."""
    spec = find_spec(f"{pynng.__name__}._nng")
    if spec is None or spec.origin is None:
        raise ImportError(f"pynng {pynng.__version__} has no extension module _nng")
    return ctypes.CDLL(spec.origin)


_library = _library_of_pynng()


def _external(name: str) -> Any:
    """A function that compiled code calls by name, so that the compiled code can be cached on disk."""
    address = ctypes.cast(getattr(_library, name), ctypes.c_void_p).value
    symbol = f"exchange_{name}"
    llvmlite.binding.add_symbol(symbol, address)
    return types.ExternalFunction(symbol, _SIGNATURES[name])


_send = _external("nng_send")
_receive = _external("nng_recvmsg")
_send_message = _external("nng_sendmsg")
_allocate = _external("nng_msg_alloc")
_free = _external("nng_msg_free")
_body = _external("nng_msg_body")
_length = _external("nng_msg_len")
_pipe_of = _external("nng_msg_get_pipe")
_set_pipe = _external("nng_msg_set_pipe")

NONBLOCK = 2
"""NNG_FLAG_NONBLOCK."""
EAGAIN = 8
"""NNG_EAGAIN: there is no message, or no room."""

# Places in `numbers`. The first is transports.lending.NOTICE.
SOCKET = 1
"""NNG's number of the socket."""
ERROR = 2
"""NNG's number of an error; 0 if there was none."""
TOO_LONG = 3
"""Frames that were dropped because they were longer than a batch's largest."""
MESSAGE = 4
"""The address of a message that is kept for Python, which judges its pipe; 0 if there is none."""
BYTES_SENT = 5
"""Bytes of all frames that NNG took."""
FRAMES_SENT = 6
"""Frames that NNG took."""
POLLFDS = 7
"""Two struct pollfd, a number each: NNG's descriptor for what can be received, and that of the pipes' news."""
TIMESPEC = 9
"""A struct timespec, two numbers."""
ADMITTED = 11
"""The number of admitted pipes."""
PIPES = 12
"""From here on their numbers."""
MOST_PIPES = 1024
"""The most pipes that a socket admits."""
PLACES = PIPES + MOST_PIPES


@njit(inline="always")
def _is_admitted(numbers: Longs, pipe: int) -> bool:
    for place in range(PIPES, PIPES + numbers[ADMITTED]):  # noqa: SIM110 (numba has no generators here)
        if numbers[place] == pipe:
            return True
    return False


@njit(inline="always")
def _note_error(numbers: Longs, error: int) -> None:
    """Note an error for Python, unless it only means: try later."""
    if error != EAGAIN:
        numbers[ERROR] = error
        numbers[NOTICE] = 1


@njit(cache=True, nogil=True)
def receive_frames(numbers: Longs, buffer: Bytes, offsets: Longs, count: int, largest: int) -> int:
    """Append the frames that have come to a batch's arrays; returns the batch's new count."""
    end = offsets[count]
    while count + 1 < len(offsets) and end + largest <= len(buffer):
        if numbers[MESSAGE] == 0:
            error = _receive(numbers[SOCKET], numbers[MESSAGE:].ctypes, NONBLOCK)
            if error:
                numbers[MESSAGE] = 0
                _note_error(numbers, error)
                break
        message = numbers[MESSAGE]
        if not _is_admitted(numbers, _pipe_of(message)):
            numbers[NOTICE] = 1
            break
        numbers[MESSAGE] = 0
        size = _length(message)
        if size > largest:
            numbers[TOO_LONG] += 1
            numbers[NOTICE] = 1
        else:
            move_bytes(buffer[end:].ctypes, _body(message), size)
            end += size
            count += 1
            offsets[count] = end
        _free(message)
    return count


@njit(cache=True, nogil=True)
def send_frames(numbers: Longs, buffer: Bytes, offsets: Longs, first: int, end: int) -> int:
    """Send frames first..end-1 to the socket's one pipe; returns the first one that NNG did not take."""
    start = buffer.ctypes.data
    for index in range(first, end):
        size = offsets[index + 1] - offsets[index]
        error = _send(numbers[SOCKET], start + offsets[index], size, NONBLOCK)
        if error:
            _note_error(numbers, error)
            return index
        numbers[BYTES_SENT] += size
        numbers[FRAMES_SENT] += 1
    return end


@njit(cache=True, nogil=True)
def send_to_each(numbers: Longs, buffer: Bytes, begin: int, size: int) -> None:
    """Send one frame to each admitted pipe. A frame that NNG does not take is dropped, whatever its reason.

    NNG takes none for a pipe whose queue of a few frames is full.
    """
    message = np.zeros(1, np.int64)  # nng_msg_alloc writes the address of the new message here
    for place in range(PIPES, PIPES + numbers[ADMITTED]):
        if _allocate(message.ctypes, size):
            return
        move_bytes(_body(message[0]), buffer[begin:].ctypes, size)
        _set_pipe(message[0], numbers[place])
        if _send_message(numbers[SOCKET], message[0], NONBLOCK):
            _free(message[0])
        else:
            numbers[BYTES_SENT] += size
            numbers[FRAMES_SENT] += 1


# With a signature, these two are compiled at import: a call to warm them up would need a message.
@njit((types.int64[::1],), cache=True, nogil=True)
def pipe_of_message(numbers: Longs) -> int:
    """The number of the pipe of the message that is kept."""
    return _pipe_of(numbers[MESSAGE])


@njit((types.int64[::1], types.uint8[::1]), cache=True, nogil=True)
def take_message(numbers: Longs, into: Bytes) -> tuple[int, int]:
    """Take the message that waits for judgement: copy its bytes, as many as `into` holds, and forget it.

    Returns (its length, the number of its pipe).
    """
    message = numbers[MESSAGE]
    numbers[MESSAGE] = 0
    size = _length(message)
    move_bytes(into.ctypes, _body(message), min(size, len(into)))
    pipe = _pipe_of(message)
    _free(message)
    return size, pipe
