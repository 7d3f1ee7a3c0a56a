"""Makes distributions with a transport in a folder of sys.path, as an installer would."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from transports import registry


def add_distribution(folder: Path, scheme: str, module: str, text: str) -> None:
    """Write a module into the folder, and the metadata that names it as the transport of a scheme."""
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / f"{module}.py").write_text(text)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{scheme} = {module}\n")


@contextlib.contextmanager
def installed(folder: Path) -> Iterator[pytest.MonkeyPatch]:
    """Make this process find the distributions of a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        registry._of_other_distributions.cache_clear()
        yield patch
    registry._of_other_distributions.cache_clear()
