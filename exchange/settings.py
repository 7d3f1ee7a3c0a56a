"""The settings of a run: one frozen value that refuses nonsense at birth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from exchange.allowed import BadSetting, between, one_of, whole
from exchange.instances import MAX_PAIRS, named
from exchange.workload import (
    MAX_PRICE,
    USUAL_PRICES,
    Arrivals,
    check_arrivals,
    check_prices,
    check_tape,
    settled_prices,
    settled_speed,
    spin_us,
)

POLICIES = {"price-time": 1, "exact-price": 2}
"""Matching policies, each with its number in a hello."""
ROLES = ("gateway", "engine", "reporter")
NAGLE_ROLES = (*ROLES, "broker")
"""The roles that may run with Nagle's algorithm on, which is TCP_NODELAY off. Only some transports have a broker."""
TOPOLOGIES = ("duplex", "simplex")
"""Whether orders and answers share one connection, or each have one."""

PRIORITIES = ("normal", "real-time")
"""How the kernel schedules gateway, engine and broker: among other processes, or before all of them."""

SYNCS = ("batch", "always", "none")
"""When an input journal is synced to the disk, as matching_engine/recovering/journal.py describes it."""

MAX_ORDERS = 2**32 - 1
MAX_RATE_PER_S = 100_000_000
MAX_PACKING = 1_000
DEFAULT_WINDOW = 16_384
"""Most unanswered orders in flight with `--rate max`, by default."""

NUMBERS: tuple[tuple[str, Callable[[str, object, int, int], None], Any, Any], ...] = (
    ("orders_per_s", between, 0.001, MAX_RATE_PER_S),
    ("orders", whole, 1, MAX_ORDERS),
    ("duration_s", between, 0.001, 10**7),
    ("window", whole, 1, MAX_ORDERS),
    ("seed", whole, 0, 2**64 - 1),
    ("max_price", whole, 1, MAX_PRICE),
    ("sampling_interval", whole, 1, MAX_ORDERS),
    ("packing", whole, 1, MAX_PACKING),
    ("pairs", whole, 1, MAX_PAIRS),
    ("warm_up_s", between, 0, 10**7),
    ("timeout_s", between, 0.1, 10**6),
)
"""Numeric settings: whether the value must be whole, the lowest and the highest value."""
OPTIONAL_NUMBERS = ("orders_per_s", "orders", "duration_s", "window")
"""Settings of NUMBERS that may be None."""

TRANSPORT_SETTINGS = ("amqp_client", "delivery")
"""Settings that only some transports have. Each transport declares their words, and launching/ checks them."""

