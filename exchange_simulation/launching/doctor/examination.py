"""Examines everything that a measurement needs on this machine, and changes nothing.

Only the items `quiet` and `wake-ups` take time, the seconds that the user chose.
"""

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
from exchange_simulation.launching.doctor.quiet import measure_quiet_and_wake_ups
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.kernel_cache import VARIABLE, settled_folder
from exchange_simulation.launching.priority import at_priority, processors_of
from exchange_simulation.launching.record.machine import has_proc, host_facts, text_of
from transports.base import TransportError
from transports.registry import built_in

LEAST_PROCESSORS = 2
PLENTY_OF_PROCESSORS = 4
EXACT_CLOCKS = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"}
"""Clocks that a process reads without a call of the kernel."""
CLOCK_READS = 10_000
GOOD_CLOCK_READ_NS = 300.0
PLENTY_OF_FILES = 4096
LEAST_FILES = 256
PLENTY_OF_MEMORY = 4 << 30
LEAST_MEMORY = 1 << 30
PLENTY_OF_DISK = 2 << 30
LEAST_DISK = 100 << 20
NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"}


def examine(seconds: float, results: Path) -> list[Item]:
    """Return all items, in the order in which they are shown. `results` is the folder whose disk is examined."""
    host = host_facts()
    quiet, wake_ups = measure_quiet_and_wake_ups(seconds)
    usable_processors = len(processors_of()) or host["cores"]
    return [
        processors(usable_processors, host),
        frequency(host),
        quiet,
        wake_ups,
        clock(host),
        priority(),
        network(),
        capture(),
        *brokers(),
        java(),
        kernels(),
        memory(),
        open_files(),
        disk(results),
    ]


def processors(usable: int, host: dict[str, object]) -> Item:
    """Return whether each busy process can have its own processor."""
    quota = host.get("cpu_quota_cores")
    available = float(usable)
    if isinstance(quota, float):
        available = min(available, quota)
    facts = [f"{counted(usable, 'processors')} of {host['cores']}, {host['cpu']}"]
    if isinstance(quota, float):
        facts.append(f"quota {quota:g} of them")
    if host.get("smt"):
        facts.append("two threads a core")
    if host.get("numa_nodes", 1) != 1:
        facts.append(f"{host['numa_nodes']} NUMA nodes")
    if "hypervisor" in host:
        facts.append(f"a guest of {host['hypervisor']}")
    observation = ", ".join(facts)
    figures = {"usable": usable, "quota_cores": quota, "cores": host["cores"]}
    if available >= PLENTY_OF_PROCESSORS:
        return Item(name="processors", verdict="good", found=observation, figures=figures)
    advice = "gateway, engine, reporter and a broker share them: compare ratios, and take 4 or more for absolute times"
    if isinstance(quota, float) and quota < usable:
        advice = f"the control group's quota throttles a run: raise it (docker run --cpus), or give {usable} whole ones"
    return Item(
        name="processors",
        verdict="no" if available < LEAST_PROCESSORS else "care",
        found=observation,
        figures=figures,
        why=f"{available:g} {'processor' if available == 1 else 'processors'} for 3 or 4 busy processes",
        advice=advice,
    )


def frequency(host: dict[str, object]) -> Item:
    """Return whether processors keep their frequency."""
    governor = host.get("governor")
    turbo = host.get("turbo")
    facts = []
    if governor:
        facts.append(f"governor {governor}")
    if turbo is not None:
        facts.append(f"turbo {'on' if turbo else 'off'}")
    observation = ", ".join(facts)
    figures = {"governor": governor, "turbo": turbo}
    if governor is None:
        words = observation or "not told here; the hypervisor's host decides"
        return Item(name="frequency", verdict="unknown", found=words, figures=figures)
    if governor == "performance":
        return Item(name="frequency", verdict="good", found=observation, figures=figures)
    return Item(
        name="frequency",
        verdict="care",
        found=observation,
        figures=figures,
        why=f"the governor is {governor}",
        advice="sudo cpupower frequency-set -g performance",
    )


