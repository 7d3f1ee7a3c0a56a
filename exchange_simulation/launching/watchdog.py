"""Ends a launcher's children and removes its folders when the launcher has ended, even by SIGKILL.

The watchdog is a process that uses only the standard library (`python -I -S watchdog.py`). It leads the process group
that the children join, so the group's number is not reused while the watchdog runs. It reads lines from a pipe:

remove PATH    a folder to remove at the end; PATH is the bytes of the path in hex
done           the children have ended

End of file without `done` means that the launcher was killed: then the watchdog ends the children. At the end it kills
all processes of the group, itself included.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

GRACE_S = 1.0
"""The time between SIGTERM and SIGKILL for the children."""


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    folders = []
    done = False
    for line in sys.stdin:
        word, _, path = line.rstrip("\n").partition(" ")
        if word == "done":
            done = True
        if word == "remove":
            folders.append(os.fsdecode(bytes.fromhex(path)))
    if not done:
        os.killpg(0, signal.SIGTERM)
        time.sleep(GRACE_S)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
