"""batch-size: messages of 6 bytes, packed into frames.

publisher  ══ [6 bytes, 6 bytes, ...] [6 bytes, ...] ══▶  consumer      PUSH to PULL

A frame is filled, sent and checked as one, and counts as the messages that fit in it: no work is done for each of them.
"""

from __future__ import annotations

import math

from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell, Counts, Figures, Results
from exchange_simulation.messaging.options import COUNT, sizes_option
from exchange_simulation.messaging.paper import Published
from exchange_simulation.messaging.point import Point, Settings
from exchange_simulation.messaging.presentation import Column, Plot
from exchange_simulation.messaging.streams import Streams

MESSAGE_BYTES = 6
COUNTS = Counts(broker=500_000, brokerless=20_000_000, total_bytes=1 << 40)


def points(settings: Settings) -> list[Point]:
    """A point for each size of a batch. UserError for a batch that holds no message."""
    least = min(settings["sizes"])
    if least < MESSAGE_BYTES:
        raise UserError(
            f"--sizes has {least}: a batch of {MESSAGE_BYTES}-byte messages has {MESSAGE_BYTES} bytes or more"
        )
    return [{"batch_bytes": size} for size in settings["sizes"]]


def messages_per_frame(cell: Cell) -> int:
    """Number of messages in a frame."""
    return int(cell.point["batch_bytes"]) // MESSAGE_BYTES


def frames(cell: Cell) -> int:
    """Number of frames: those of the load at a rate; else those that hold the messages.

    Without `--count` there are at most as many as an eighth of the default number of messages.
    """
    if cell.load is not None:
        return cell.load.messages
    messages = cell.count(COUNTS, MESSAGE_BYTES)
    if cell.settings.get("count"):
        return max(2, math.ceil(messages / messages_per_frame(cell)))
    return max(2, min(messages // messages_per_frame(cell), messages // 8))


STREAM = Streams(messages=frames, size=lambda cell: messages_per_frame(cell) * MESSAGE_BYTES)


def figures(cell: Cell, results: Results) -> Figures:
    stream_figures = STREAM.figures(cell, results)
    if "messages_per_s" not in stream_figures:
        return stream_figures
    frames_per_s = stream_figures.pop("messages_per_s")
    return {**stream_figures, "frames_per_s": frames_per_s, "messages_per_s": frames_per_s * messages_per_frame(cell)}


BENCHMARK = BenchmarkDefinition(
    about="6-byte messages, packed into frames by the application: messages/s by the frame's size",
    paper="ZeroMQ 0.2 tests, impact of buffer size",
    points=points,
    roles=STREAM.roles,
    judge=STREAM.judge,
    figures=figures,
    flood_s=COUNTS.flood_s,
    takes_rate=True,
    columns=(
        Column("messages_per_s", "messages/s, packed", with_interval=True),
        Column("frames_per_s", "frames/s"),
        Column("megabytes_per_s", "MB/s"),
    ),
    plots=(
        Plot(
            "6-byte messages, packed per frame",
            "messages_per_s",
            "messages/s",
            x="batch_bytes",
            caption="A frame counts as the messages that fit in it: not the buffer of ZeroMQ 0.2.",
        ),
    ),
    published=(Published("messages/s as its own buffer grows from 8 bytes to 8 kB", "rises, flat above 2 kB"),),
    options=(sizes_option("8B..8KiB"), COUNT),
    transports="zeromq",
    quick_values={"sizes": (8, 128, 2048, 8192)},
)