def clock(host: dict[str, object]) -> Item:
    """Return the cost of reading the clock, which a run does three times for each order."""
    source = host.get("clocksource")
    read_ns = timeit(time.monotonic_ns, number=CLOCK_READS) / CLOCK_READS * 1e9
    observation = f"{source or 'clocksource not told'}, {read_ns:.0f} ns a reading"
    figures = {"clocksource": source, "read_ns": read_ns}
    if source in EXACT_CLOCKS or (source is None and read_ns <= GOOD_CLOCK_READ_NS):
        return Item(name="clock", verdict="good", found=observation, figures=figures)
    return Item(
        name="clock",
        verdict="care",
        found=observation,
        figures=figures,
        why=f"the clock is {source or 'slow'}",
        advice="boot with tsc=reliable if the processor's clock is stable, or measure elsewhere",
    )


def priority() -> Item:
    """Return whether `--priority real-time` is permitted."""
    try:
        with at_priority("real-time"):
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
    """Return whether `--network` can put components into namespaces, with a rate and a delay."""
    from exchange_simulation.launching.network.probe import probe

    findings = probe().findings
    works = [name for name, finding in findings.items() if finding.works]
    figures = {name: finding.works for name, finding in findings.items()}
    figures["tun"] = (Path("/dev/net/tun")).exists()
    observation = f"works: {', '.join(works)}" if works else "nothing of it works"
    missing = [name for name in ("tools", "namespace", "veth", "bridge") if name not in works]
    if "netem" not in works and "packet socket" not in works:
        missing.append("netem")
    if not missing:
        if "netem" not in works:
            observation += "; without netem, a process of ours forwards the frames"
        return Item(name="network", verdict="good", found=observation, figures=figures)
    lacking = findings[missing[0]]
    return Item(
        name="network",
        verdict="no",
        found=f"{observation}; {lacking.name}: {lacking.reason}",
        figures=figures,
        why=f"no {lacking.name}",
        advice=lacking.remedy,
    )


def capture() -> Item:
    """Return whether `--capture` has tcpdump, and the right to use it."""
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
    """Yield an item for each program from which a transport starts its broker."""
    for scheme, transport in built_in().items():
        if transport.broker is None:
            continue
        name = "broker" if scheme == "amqp" else f"broker {scheme}"
        try:
            yield Item(name=name, verdict="good", found=transport.broker().installed())
        except TransportError as error:
            # The sentence is "problem: advice". It is all problem, without a colon, if there is no advice.
            problem, _, advice = str(error).partition(": ")
            yield Item(name=name, verdict="no", found=problem, why="it is not installed", advice=advice)


def java() -> Item:
    """Return whether Spark and a Java for it are installed."""
    try:
        from spark.errors import SparkUnavailableError
        from spark.sessions.java import find_java
    except ModuleNotFoundError:
        advice = "pip install 'exchange-simulation[spark]'"
        return Item(name="java", verdict="no", found="no Spark is installed", why="no Spark", advice=advice)
    try:
        runtime = find_java()
    except SparkUnavailableError as error:
        # The sentence is "problems: advice". The problems name paths, which may have colons; the advice has none.
        problem, _, advice = str(error).rpartition(": ")
        return Item(name="java", verdict="no", found=problem, why="no Java for Spark", advice=advice)
    return Item(name="java", verdict="good", found=f"Java {runtime.version} at {runtime.executable}")


def kernels() -> Item:
    """Return in which folder compiled kernels are kept."""
    folder = settled_folder()
    if folder.is_lasting and not folder.problem:
        return Item(name="kernels", verdict="good", found=f"kept in {folder.description}")
    found = f"kept in {folder.description}" if folder.is_lasting else "kept for one command"
    return Item(
        name="kernels",
        verdict="care",
        found=f"{found}: {folder.problem}",
        why="kernels are compiled anew by each command" if not folder.is_lasting else "",
        advice=f"name a folder that can be written to, with {VARIABLE}",
    )


