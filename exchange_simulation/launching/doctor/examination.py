"""Looks at everything that a measurement needs here. Only listening takes time; nothing on the machine is changed."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from timeit import timeit

import psutil

from exchange.words import counted
from exchange_simulation.launching.doctor.items import Item
from exchange_simulation.launching.doctor.quiet import listen
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.priority import going_first, processors_of
from exchange_simulation.launching.record.machine import host_facts, text_of
from transports.base import TransportError
from transports.registry import built_in

LEAST_PROCESSORS, PLENTY_OF_PROCESSORS = 2, 4
EXACT_CLOCKS = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"}
"""Clocks that a process reads without a call of the kernel."""
CLOCK_READS = 10_000
GOOD_CLOCK_READ_NS = 300.0
PLENTY_OF_FILES, LEAST_FILES = 4096, 256
PLENTY_OF_MEMORY, LEAST_MEMORY = 4 << 30, 1 << 30
PLENTY_OF_DISK, LEAST_DISK = 2 << 30, 100 << 20
OVER_THE_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"}


def examine(seconds: float, results: Path) -> list[Item]:
    """All items, in the order in which they are shown."""
    host = host_facts()
    heard = listen(seconds)
    first = processors(len(processors_of()) or host["cores"], host)
    return [
        first,
        frequency(host),
        *heard,
        clock(host),
        priority(),
        network(),
        capture(),
        *brokers(),
        java(),
        memory(),
        open_files(),
        disk(results),
    ]


def processors(usable: int, host: dict[str, object]) -> Item:
    """Whether each busy process can have a processor of its own."""
    quota = host.get("cpu_quota_cores")
    have = min(float(usable), float(quota)) if isinstance(quota, float) else float(usable)
    facts = [f"{counted(usable, 'processors')} of {host['cores']}, {host['cpu']}"]
    if isinstance(quota, float):
        facts.append(f"quota {quota:g} of them")
    if host.get("smt"):
        facts.append("two threads a core")
    if host.get("numa_nodes", 1) != 1:
        facts.append(f"{host['numa_nodes']} NUMA nodes")
    if "hypervisor" in host:
        facts.append(f"a guest of {host['hypervisor']}")
    found = ", ".join(facts)
    figures = {"usable": usable, "quota_cores": quota, "cores": host["cores"]}
    if have >= PLENTY_OF_PROCESSORS:
        return Item(name="processors", verdict="good", found=found, figures=figures)
    advice = "gateway, engine, reporter and a broker share them: compare ratios, and take 4 or more for absolute times"
    if isinstance(quota, float) and quota < usable:
        advice = f"the control group's quota throttles a run: raise it (docker run --cpus), or give {usable} whole ones"
    return Item(
        name="processors",
        verdict="no" if have < LEAST_PROCESSORS else "care",
        found=found,
        figures=figures,
        why=f"{have:g} {'processor' if have == 1 else 'processors'} for 3 or 4 busy processes",
        advice=advice,
    )


def frequency(host: dict[str, object]) -> Item:
    """Whether processors keep their frequency."""
    governor = host.get("governor")
    turbo = host.get("turbo")
    known = {"governor": governor, "turbo": {True: "on", False: "off"}.get(turbo)}  # type: ignore[call-overload]
    found = ", ".join(f"{name} {value}" for name, value in known.items() if value)
    figures = {"governor": governor, "turbo": turbo}
    if governor is None:
        words = found or "not told here; the hypervisor's host decides"
        return Item(name="frequency", verdict="unknown", found=words, figures=figures)
    if governor == "performance":
        return Item(name="frequency", verdict="good", found=found, figures=figures)
    return Item(
        name="frequency",
        verdict="care",
        found=found,
        figures=figures,
        why=f"the governor is {governor}",
        advice="sudo cpupower frequency-set -g performance",
    )


def clock(host: dict[str, object]) -> Item:
    """Cost of reading the clock, which happens three times an order."""
    source = host.get("clocksource")
    read_ns = timeit(time.monotonic_ns, number=CLOCK_READS) / CLOCK_READS * 1e9
    found = f"{source or 'clocksource not told'}, {read_ns:.0f} ns a reading"
    figures = {"clocksource": source, "read_ns": read_ns}
    if source in EXACT_CLOCKS or (source is None and read_ns <= GOOD_CLOCK_READ_NS):
        return Item(name="clock", verdict="good", found=found, figures=figures)
    return Item(
        name="clock",
        verdict="care",
        found=found,
        figures=figures,
        why=f"the clock is {source or 'slow'}",
        advice="boot with tsc=reliable if the processor's clock is stable, or measure elsewhere",
    )


def priority() -> Item:
    """Whether `--priority real-time` is permitted."""
    try:
        with going_first():
            permitted = "--priority real-time is permitted: it keeps other work out of a run"
            return Item(name="priority", verdict="good", found=permitted)
    except UserError:
        return Item(
            name="priority",
            verdict="care",
            found="normal only",
            why="others' work shows in every percentile",
            advice="for --priority real-time be root; else ulimit -r 1, or --cap-add SYS_NICE",
        )


def network() -> Item:
    """Whether `--network` can put components into namespaces, with a rate and a delay."""
    from exchange_simulation.launching.network.probe import probe

    findings = probe().findings
    works = [name for name, finding in findings.items() if finding.works]
    figures = {name: finding.works for name, finding in findings.items()}
    figures["tun"] = (Path("/dev/net/tun")).exists()
    found = f"works: {', '.join(works)}" if works else "nothing of it works"
    lacking = next((findings[name] for name in ("tools", "namespace", "veth", "bridge") if name not in works), None)
    if lacking is None and not {"netem", "packet socket"}.isdisjoint(works):
        if "netem" not in works:
            found += "; without netem, a process of ours forwards the frames"
        return Item(name="network", verdict="good", found=found, figures=figures)
    lacking = lacking or findings["netem"]
    return Item(
        name="network",
        verdict="no",
        found=f"{found}; {lacking.name}: {lacking.reason}",
        figures=figures,
        why=f"no {lacking.name}",
        advice=lacking.remedy,
    )


def capture() -> Item:
    """Whether `--capture` has tcpdump, and the right to use it."""
    from exchange_simulation.launching.packets.capture import program

    try:
        path = program()
    except UserError as error:
        return Item(name="capture", verdict="no", found="no tcpdump", why="no tcpdump", advice=error.message)
    if os.geteuid() == 0:
        return Item(name="capture", verdict="good", found=f"{path}, as root")
    return Item(
        name="capture",
        verdict="care",
        found=f"{path}, as an ordinary user",
        why="tcpdump may lack the right to capture",
        advice=f"sudo setcap cap_net_raw+eip {path}",
    )


def brokers() -> Iterator[Item]:
    """The installed programs from which transports start their brokers, an item each."""
    for scheme, transport in built_in().items():
        if transport.broker is None:
            continue
        name = "broker" if scheme == "amqp" else f"broker {scheme}"
        try:
            yield Item(name=name, verdict="good", found=transport.broker().installed())
        except TransportError as error:
            what, _, advice = str(error).partition(": ")
            yield Item(name=name, verdict="no", found=what, why="it is not installed", advice=advice)


def java() -> Item:
    try:
        from spark.errors import SparkUnavailableError
        from spark.sessions.java import find_java
    except ModuleNotFoundError:
        advice = "pip install 'exchange-simulation[spark]'"
        return Item(name="java", verdict="no", found="no Spark is installed", why="no Spark", advice=advice)
    try:
        found = find_java()
    except SparkUnavailableError as error:
        what, _, advice = str(error).rpartition(": ")
        return Item(name="java", verdict="no", found=what, why="no Java for Spark", advice=advice)
    return Item(name="java", verdict="good", found=f"Java {found.version} at {found.executable}")


def memory() -> Item:
    free = psutil.virtual_memory().available
    return _enough("memory", free, PLENTY_OF_MEMORY, LEAST_MEMORY, "available", "a run needs 0.4 GiB, Spark 1.5 more")


def disk(results: Path) -> Item:
    """The place of the results: spool, tables and pages."""
    try:
        there = next(folder for folder in (results.absolute(), *results.absolute().parents) if folder.exists())
    except OSError as error:
        return Item(
            name="disk",
            verdict="no",
            found=f"{results}: {error.strerror}",
            why=f"{results} cannot be used",
            advice="give another folder with --results",
        )
    if not (there.is_dir() and os.access(there, os.W_OK)):
        return Item(
            name="disk",
            verdict="no",
            found=f"{there} cannot be written to",
            why=f"{there} takes no files",
            advice="give another folder with --results",
        )
    kind = _file_system(there)
    if kind in OVER_THE_NETWORK:
        return Item(
            name="disk",
            verdict="care",
            found=f"{there} is on {kind}",
            why=f"results go to {kind}",
            advice="give a local folder with --results",
        )
    free = psutil.disk_usage(str(there)).free
    where = f"free at {there} ({kind})" if kind else f"free at {there}"
    return _enough("disk", free, PLENTY_OF_DISK, LEAST_DISK, where, "a million orders take about 2 MiB, recorded 40")


def _file_system(folder: Path) -> str:
    """The kind of file system that holds a folder; empty where the system does not tell."""
    mounts = [line.split() for line in (text_of("proc/self/mounts") or "").splitlines()]
    around = [(len(words[1]), words[2]) for words in mounts if len(words) > 2 and folder.is_relative_to(words[1])]
    return max(around, default=(0, ""))[1]


def _enough(name: str, free: int, plenty: int, least: int, where: str, advice: str) -> Item:
    found = f"{free / 2**30:,.1f} GiB {where}"
    figures = {"free_bytes": free}
    if free >= plenty:
        return Item(name=name, verdict="good", found=found, figures=figures)
    return Item(
        name=name,
        verdict="care" if free >= least else "no",
        found=found,
        figures=figures,
        why=f"little {name}",
        advice=advice,
    )


def open_files() -> Item:
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = limit == resource.RLIM_INFINITY
    found = "any number a process" if unlimited else f"{limit:,} a process"
    figures = {"soft": limit, "hard": most}
    if unlimited or limit >= LEAST_FILES:
        is_plenty = unlimited or limit >= PLENTY_OF_FILES
        advice = "" if is_plenty else f"benchmarks with hundreds of roles: ulimit -n {PLENTY_OF_FILES}"
        return Item(name="open files", verdict="good", found=found, figures=figures, advice=advice)
    return Item(
        name="open files",
        verdict="care",
        found=found,
        figures=figures,
        why="few open files",
        advice=f"ulimit -n {PLENTY_OF_FILES}",
    )
