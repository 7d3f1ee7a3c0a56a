"""The disk below a server's files, for records of measurements whose messages survive the server's end."""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

SYNCS = 25
"""How many writes the probe times."""
SYNC_BYTES = 4096
"""Bytes of each of these writes: a block, as a server writes a few messages."""
BLOCK_DEVICES = Path("/sys/class/block")


def disk_facts(folder: Path) -> dict[str, Any]:
    """Return the disk below `folder`; a fact that the system does not show is absent.

    device, file_system, rotational (whether the system takes the disk for one that turns), write_cache (the kernel's
    words); sync_us (the median time to append a block to a file in `folder` and sync it), sync_count, sync_bytes.
    """
    return {**_file_system(folder), **_sync_times(folder)}


def disk_in_words(facts: dict[str, Any]) -> str:
    """The disk in a sentence.

    For example: messages are kept on /dev/vda (ext4), which takes 1,210 us to write and sync 4,096 bytes (median of 25)
    """
    device = facts.get("device", "an unknown device")
    place = f"{device} ({facts['file_system']})" if "file_system" in facts else device
    sentence = f"messages are kept on {place}"
    if facts.get("file_system") in {"tmpfs", "ramfs"}:
        sentence += ", which is memory and no disk"
    if "sync_us" not in facts:
        return sentence
    took = f"{facts['sync_us']:,.0f} us to write and sync {facts['sync_bytes']:,} bytes"
    return f"{sentence}, which takes {took} (median of {facts['sync_count']})"


def _file_system(folder: Path) -> dict[str, Any]:
    """Return device, file system, and what the kernel says of the device."""
    place = folder.resolve()
    try:
        mounted = [part for part in psutil.disk_partitions(all=True) if place.is_relative_to(part.mountpoint)]
    except OSError:
        return {}
    if not mounted:
        return {}
    nearest = max(mounted, key=lambda part: len(part.mountpoint))
    return {"device": nearest.device, "file_system": nearest.fstype, **_queue_facts(Path(nearest.device).name)}


def _queue_facts(device: str) -> dict[str, Any]:
    """Return what the kernel says of a block device, or of the disk that the device is a part of."""
    facts: dict[str, Any] = {}
    with contextlib.suppress(OSError):
        folder = (BLOCK_DEVICES / device).resolve(strict=True)
        queue = folder / "queue" if (folder / "queue").exists() else folder.parent / "queue"
        facts["rotational"] = (queue / "rotational").read_text().strip() == "1"
        facts["write_cache"] = (queue / "write_cache").read_text().strip()
    return facts


def _sync_times(folder: Path) -> dict[str, Any]:
    """Time SYNCS writes to a file that is removed; empty if nothing can be written there."""
    took_s: list[float] = []
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            for _ in range(SYNCS):
                began_s = time.perf_counter()
                os.write(file.fileno(), bytes(SYNC_BYTES))
                os.fsync(file.fileno())
                took_s.append(time.perf_counter() - began_s)
    except OSError:
        return {}
    return {"sync_us": statistics.median(took_s) * 1e6, "sync_count": SYNCS, "sync_bytes": SYNC_BYTES}
