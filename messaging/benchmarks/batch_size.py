"""batch-size: messages of 6 bytes, packed into frames.

    publisher  ══ [6 bytes, 6 bytes, ...] [6 bytes, ...] ══▶  consumer      PUSH to PULL

ZeroMQ 0.2 had an option for how many bytes it hands to a socket at once; today's libzmq has it in draft builds only,
and else batches up to 8 KiB by itself. So what grows here is another thing with the same effect, and it is ours: how
many messages the *application* packs into one frame of ZeroMQ's. A frame of 8 bytes holds one, one of 8 KiB 1365.
"""

from __future__ import annotations

from collections.abc import Mapping

from messaging.benchmark import Asked, Benchmark, Cell, Column, Counts, Figures, Plot, Point, Published
from messaging.options import COUNT, sizes
from messaging.places import Places
from messaging.reckoning import flow_figures
from messaging.roles import Role, Told
from messaging.streams import consumers_of, stream_roles, wrong_with_streams

MESSAGE_BYTES = 6
COUNTS = Counts(broker=500_000, brokerless=20_000_000, total_bytes=1 << 40)


def points(asked: Asked) -> list[Point]:
    return [{"batch_bytes": size} for size in asked["sizes"]]


def packed(cell: Cell) -> int:
    """Messages in a frame."""
    return max(1, int(cell.point["batch_bytes"]) // MESSAGE_BYTES)


def frames(cell: Cell) -> int:
    """As many as hold the messages; few messages to a frame are sent as fewer."""
    asked: int | None = cell.asked.get("count")
    messages = asked or COUNTS.of(MESSAGE_BYTES, cell.has_broker, bool(cell.asked.get("quick")))
    return max(2, -(-messages // packed(cell)) if asked else min(messages // packed(cell), messages // 8))


def roles(cell: Cell, places: Places) -> list[Role]:
    return stream_roles(cell, places, frames(cell), size=packed(cell) * MESSAGE_BYTES)


def judge(cell: Cell, told: Mapping[str, Told]) -> list[str]:
    return wrong_with_streams(told, frames(cell))


def figures(cell: Cell, told: Mapping[str, Told]) -> Figures:
    found = flow_figures(packed(cell) * MESSAGE_BYTES, consumers_of(told))
    if not found:
        return {}
    frames_per_s = found.pop("messages_per_s")
    return {**found, "frames_per_s": frames_per_s, "messages_per_s": frames_per_s * packed(cell)}


BENCHMARK = Benchmark(
    name="batch-size",
    about="6-byte messages, packed into frames by the application: messages/s by the frame's size",
    paper="ZeroMQ 0.2 tests (2007), impact of buffer size",
    points=points,
    roles=roles,
    judge=judge,
    figures=figures,
    columns=(
        Column("messages_per_s", "messages/s, packed", with_interval=True),
        Column("frames_per_s", "frames/s"),
        Column("megabytes_per_s", "MB/s"),
    ),
    plots=(
        Plot("6-byte messages, packed per frame", "messages_per_s", "messages/s", x="batch_bytes",
             caption="Packed by the application: not the buffer of ZeroMQ 0.2."),
    ),
    published=(Published("messages/s as its own buffer grows from 8 bytes to 8 kB", "rises, flat above 2 kB"),),
    options=(sizes("8B..8KiB"), COUNT),
    transports="zeromq",
    quick={"sizes": (8, 128, 2048, 8192)},
)  # fmt: skip