def memory() -> Item:
    """Return whether there is enough free memory."""
    if not has_proc():
        return Item(name="memory", verdict="unknown", found="not told here: /proc is hidden")
    free = psutil.virtual_memory().available
    return _enough("memory", free, PLENTY_OF_MEMORY, LEAST_MEMORY, "available", "a run needs 0.4 GiB, Spark 1.5 more")


def disk(results: Path) -> Item:
    """Return whether the disk of the results folder is local, writable and has enough room."""
    try:
        folder = _existing_folder(results.absolute())
    except OSError as error:
        return Item(
            name="disk",
            verdict="no",
            found=f"{results}: {error.strerror}",
            why=f"{results} cannot be used",
            advice="give another folder with --results",
        )
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return Item(
            name="disk",
            verdict="no",
            found=f"{folder} cannot be written to",
            why=f"{folder} takes no files",
            advice="give another folder with --results",
        )
    kind = _file_system(folder)
    if kind in NETWORK_FILE_SYSTEMS:
        return Item(
            name="disk",
            verdict="care",
            found=f"{folder} is on {kind}",
            why=f"results go to {kind}",
            advice="give a local folder with --results",
        )
    free = psutil.disk_usage(str(folder)).free
    place = f"free at {folder} ({kind})" if kind else f"free at {folder}"
    return _enough(
        "disk",
        free,
        PLENTY_OF_DISK,
        LEAST_DISK,
        place,
        "a million orders take about 2 MiB, or 40 MiB if they are recorded",
    )


def _existing_folder(folder: Path) -> Path:
    """Return the folder, or if it does not exist yet, the nearest folder above it that exists. OSError."""
    while not folder.exists():
        folder = folder.parent
    return folder


def _file_system(folder: Path) -> str:
    """Return the type of the file system that holds a folder; empty if the system does not say."""
    longest_mount_point = ""
    type_of_longest = ""
    for line in (text_of("proc/self/mounts") or "").splitlines():
        words = line.split()
        if len(words) < 3:
            continue
        _, mount_point, file_system = words[:3]
        is_longer = len(mount_point) >= len(longest_mount_point)
        if is_longer and folder.is_relative_to(mount_point):
            longest_mount_point = mount_point
            type_of_longest = file_system
    return type_of_longest


def _enough(name: str, free: int, plenty: int, least: int, place: str, advice: str) -> Item:
    """Return an item about free bytes; `place` ends the observation. For example: available"""
    observation = f"{free / 2**30:,.1f} GiB {place}"
    figures = {"free_bytes": free}
    if free >= plenty:
        return Item(name=name, verdict="good", found=observation, figures=figures)
    return Item(
        name=name,
        verdict="care" if free >= least else "no",
        found=observation,
        figures=figures,
        why=f"little {name}",
        advice=advice,
    )


def open_files() -> Item:
    """Return whether a process may open enough files."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_unlimited = soft_limit == resource.RLIM_INFINITY
    observation = "any number a process" if is_unlimited else f"{soft_limit:,} a process"
    figures = {"soft": soft_limit, "hard": hard_limit}
    if is_unlimited or soft_limit >= LEAST_FILES:
        is_plenty = is_unlimited or soft_limit >= PLENTY_OF_FILES
        advice = "" if is_plenty else f"benchmarks with hundreds of roles: ulimit -n {PLENTY_OF_FILES}"
        return Item(name="open files", verdict="good", found=observation, figures=figures, advice=advice)
    return Item(
        name="open files",
        verdict="care",
        found=observation,
        figures=figures,
        why="few open files",
        advice=f"ulimit -n {PLENTY_OF_FILES}",
    )
