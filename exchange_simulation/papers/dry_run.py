"""`exchange paper NAME --dry-run`: the commands, and about how long each takes."""

from __future__ import annotations

from collections.abc import Iterator

from exchange_simulation.launching.errors import UserError
from exchange_simulation.papers.extent import Extent
from exchange_simulation.papers.paper import Paper
from exchange_simulation.reports.formats.times import duration_in_words

ONE_NIGHT_S = 8 * 3600.0


def planned_commands(paper: Paper, extent: Extent) -> Iterator[str]:
    """Yield the commands, each with its time behind a #, so that a shell takes the line; last the time of all."""
    total_s = 0.0
    for part in paper.parts:
        command = part.command(extent)
        try:
            expected_s = part.expected_s(extent)
        except UserError as error:
            yield f"{command}  # cannot be measured here: {error.format_message()}"
            continue
        total_s += expected_s
        line = f"{command}  # about {duration_in_words(expected_s)}"
        if extent.repeats and part.why_no_repeats:
            line += f"; no repeats here: {part.why_no_repeats}"
        yield line
    nights = "; --resume goes on after an interruption, over several nights" if total_s > ONE_NIGHT_S else ""
    yield f"# in all about {duration_in_words(total_s)} on a quiet machine{nights}"
