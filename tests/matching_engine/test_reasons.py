"""Every reason of a rejection has its word."""

from __future__ import annotations

import re
from pathlib import Path

from matching_engine import kernels
from matching_engine.reasons import REASONS


def test_every_reason_of_the_kernels_has_a_word() -> None:
    source = Path(kernels.__file__).read_text()
    block = source.partition("# The reasons of rejections, as numbers on the wire.\n")[2].partition("\n\n")[0]
    numbers = [int(number) for number in re.findall(r"^[A-Z_]+ = (\d+)$", block, re.MULTILINE)]
    assert len(numbers) > 5
    assert sorted(REASONS) == sorted(numbers)
