"""What was run, in plain sentences."""

from __future__ import annotations

from datetime import datetime

from exchange.words import counted, each_of
from reports.formats import is_number, plain, three_digits
from reports.run.run_folder import Record, part

TRANSPORTS = {"zeromq": "ZeroMQ", "amqp": "AMQP", "tcp": "TCP", "memory": "memory"}
ONE_PROCESS = ("memory", "zeromq+inproc")


def title(run: Record) -> str:
    """What was run, as one sentence without its end: 480,000 orders over ZeroMQ at 8,000 orders/s."""
    settings = part(run, "settings")
    each, pairs = settings.get("orders"), settings.get("pairs") or 1
    orders = pairs * each if each else part(run, "counts").get("orders_sent")
    amount = counted(int(orders), "orders") if is_number(orders) else "Orders"
    return f"{amount} over {_transport(settings)}{each_of(pairs)}{_speed(settings)}"


def _scheme(settings: Record) -> str:
    """`settings.transport` is a scheme, or a URL that begins with one."""
    return str(settings.get("transport") or "an unknown transport").partition("?")[0].partition("://")[0]


def _transport(settings: Record) -> str:
    name, _, variant = _scheme(settings).partition("+")
    return TRANSPORTS.get(name, name) + (f" ({variant})" if variant else "")


def _speed(settings: Record) -> str:
    if "orders_per_s" not in settings:
        return ""
    offered, arrivals = settings["orders_per_s"], settings.get("arrivals", "fixed")
    if not is_number(offered):
        return ", as fast as it goes"
    if arrivals == "recorded":
        return f", as recorded, speed {settings['speed']:g}"
    return f" at {offered:,.10g} orders/s" + ("" if arrivals == "fixed" else f" ({arrivals})")


def circumstances(run: Record) -> list[str]:
    """The sentences below the title."""
    settings = part(run, "settings")
    said = [_started(run), _nagle(run), _one_process(settings)]
    said.insert(1, _origin(settings))
    return [sentence for sentence in said if sentence]


def _origin(settings: Record) -> str:
    if settings.get("tape"):
        return f"Orders of the tape {settings['tape']}."
    return f"Seed {settings['seed']}." if "seed" in settings else ""


def _started(run: Record) -> str:
    at, duration_s = run.get("started_at"), run.get("duration_s")
    lasted = f", for {three_digits(duration_s)} s" if is_number(duration_s) else ""
    return f"Run on {in_words(at)}{lasted}." if isinstance(at, str) else ""


def in_words(iso_time: str) -> str:
    """21 November 2026, 18:22 UTC; what is no time stays as it is."""
    try:
        at = datetime.fromisoformat(iso_time)
    except ValueError:
        return iso_time
    return f"{at.day} {at:%B %Y, %H:%M} {at.tzname() or ''}".strip()


def _nagle(run: Record) -> str:
    """`nagle` names the ends at which the system may hold small segments back; said only of sockets that were read."""
    roles = part(run, "settings").get("nagle")
    if not isinstance(roles, list) or not run.get("sockets"):
        return ""
    held_back = f", except at: {plain(roles)} (Nagle's algorithm)" if roles else ""
    return f"TCP_NODELAY at every end{held_back}."


def _one_process(settings: Record) -> str:
    if _scheme(settings) not in ONE_PROCESS:
        return ""
    return "All components ran as threads of one process: not comparable with runs over a network."