WORDS = {"topology": TOPOLOGIES, "priority": PRIORITIES, "policy": tuple(POLICIES), "sync": SYNCS}
"""Settings that are one of these words."""
OPTIONAL_TEXTS = {
    **dict.fromkeys(TRANSPORT_SETTINGS, "a word of the transport's, or None"),
    "journal": "a folder, or None",
    "secure": "a folder of keys, or None",
}
"""Settings that may be None, else text, and what an error says of them."""
SWITCHES = ("record", "capture", "recover", "standby", "insecure")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Settings of a run, as run.json's `settings` has them. BadSetting if a value is not allowed."""

    transport: str = "zeromq"
    amqp_client: str | None = None
    """How AMQP messages get through pika; None where the transport has no such setting, or for its default."""
    delivery: str | None = None
    """The losses that a message survives; None where the transport has no such setting, or for its default."""
    orders_per_s: float | None = 8000.0
    """Offered load of each pair; None: as fast as it goes."""
    arrivals: str = "fixed"
    """The schedule at that rate, as `Arrivals.parse` reads it; without a rate it means nothing."""
    orders: int | None = 80_000
    """Orders of each pair; None where only `duration_s` ends the run."""
    duration_s: float | None = None
    seed: int = 1
    prices: tuple[int, int] = USUAL_PRICES
    """Lowest and highest price of an order, ticks."""
    price_model: str = "uniform"
    """One of PRICE_MODELS."""
    tape: str | None = None
    """A file of orders to replay; None for the orders of the seed."""
    speed: float | None = None
    """How many times faster than recorded, by default 1; None where arrivals are not recorded."""
    sampling_interval: int = 10_000
    policy: str = "price-time"
    max_price: int = 999
    packing: int = 1
    window: int | None = None
    """Most unanswered orders in flight; None where there is no bound."""
    warm_up_s: float = 0.0
    """Start of the run that only analysis leaves out; counts and buckets have everything."""
    timeout_s: float = 10.0
    """Longest wait for a peer, or for an answer."""
    pairs: int = 1
    """Gateways with an engine each; every pair has an order stream of its own."""
    reporters: int = 1
    """Stats reporters, among which the pairs are divided."""
    cpus: Mapping[str, int] = field(default_factory=dict)
    """Processor by role, or by a component's name, as gateway.2."""
    nagle: tuple[str, ...] = ()
    """Roles among NAGLE_ROLES whose TCP sockets run with Nagle's algorithm on."""
    topology: str = "duplex"
    """One of TOPOLOGIES."""
    network: str = "local"
    """The network between the components: loopback, or a profile of docs/network.md."""
    pace: str = "sleep"
    """How a gateway waits for a due time: it sleeps until then, or it spins for the last microseconds, as spin:100."""
    priority: str = "normal"
    """One of PRIORITIES, of gateways, engines, and a broker of our own."""
    record: bool = False
    """Whether to write both streams to files, which `match` replays."""
    journal: str | None = None
    """The folder for the engines' input journals; None for the run's own folder where it recovers, else no journal."""
    sync: str = "batch"
    """When a journal is synced to the disk: one of SYNCS."""
    recover: bool = False
    """Whether a killed engine is started again, and its session goes on."""
    standby: bool = False
    """Whether each engine has a second one, which takes its place; such a run recovers."""
    secure: str | None = None
    """The folder of keys by which all ends know each other, and encrypt; None if nothing is encrypted."""
    insecure: bool = False
    """Whether components may listen beyond loopback without keys."""
    capture: bool = False
    """Whether to run tcpdump between gateway and engine, or at the broker. Latency figures then mean nothing."""

    def __post_init__(self) -> None:
        self._check_numbers()
        self._settle_workload()
        if not isinstance(self.transport, str) or not self.transport:
            raise BadSetting("transport", self.transport, "a scheme, or a URL")
        self._settle_nagle()
        self._check_words()
        object.__setattr__(self, "recover", self.recover or self.standby)
        if self.sync != "batch" and not self.journals:
            raise BadSetting("sync", self.sync, "batch, unless a journal is kept, by recover or journal")
        if not isinstance(self.network, str):
            raise BadSetting("network", self.network, "a profile's name")
        if self.orders is None and self.duration_s is None:
            raise BadSetting("orders", None, "a number of orders, or a duration")
        if self.window is not None and self.window < self.packing:
            raise BadSetting("window", self.window, f"at least the packing, {self.packing}")
        self._check_cpus()

    def _check_words(self) -> None:
        for name, words in WORDS.items():
            one_of(name, getattr(self, name), words)
        for name, allowed in OPTIONAL_TEXTS.items():
            if not isinstance(getattr(self, name), str | None):
                raise BadSetting(name, getattr(self, name), allowed)
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise BadSetting(name, getattr(self, name), "True or False")

    def _check_numbers(self) -> None:
        for name, check, low, high in NUMBERS:
            if getattr(self, name) is not None or name not in OPTIONAL_NUMBERS:
                check(name, getattr(self, name), low, high)
        if self.tape is not None and self.pairs > 1:
            raise BadSetting("pairs", self.pairs, "1, where a tape is replayed: its orders are one pair's")
        whole("reporters", self.reporters, 1, self.pairs)

    def _check_cpus(self) -> None:
        if not isinstance(self.cpus, Mapping):
            raise BadSetting("cpus", self.cpus, "a processor by role")
        several = {"gateway": self.pairs, "engine": self.pairs, "reporter": self.reporters}
        names = {named(role, instance) for role, number in several.items() for instance in range(1, number + 1)}
        for name, cpu in self.cpus.items():
            one_of("cpus", name, names, f"one of {', '.join(ROLES)}, or one of several, as gateway.2")
            whole("cpus", cpu, 0, 4095)

    def _settle_workload(self) -> None:
        check_arrivals(self.arrivals, self.orders_per_s, self.tape)
        spin_us(self.pace)
        check_prices(self.prices)
        check_tape(self.tape, self.prices, self.price_model)
        object.__setattr__(self, "prices", settled_prices(self.prices, self.price_model, self.max_price))
        object.__setattr__(self, "speed", settled_speed(self.speed, self.arrivals))

    def _settle_nagle(self) -> None:
        """Put the roles in the order of NAGLE_ROLES."""
        if not isinstance(self.nagle, tuple | list):
            raise BadSetting("nagle", self.nagle, f"roles of {', '.join(NAGLE_ROLES)}")
        for role in self.nagle:
            one_of("nagle", role, NAGLE_ROLES, f"{', '.join(ROLES)}, and broker where there is one")
        object.__setattr__(self, "nagle", tuple(role for role in NAGLE_ROLES if role in self.nagle))

    @property
    def journals(self) -> bool:
        """Whether the engines keep journals, so that sessions can be resumed."""
        return self.recover or self.journal is not None

    @property
    def spin_ns(self) -> int:
        """How long a gateway spins before a due time."""
        return spin_us(self.pace) * 1_000

    @property
    def arriving(self) -> Arrivals:
        """`arrivals`, parsed."""
        return Arrivals.parse(self.arrivals)

    @property
    def mean_orders_per_s(self) -> float | None:
        """Offered load of each pair over the whole run; None: as fast as it goes."""
        return None if self.orders_per_s is None else self.orders_per_s * self.arriving.mean_share

    @property
    def order_limit(self) -> int:
        """Orders after which the gateway stops, if the clock does not stop it before."""
        limit, offered = MAX_ORDERS if self.orders is None else self.orders, self.mean_orders_per_s
        if self.duration_s is not None and offered is not None:
            limit = min(limit, max(1, math.ceil(round(self.duration_s * offered, 6))))
        return limit

    @property
    def length_s(self) -> float | None:
        """Time that it takes to offer the orders; None where only the run shows it."""
        offered = self.mean_orders_per_s
        return self.duration_s if offered is None else self.order_limit / offered

    def as_dict(self) -> dict[str, Any]:
        """The `settings` of run.json."""
        return {**asdict(self), "prices": list(self.prices), "nagle": list(self.nagle)}
