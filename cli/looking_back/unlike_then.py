"""In what a run that is made now will differ from the one whose settings it has."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from cli.looking_back.fields import ABSENT, differing, part_of
from exchange.json_records import Record
from exchange.settings import RunSettings
from experiments.trials.conditions import DIFFERS_BY_RUN
from reports.formats import plain
from runs.record.host import host_facts, versions

LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def unlike_then(then: Record, settings: RunSettings | None = None) -> Iterator[str]:
    """Host and versions, and where the components meet; `then` is a run's record, or a trial's conditions."""
    for part, now in (("host", host_facts()), ("versions", versions())):
        passing = {name for of_part, name in DIFFERS_BY_RUN if of_part == part}
        before = part_of(then, part)
        for found in differing(before, now, prefix=f"{part}.") if before else ():
            if found["field"].partition(".")[2] not in passing:
                yield f"{found['field']} was {_told(found, 'first')}, is {_told(found, 'second')}"
    if settings is not None and (place := _elsewhere(then, settings)):
        yield f"the components met at {place}, and now do on this machine"


def _told(found: Record, side: str) -> str:
    return plain(found[side]) if side in found else ABSENT


def _elsewhere(record: Record, settings: RunSettings) -> str | None:
    """Where a run by hand met on another host; a transport that names its place meets there again."""
    if "://" in settings.transport or settings.network != "local":
        return None
    try:
        url = urlsplit(str(part_of(record, "settings").get("url")))
        return None if url.port is None or url.hostname in LOOPBACK else f"{url.hostname}:{url.port}"
    except ValueError:
        return None
