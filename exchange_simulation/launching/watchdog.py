"""Ends a launcher's children and removes its folders once the launcher is gone, however that happened.

Runs as a process of its own, on the standard library alone (`python -I -S watchdog.py`), and leads the process
group that the children join, so the group's number is not reused while it runs. It reads lines from a pipe:
`remove PATH`, the bytes of a path in hex, names a folder to delete at the end, `done` means that the children have
ended. End of file without `done` ends them. At its own end it kills whatever is left in the group, itself included.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

GRACE_S = 1.0


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
