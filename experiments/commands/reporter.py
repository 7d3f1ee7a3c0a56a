"""`exchange reporter`: one component, on a host of its own."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.options import cpu_option, launched_option


@click.command()
@click.option("--listen", "url", required=True, metavar="URL", help="Where gateway and engine report to.")
@click.option("--run", "name", required=True, help="The run's name; who does not know it is refused.")
@click.option("--results", default="results", show_default=True, metavar="DIR", help="Where the run's folder is.")
@click.option(
    "--timeout",
    "timeout_s",
    type=float,
    default=60.0,
    show_default=True,
    help="Give up after so long a silence, seconds.",
)
@cpu_option
@launched_option
def command(url: str, name: str, results: str, timeout_s: float, cpu: int | None, launched: bool) -> None:
    """The stats reporter: writes what gateway and engine measure to the run's folder.

    Example: exchange reporter --listen tcp://0.0.0.0:7001 --run first
    """
    from experiments.by_hand import write_record
    from experiments.component import Events, Service, serve
    from experiments.components import open_reporter
    from experiments.run_folder import new_run_folder

    events = Events("reporter", launched)
    folder = Path(results) / name if launched else new_run_folder(Path(results), name)

    def open_service() -> tuple[Service, str]:
        service, link = open_reporter(name, url, folder / "spool", timeout_s)
        return service, link.url

    result = serve(events, open_service, cpu)
    if not launched:
        write_record(folder, result)
