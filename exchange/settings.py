"""The settings of a run: one frozen value, which raises BadSetting for values that are not allowed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from exchange.allowed import BadSetting, one_of, whole
from exchange.declared import (
    COUNTS,
    ENGINE,
    GATEWAY,
    LOAD,
    REPORTER,
    RUN,
    TERMS,
    CheckedLater,
    NumberBetween,
    OneOfWords,
    Switch,
    Text,
    WholeNumber,
    declared_settings,
    setting,
)
from exchange.instances import MAX_PAIRS, named
from exchange.order_mix import OrderMix
from exchange.workload import (
    MAX_PRICE,
    PRICE_MODELS,
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
"""How the kernel schedules gateway, engine and broker: like other processes, or before all of them."""

SYNCS = ("batch", "always", "none")
"""When an input journal is synced to the disk, as matching_engine/recovering/journal.py describes it."""

MAX_ORDERS = 2**32 - 1
MAX_RATE_PER_S = 100_000_000
MAX_PACKING = 1_000
DEFAULT_WINDOW = 16_384
"""The most unanswered orders with `--rate max`, by default."""

TRANSPORT_SETTINGS = ("amqp_client", "delivery")
"""Settings that only some transports have. Each transport declares their words, and launching/ checks them."""


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Settings of a run, as run.json's `settings` has them. BadSetting if a value is not allowed.

    A field's declaration is also its option: `exchange run` and the components have it from here.
    """

    transport: str = setting(
        "zeromq",
        Text("a scheme, or a URL", least=1),
        "--transport",
        RUN,
        "Transport",
        "What carries the messages: zeromq, amqp, tcp, memory, ...; ports, and a broker, are found unless told where.",
        metavar="SCHEME[://PLACE]",
    )
    amqp_client: str | None = setting(
        None,
        Text("a word of the transport's, or None"),
        "--amqp-client",
        RUN,
        "Transport",
        "Over AMQP: how messages get through pika.  [default: compiled]",
    )
    """None where the transport has no such setting, or for its default."""
    delivery: str | None = setting(
        None,
        Text("a word of the transport's, or None"),
        "--delivery",
        RUN,
        "Transport",
        "Over AMQP: what a message survives.  [default: lossy]",
    )
    """The losses that a message survives; None where the transport has no such setting, or for its default."""
    orders_per_s: float | None = setting(
        8000.0,
        NumberBetween(0.001, MAX_RATE_PER_S),
        "--rate",
        LOAD,
        "Load",
        "Offered load, orders a second, or max.",
        may_be_none=True,
    )
    """Offered load of each pair; None: as fast as it goes."""
    arrivals: str = setting(
        "fixed",
        CheckedLater(),
        "--arrivals",
        LOAD,
        "Load",
        "When orders arrive: fixed, poisson, bursts:100, ramp:0.1..1.",
        metavar="WORD",
    )
    """The schedule at that rate, as `Arrivals.parse` reads it; without a rate it means nothing."""
    orders: int | None = setting(
        80_000,
        WholeNumber(1, MAX_ORDERS),
        "--orders",
        LOAD,
        "Load",
        "Their number.  [default: a tape's, what --duration allows, 80000]",
        may_be_none=True,
        is_default_typed=False,
    )
    """Orders of each pair; None where only `duration_s` ends the run."""
    duration_s: float | None = setting(
        None,
        NumberBetween(0.001, 10**7),
        "--duration",
        LOAD,
        "Load",
        "Stop offering after so many seconds.",
        other_name="--seconds",
    )
    seed: int = setting(1, WholeNumber(0, 2**64 - 1), "--seed", LOAD, "Load", "The same seed, the same orders.")
    prices: tuple[int, int] = setting(
        USUAL_PRICES, CheckedLater(), "--prices", LOAD, "Load", "Order prices, lowest and highest, ticks."
    )
    price_model: str = setting(
        "uniform",
        OneOfWords(tuple(PRICE_MODELS)),
        "--price-model",
        LOAD,
        "Load",
        "Uniform, around a mid that moves, uniform over 1..max price, or bids low and asks high.",
    )
    mix: str | None = setting(
        None,
        CheckedLater(),
        "--mix",
        TERMS,
        "Load",
        "Order types, cancels and replaces among the orders, as limit=60,cancel=30,replace=10.  [default: none]",
        metavar="KIND=PERCENT,...",
    )
    """The percentages of a mix, or its name, as `OrderMix.parse` reads them; None: limit orders alone."""
    tape: str | None = setting(None, CheckedLater(), "--tape", LOAD, "Load", "Replay the orders in this file.")
    """A file of orders to replay; None for the orders of the seed."""
    speed: float | None = setting(
        None,
        NumberBetween(0.001, 1_000_000),
        "--speed",
        LOAD,
        "Load",
        "How many times faster than the tape's own due times.  [default: 1]",
    )
    """None where arrivals are not recorded."""
    sampling_interval: int = setting(
        10_000,
        WholeNumber(1, MAX_ORDERS),
        "--sampling-interval",
        TERMS,
        "Measuring",
        "Sample every so many orders.",
    )
    policy: str = setting(
        "price-time",
        OneOfWords(tuple(POLICIES)),
        "--policy",
        TERMS,
        "Engine",
        "What an incoming order trades with.",
    )
    max_price: int = setting(
        999,
        WholeNumber(1, MAX_PRICE),
        "--max-price",
        TERMS,
        "Engine",
        "Highest price the book accepts, ticks; at most 65534.",
    )
    packing: int = setting(
        1, WholeNumber(1, MAX_PACKING), "--packing", TERMS, "Transport", "Orders (and answers to them) in one message."
    )
    window: int | None = setting(
        None,
        WholeNumber(1, MAX_ORDERS),
        "--window",
        LOAD,
        "Load",
        f"Most unanswered orders in flight.  [default: none; {DEFAULT_WINDOW} at rate max]",
    )
    """None where there is no bound."""
    warm_up_s: float = setting(
        0.0, NumberBetween(0, 10**7), "--warm-up", RUN, "Measuring", "Seconds at the start that no figure counts."
    )
    """Start of the run that only analysis leaves out; counts and buckets have everything."""
    timeout_s: float = setting(
        10.0,
        NumberBetween(0.1, 10**6),
        "--timeout",
        TERMS,
        "Measuring",
        "Longest wait for a peer or an answer, seconds.",
    )
    pairs: int = setting(
        1,
        WholeNumber(1, MAX_PAIRS),
        "--pairs",
        COUNTS,
        "Load",
        "Number of gateways, each with an engine and its own orders; --rate, --orders and --window are each pair's.",
    )
    reporters: int = setting(
        1,
        WholeNumber(1, MAX_PAIRS),
        "--reporters",
        COUNTS,
        "Measuring",
        "Number of stats reporters; pairs go to them in turns.",
    )
    cpus: Mapping[str, int] = setting(
        {},
        CheckedLater(),
        "--cpus",
        RUN,
        "Measuring",
        "Processor of each component, and of a broker that is started here, as gateway=0,engine=1,engine.2=2,broker=3.",
    )
    """Processor by role, or by a component's name, as gateway.2."""
    nagle: tuple[str, ...] = setting(
        (),
        CheckedLater(),
        "--nagle",
        RUN,
        "Transport",
        "Roles with Nagle's algorithm on: gateway, engine, reporter, broker, or all.",
    )
    """Roles among NAGLE_ROLES."""
    topology: str = setting(
        "duplex",
        OneOfWords(TOPOLOGIES),
        "--topology",
        RUN,
        "Transport",
        "Orders and answers on one TCP connection, or on one each.",
    )
    network: str = setting(
        "local",
        Text("a profile's name"),
        "--network",
        RUN,
        "Transport",
        "What joins the components: see exchange network list.",
        metavar="PROFILE",
    )
    """The network between the components: loopback, or a profile of docs/network.md."""
    pace: str = setting(
        "sleep",
        CheckedLater(),
        "--pace",
        LOAD,
        "Load",
        "How the gateway waits for a due time: sleep, or spin:US, awake for the last microseconds, as spin:100. It is "
        "more punctual, and takes more CPU.",
        metavar="WORD",
    )
    priority: str = setting(
        "normal",
        OneOfWords(PRIORITIES),
        "--priority",
        TERMS,
        "Measuring",
        "How the kernel schedules gateway, engine and a broker of ours: real-time goes before all other work, and "
        "needs the right to.",
    )
    record: bool = setting(
        False, Switch(), "--record", LOAD, "Output", "Keep both streams, orders.bin and answers.bin."
    )
    """Whether to write both streams to files, which `match` replays."""
    journal: str | None = setting(
        None,
        Text("a folder, or None"),
        "--journal",
        RUN | ENGINE,
        "Engine",
        "Keep every order in DIR before it is answered.  [default: none; the run's own folder with --recover]",
        metavar="DIR",
    )
    """The folder for the engines' input journals; None for the run's own folder where it recovers, else no journal."""
    sync: str = setting(
        "batch",
        OneOfWords(SYNCS),
        "--sync",
        RUN | ENGINE,
        "Engine",
        "When the journal is synced to the disk: within 10 ms, before every answer, or when the system does.",
    )
    recover: bool = setting(
        False,
        Switch(),
        "--recover",
        LOAD,
        "Engine",
        "Start a killed component again, and go on: no order is lost, and none is answered twice.",
    )
    standby: bool = setting(
        False,
        Switch(),
        "--standby",
        RUN | ENGINE,
        "Engine",
        "A second engine follows the first one's journal, and takes its place once the first is gone.",
    )
    """A run with standbys recovers."""
    secure: str | None = setting(
        None,
        Text("a folder of keys, or None"),
        "--secure",
        RUN | GATEWAY | ENGINE | REPORTER,
        "Transport",
        "Encrypt with the keys in DIR, made by exchange keys, and admit only peers that have them: CURVE, TLS, amqps.  "
        "[default: none]",
        metavar="DIR",
    )
    insecure: bool = setting(
        False,
        Switch(),
        "--insecure",
        RUN | ENGINE | REPORTER,
        "Transport",
        "Listen for other hosts although nothing is encrypted.",
    )
    capture: bool = setting(
        False, Switch(), "--capture", RUN, "Measuring", "Check packet counters by tcpdump, which slows the run."
    )
    """Whether to run tcpdump between gateway and engine, or at the broker. Latency figures then mean nothing."""

    def __post_init__(self) -> None:
        for name, declared in DECLARED.items():
            value = getattr(self, name)
            if value is not None or not declared.may_be_none:
                declared.check.check(name, value)
        self._check_numbers_of_components()
        self._settle_workload()
        self._settle_nagle()
        object.__setattr__(self, "recover", self.recover or self.standby)
        if self.sync != "batch" and not self.journals:
            raise BadSetting("sync", self.sync, "batch, unless a journal is kept, by recover or journal")
        if self.orders is None and self.duration_s is None:
            raise BadSetting("orders", None, "a number of orders, or a duration")
        if self.window is not None and self.window < self.packing:
            raise BadSetting("window", self.window, f"at least the packing, {self.packing}")
        self._check_cpus()

    def _check_numbers_of_components(self) -> None:
        if self.tape is not None and self.pairs > 1:
            raise BadSetting("pairs", self.pairs, "1, where a tape is replayed: its orders are one pair's")
        whole("reporters", self.reporters, 1, self.pairs)

    def _check_cpus(self) -> None:
        if not isinstance(self.cpus, Mapping):
            raise BadSetting("cpus", self.cpus, "a processor by role")
        instances_of_roles = {"gateway": self.pairs, "engine": self.pairs, "reporter": self.reporters}
        names = {"broker"}
        for role, instances in instances_of_roles.items():
            for instance in range(1, instances + 1):
                names.add(named(role, instance))
        for name, cpu in self.cpus.items():
            one_of("cpus", name, names, f"one of {', '.join(NAGLE_ROLES)}, or one of several, as gateway.2")
            whole("cpus", cpu, 0, 4095)

    def _settle_workload(self) -> None:
        check_arrivals(self.arrivals, self.orders_per_s, self.tape)
        spin_us(self.pace)
        check_prices(self.prices)
        check_tape(self.tape, self.prices, self.price_model)
        if self.mix is not None:
            OrderMix.parse(self.mix)
            if self.tape is not None:
                raise BadSetting("mix", self.mix, "none, where a tape is replayed: the orders are the tape's")
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
    def names_orders(self) -> bool:
        """Whether some messages name earlier orders, so that the engine's book must find orders by id."""
        return self.mix is not None and OrderMix.parse(self.mix).names_orders

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
    def offered_orders_per_s(self) -> float | None:
        """Offered load of each pair over the whole run; None: as fast as it goes."""
        return None if self.orders_per_s is None else self.orders_per_s * self.arriving.mean_share

    @property
    def order_limit(self) -> int:
        """Orders after which the gateway stops, if the clock does not stop it before."""
        limit = MAX_ORDERS if self.orders is None else self.orders
        offered = self.offered_orders_per_s
        if self.duration_s is not None and offered is not None:
            limit = min(limit, max(1, math.ceil(round(self.duration_s * offered, 6))))
        return limit

    @property
    def length_s(self) -> float | None:
        """The time that it takes to offer the orders; None if only the run shows this time."""
        offered = self.offered_orders_per_s
        return self.duration_s if offered is None else self.order_limit / offered

    def as_dict(self) -> dict[str, Any]:
        """The `settings` of run.json."""
        return {**asdict(self), "prices": list(self.prices), "nagle": list(self.nagle)}


DECLARED = declared_settings(RunSettings)
"""The declarations of all settings, by field."""
