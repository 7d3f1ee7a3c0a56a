"""Settings and conditions as text."""

from __future__ import annotations

from exchange_simulation.reports.formats.numbers import is_number


def setting_text(value: object) -> str:
    """Return a setting of any shape in one line.

    Numbers have no thousands separators, since a seed or a port is no amount.
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} {setting_text(inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(setting_text(inner) for inner in value) or "none"
    return f"{round(value, 3):.10g}" if isinstance(value, float) else str(value)


def condition_in_words(name: str, value: object) -> tuple[str, str]:
    """Return a condition's name and value in words; bytes are those of a memory, in GiB.

    For example: ("memory", "7.7 GiB")
    """
    if name == "orders_per_s" and value is None:
        return "orders/s", "as fast as it goes"
    if name.endswith("_bytes") and is_number(value):
        return name.removesuffix("_bytes"), f"{value / 2**30:,.1f} GiB"
    if name.endswith("_s") and not name.endswith("_per_s"):
        seconds = f"{setting_text(value)} s" if is_number(value) else setting_text(value)
        return name.removesuffix("_s").replace("_", " "), seconds
    return name.replace("_per_s", "/s").replace("_", " "), setting_text(value)
