"""What records say of the disk below a server that keeps messages."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from exchange_simulation.launching.record.disk import SYNC_BYTES, SYNCS, disk_facts, disk_in_words


def test_a_folders_disk_has_a_file_system_and_the_time_of_a_sync(tmp_path: Path) -> None:
    facts = disk_facts(tmp_path)

    assert facts["file_system"]
    assert facts["sync_us"] > 0
    assert (facts["sync_count"], facts["sync_bytes"]) == (SYNCS, SYNC_BYTES)
    assert list(tmp_path.iterdir()) == []


def test_the_nearest_mount_point_is_the_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted = [("/dev/a", "/", "ext4"), ("/dev/b", str(tmp_path), "xfs"), ("/dev/c", f"{tmp_path}2", "btrfs")]
    partitions = [SimpleNamespace(device=device, mountpoint=place, fstype=kind) for device, place, kind in mounted]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: partitions)

    assert disk_facts(tmp_path)["device"] == "/dev/b"
    assert disk_facts(tmp_path)["file_system"] == "xfs"


def test_a_folder_that_is_not_there_has_no_times(tmp_path: Path) -> None:
    assert "sync_us" not in disk_facts(tmp_path / "nothing")


def test_a_disk_in_words() -> None:
    facts = {"device": "/dev/vda", "file_system": "ext4", "sync_us": 1210.4, "sync_count": 25, "sync_bytes": 4096}

    assert disk_in_words(facts) == (
        "messages are kept on /dev/vda (ext4), which takes 1,210 us to write and sync 4,096 bytes (median of 25)"
    )
    assert disk_in_words({"device": "tmpfs", "file_system": "tmpfs"}) == (
        "messages are kept on tmpfs (tmpfs), which is memory and no disk"
    )
