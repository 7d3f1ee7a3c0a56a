"""A source's link to its reporter: it keeps every frame until the frame is in the spool, and sends it again if need be.

`reporter.py` describes the conversation, which uses `Resume` messages. By a Resume with the number 0 the reporter also
says which frames are in its spool, so that the source forgets them.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from exchange.messages import Hello, Resume, encode, read
from exchange.session import SOURCE_BITS, source_byte
from transports.base import Link, PeerGone, TransportError
from transports.frames import FrameBatch

LOOK_NS = 10_000_000
"""The time between two attempts to open another link."""


class SourceLink(Link):
    """A source's link to its reporter. It takes every frame at once, and keeps the frame until it is in the spool."""

    def __init__(self, link: Link, open_link: Callable[[], Link], source: str) -> None:
        """`open_link` opens the link again after a break, in a thread of its own, since a source must not wait."""
        self.url = link.url
        self._open_link = open_link
        self._link: Link | None = link
        self._source = source_byte(source)
        self._frames = FrameBatch(1024)
        """Frames that may not be in the spool."""
        self._first = 0
        """The first of `_frames` that the link has not taken."""
        self._forgotten = 0
        """The number of frames before `_frames`, which are in the spool."""
        self._began_ns = 0
        """The time in the hello, which is the first frame of all."""
        self._resumes = FrameBatch(1)
        """The latest Resume of this source, which goes to the reporter before more frames."""
        self._first_resume = 0
        """The first of `_resumes` that the link has not taken."""
        self._inbound = FrameBatch(16)
        self._unread: list[bytes] = []
        """Frames of the reporter that the source has not received yet."""
        self._answered = 0
        """The session number of the question that was answered last."""
        self._thread: threading.Thread | None = None
        self._is_open = True

    def unrecorded(self) -> list[bytes]:
        """The frames that may not be in the spool."""
        return list(self._frames)

    def send(self, batch: FrameBatch, first: int) -> int:
        for index in range(first, batch.count):
            self._frames.append(batch[index])
        if self._began_ns == 0 and self._frames.count > 0:
            first_message = read(self._frames[0])
            if isinstance(first_message, Hello):
                self._began_ns = first_message.monotonic_ns
        self._move()
        return batch.count

    def receive(self, batch: FrameBatch) -> int:
        self._move()
        frames = self._unread
        self._unread = []
        for frame in frames:
            batch.append(frame)
        return len(frames)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        if self._link is None:
            time.sleep(LOOK_NS / 1e9)
        self._use(lambda link: link.wait(until_ns, readable, writable or self._first < self._frames.count))

    def _use(self, call: Callable[[Link], None]) -> None:
        """Call the link, if there is one now. If it breaks, open another."""
        link = self._link
        if link is None:
            return
        try:
            call(link)
        except PeerGone:
            self._link = None
            self._thread = threading.Thread(target=self._open_another, args=(link,), daemon=True)
            self._thread.start()

    def _move(self) -> None:
        self._use(self._exchange)

    def _exchange(self, link: Link) -> None:
        """Receive the reporter's messages, then send what the link takes: the Resume first."""
        self._receive(link)
        link.wait(0)  # some links notice a loss only here, and only when nothing is left to read
        self._first_resume = link.send(self._resumes, self._first_resume)
        if self._first_resume == self._resumes.count:
            self._first = link.send(self._frames, self._first)

    def _open_another(self, lost: Link) -> None:
        lost.close(0)
        while self._is_open and self._link is None:
            time.sleep(LOOK_NS / 1e9)
            with contextlib.suppress(TransportError):
                link = self._open_link()
                self._say(Resume(self._source, 0, 0))
                self._link = link

    def _receive(self, link: Link) -> None:
        self._inbound.clear()
        link.receive(self._inbound)
        for frame in self._inbound:
            match read(frame):
                case Resume() as question:
                    self._answer(question)
                case _:
                    self._unread.append(frame)

    def _answer(self, question: Resume) -> None:
        """Send the frames again from where the reporter asks; all frames if it knows only an earlier process."""
        number, source = divmod(question.session, 1 << SOURCE_BITS)
        if source != self._source or question.session == self._answered:
            return
        is_of_this_process = question.checksum == self._began_ns
        received = question.messages - self._forgotten if is_of_this_process else 0  # of `_frames`
        if number == 0:
            self._forget(min(received, self._first))
            return
        self._answered = question.session
        self._first = max(received, 0)
        self._say(question)

    def _forget(self, frames: int) -> None:
        """Forget the first frames, which are in the spool. `frames` is negative if an old message comes late."""
        if frames > 0:
            self._frames.drop(frames)
            self._first -= frames
            self._forgotten += frames

    def _say(self, resume: Resume) -> None:
        """Send this Resume before more frames."""
        self._resumes = FrameBatch.of(encode(resume))
        self._first_resume = 0

    def close(self, linger_s: float = 1.0) -> None:
        self._is_open = False
        if self._thread:
            self._thread.join()
        if self._link:
            self._link.close(linger_s)
