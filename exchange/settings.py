"""The settings of a run: one frozen value, which raises BadSetting for values that are not allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from exchange.allowed import BadSetting, one_of, whole
from exchange.declared import (
    ENGINE,
    GATEWAY,
    REPORTER,
    RUN,
    RUN_AND_GATEWAY,
    RUN_AND_REPORTER,
    RUN_GATEWAY_AND_ENGINE,
    SUBSCRIBER,
    CheckedLater,
    NumberBetween,
    OneOfWords,
    Switch,
    Text,
    WholeNumber,
    declared_settings,
    setting,
)
from exchange.instances import MAX_ENGINES, MAX_GATEWAYS, MAX_PAIRS, MAX_SUBSCRIBERS, named
from exchange.instruments import MAX_INSTRUMENTS, check_instruments
from exchange.market_ids import HIGHEST_NUMBER, LEAST_OPENING_ID
from exchange.order_mix import OrderMix, check_mix
from exchange.scheduled_load import MAX_ORDERS, ScheduledLoad
from exchange.workload import (
    MAX_PRICE,
    PRICE_MODELS,
    USUAL_PRICES,
    Arrivals,
    check_arrivals,
    check_pace,
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
PLACED_ROLES = (*ROLES, "subscriber", "broker")
"""The roles whose processes may be placed on a processor."""
TOPOLOGIES = ("duplex", "simplex")
"""Whether orders and answers share one connection, or each have one."""

PRIORITIES = ("normal", "real-time")
"""How the kernel schedules gateway, engine and broker: like other processes, or before all of them."""

SLOW_SUBSCRIBER_RULES = ("drop", "wait", "conflate")
"""What happens if a subscriber has no room for market data. Each transport declares the rules that it can keep."""

SYNCS = ("batch", "always", "none")
"""When an input journal is synced to the disk, as matching_engine/recovering/journal.py describes it."""

MIN_RATE_PER_S = 0.001
MAX_RATE_PER_S = 100_000_000
MAX_PACKING = 1_000
LONGEST_WORK_S = 1.0
DEFAULT_WINDOW = 16_384
"""The most unanswered orders with `--rate max`, by default."""

DECIDE_ANSWERS = ("policy", "max_price", "instruments", "engines", "opening")
"""Settings on which the answers to equal orders depend: runs that differ in one of them rightly have other answers.

The policy says what an incoming order trades with. A book rejects prices above its highest. An instrument beyond the
last has no book. The answers of several engines have a checksum for each engine. The orders of an opening tape trade
with those of the run. Other settings change when messages travel, and not their content, except for `gateways`: an
engine takes the orders of several gateways as they come, so its answers differ between runs of equal settings.
"""
TRANSPORT_SETTINGS = ("amqp_client", "delivery")
"""Settings that only some transports have. Each transport declares their words, and launching/ checks them."""


class Obstacle(NamedTuple):
    """An option that a setting does not go together with."""

    option: str
    is_given: bool
    reason: str
    """Why the two do not go together."""


def _refuse_together(setting_name: str, value: object, allowed: str, *obstacles: Obstacle) -> None:
    """BadSetting if one of the options is given. `allowed` is the setting's value that goes together with them."""
    for obstacle in obstacles:
        if obstacle.is_given:
            raise BadSetting(setting_name, value, f"{allowed} with {obstacle.option}: {obstacle.reason}")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Settings of a run, as run.json's `settings` has them. BadSetting if a value is not allowed.

    A field's declaration is also its option: `exchange run` and the components have it from here.
    """

    transport: str = setting(
        default="zeromq",
        check=Text("a scheme, or a URL", least=1),
        option="--transport",
        commands=RUN,
        heading="Transport",
        help="What carries the messages: zeromq, amqp, tcp, memory, ... Without PLACE, the run finds free ports, or a "
        "broker, itself.",
        metavar="SCHEME[://PLACE]",
    )
    amqp_client: str | None = setting(
        default=None,
        check=Text("a word of the transport's, or None"),
        option="--amqp-client",
        commands=RUN,
        heading="Transport",
        help="Over AMQP: our compiled path through the library pika, or pika's own calls.  [default: compiled]",
    )
    """None if the transport has no such setting, or for the transport's default."""
    delivery: str | None = setting(
        default=None,
        check=Text("a word of the transport's, or None"),
        option="--delivery",
        commands=RUN,
        heading="Transport",
        help="Over AMQP: what a message survives.  [default: lossy]",
    )
    """The losses that a message survives; None if the transport has no such setting, or for the transport's default."""
    orders_per_s: float | None = setting(
        default=8000.0,
        check=NumberBetween(MIN_RATE_PER_S, MAX_RATE_PER_S),
        option="--rate",
        commands=RUN_AND_GATEWAY,
        heading="Load",
        help="Offered load, orders a second, or max; or rates over time, as 1000@10s,8000@10s,1000 or 1000..8000@20s.",
        may_be_none=True,
    )
    """Offered load of each pair; None: as fast as it goes."""
    arrivals: str = setting(
        default="fixed",
        check=CheckedLater(),
        option="--arrivals",
        commands=RUN_AND_GATEWAY,
        heading="Load",
        help="When orders arrive: fixed, poisson, bursts:100, ramp:0.1..1, steps:0.1@10,1@10.",
        metavar="WORD",
    )
    """The schedule at that rate, as `Arrivals.parse` reads it; without a rate it means nothing."""
    orders: int | None = setting(
        default=80_000,
        check=WholeNumber(1, MAX_ORDERS),
        option="--orders",
        commands=RUN_AND_GATEWAY,
        heading="Load",
        help="Number of orders.  [default: the tape's; else what --duration allows; else 80000]",
        may_be_none=True,
        has_fixed_default=False,
    )
    """Orders of each pair; None where only `duration_s` ends the run."""
    duration_s: float | None = setting(
        default=None,
        check=NumberBetween(0.001, 10**7),
        option="--duration",
        commands=RUN_AND_GATEWAY,
        heading="Load",
        help="Offer orders for this many seconds.",
        other_name="--seconds",
    )
    seed: int = setting(
        default=1,
        check=WholeNumber(0, 2**64 - 1),
        option="--seed",
        commands=RUN_AND_GATEWAY,
        heading="Load",
        help="The orders are made from this number: the same seed makes the same orders.",
    )
    prices: tuple[int, int] = setting(
        default=USUAL_PRICES,
        check=CheckedLater(),
        option="--prices",
        commands=RUN_AND_GATEWAY,
        heading="Load",
        help="Order prices, lowest and highest, ticks.",
    )
    price_model: str = setting(
        default="uniform",
        check=OneOfWords(tuple(PRICE_MODELS)),
        option="--price-model",
        commands=RUN_AND_GATEWAY,
        heading="Load",
        help="uniform: evenly; normal: around a mid that moves; wide: evenly over 1..max price; two-sided: bids low, "
        "asks high.",
    )
    mix: str | None = setting(
        default=None,
        check=CheckedLater(),
        option="--mix",
        commands=RUN_GATEWAY_AND_ENGINE,
        heading="Load",
        help="Order types, cancels and replaces among the orders, as limit=60,cancel=30,replace=10.  [default: none]",
        metavar="KIND=PERCENT,...",
    )
    """The percentages of a mix, or its name, as `OrderMix.parse` reads them; None: limit orders alone.

    With a tape, these are the tape's own.
    """
    tape: str | None = setting(
        default=None,
        check=CheckedLater(),
        option="--tape",
        commands=RUN_AND_GATEWAY,
        heading="Load",
        help="Replay the orders in this file.",
    )
    """A file of orders to replay; None for the orders of the seed."""
    speed: float | None = setting(
        default=None,
        check=NumberBetween(0.001, 1_000_000),
        option="--speed",
        commands=RUN_AND_GATEWAY,
        heading="Load",
        help="How many times faster than the tape's own due times.  [default: 1]",
    )
    """None unless the arrivals are those that a tape has recorded."""
    sampling_interval: int = setting(
        default=10_000,
        check=WholeNumber(1, MAX_ORDERS),
        option="--sampling-interval",
        commands=RUN_GATEWAY_AND_ENGINE,
        heading="Measuring",
        help="One order in this many is a sample: its times go to the stats reporter, for Spark.",
    )
    policy: str = setting(
        default="price-time",
        check=OneOfWords(tuple(POLICIES)),
        option="--policy",
        commands=RUN_GATEWAY_AND_ENGINE | SUBSCRIBER,
        heading="Engine",
        help="price-time: an order trades at its own price or a better one; exact-price: at its own price only.",
    )
    max_price: int = setting(
        default=999,
        check=WholeNumber(1, MAX_PRICE),
        option="--max-price",
        commands=RUN_GATEWAY_AND_ENGINE | SUBSCRIBER,
        heading="Engine",
        help="Highest price the book accepts, ticks; at most 65534.",
    )
    packing: int = setting(
        default=1,
        check=WholeNumber(1, MAX_PACKING),
        option="--packing",
        commands=RUN_GATEWAY_AND_ENGINE,
        heading="Transport",
        help="Orders (and answers to them) in one message.",
    )
    window: int | None = setting(
        default=None,
        check=WholeNumber(1, MAX_ORDERS),
        option="--window",
        commands=RUN_AND_GATEWAY,
        heading="Load",
        help=f"Most unanswered orders in flight.  [default: none; {DEFAULT_WINDOW} at rate max]",
    )
    """None if the number of unanswered orders has no limit."""
    warm_up_s: float = setting(
        default=0.0,
        check=NumberBetween(0, 10**7),
        option="--warm-up",
        commands=RUN,
        heading="Measuring",
        help="Seconds at the start that no figure counts.",
    )
    """The first seconds, which analysis leaves out. They stay in counts and buckets."""
    timeout_s: float = setting(
        default=10.0,
        check=NumberBetween(0.1, 10**6),
        option="--timeout",
        commands=RUN_GATEWAY_AND_ENGINE | SUBSCRIBER,
        heading="Measuring",
        help="Longest wait for a peer or an answer, seconds.",
    )
    pairs: int = setting(
        default=1,
        check=WholeNumber(1, MAX_PAIRS),
        option="--pairs",
        commands=RUN_AND_REPORTER,
        heading="Load",
        help="Number of gateways, each with an engine and its own orders; --rate, --orders and --window are each "
        "pair's.",
    )
    gateways: int = setting(
        default=1,
        check=WholeNumber(1, MAX_GATEWAYS),
        option="--gateways",
        commands=RUN_GATEWAY_AND_ENGINE | REPORTER,
        heading="Load",
        help="Number of gateways at one engine; they share --rate, --orders and --window.",
    )
    instruments: int = setting(
        default=1,
        check=WholeNumber(1, MAX_INSTRUMENTS),
        option="--instruments",
        commands=RUN_GATEWAY_AND_ENGINE | SUBSCRIBER,
        heading="Load",
        help="Number of instruments of an engine, each with a book; orders choose them by Zipf's law.",
    )
    quotes_to: str = setting(
        default="all",
        check=OneOfWords(("all", "none")),
        option="--quotes-to",
        commands=RUN | ENGINE,
        heading="Engine",
        help="With --gateways: each quote goes to all gateways, or to none.",
    )
    work_s: float = setting(
        default=0.0,
        check=NumberBetween(0, LONGEST_WORK_S),
        option="--work",
        commands=RUN | ENGINE,
        heading="Engine",
        help="How long the engine computes on each order before it answers, as 200us: a slow consumer.",
        metavar="TIME",
    )
    engines: int = setting(
        default=1,
        check=WholeNumber(1, MAX_ENGINES),
        option="--engines",
        commands=RUN_GATEWAY_AND_ENGINE | REPORTER | SUBSCRIBER,
        heading="Engine",
        help="Number of engines, among which the instruments are shared out; each gateway is joined to each engine.",
    )
    reporters: int = setting(
        default=1,
        check=WholeNumber(1, MAX_PAIRS),
        option="--reporters",
        commands=RUN_AND_REPORTER,
        heading="Measuring",
        help="Number of stats reporters, among which the pairs are shared out.",
    )
    cpus: Mapping[str, int] = setting(
        default={},
        check=CheckedLater(),
        option="--cpus",
        commands=RUN,
        heading="Measuring",
        help="Processor of each component, and of a broker that is started here, as "
        "gateway=0,engine=1,engine.2=2,broker=3.",
    )
    """Processor by role, or by a component's name, as gateway.2."""
    nagle: tuple[str, ...] = setting(
        default=(),
        check=CheckedLater(),
        option="--nagle",
        commands=RUN,
        heading="Transport",
        help="Roles with Nagle's algorithm on: gateway, engine, reporter, broker, or all.",
    )
    """Roles among NAGLE_ROLES."""
    topology: str = setting(
        default="duplex",
        check=OneOfWords(TOPOLOGIES),
        option="--topology",
        commands=RUN,
        heading="Transport",
        help="duplex: one TCP connection for orders and answers; simplex: one for each.",
    )
    network: str = setting(
        default="local",
        check=Text("a profile's name"),
        option="--network",
        commands=RUN,
        heading="Transport",
        help="The network between the components: local, or an emulated one that exchange network list names.",
        metavar="PROFILE",
    )
    """The network between the components: loopback, or a profile of docs/network.md."""
    hosts: str | None = setting(
        default=None,
        check=Text("a file, or None"),
        option="--hosts",
        commands=RUN,
        heading="Transport",
        help="Run components on other hosts: the file says for each how it is reached, as ssh engine1.",
        metavar="FILE",
    )
    """The file that names the hosts of the components; None for this host."""
    pace: str = setting(
        default="sleep",
        check=CheckedLater(),
        option="--pace",
        commands=RUN_AND_GATEWAY,
        heading="Load",
        help="How the gateway waits for a due time: sleep, or spin:US, awake for the last microseconds, as spin:100. "
        "Spinning is more punctual, and takes more CPU.",
        metavar="WORD",
    )
    priority: str = setting(
        default="normal",
        check=OneOfWords(PRIORITIES),
        option="--priority",
        commands=RUN_GATEWAY_AND_ENGINE | SUBSCRIBER,
        heading="Measuring",
        help="How the kernel schedules gateway, engine and a broker that the run starts: real-time goes before all "
        "other work, and must be permitted.",
    )
    record: bool = setting(
        default=False,
        check=Switch(),
        option="--record",
        commands=RUN_AND_GATEWAY,
        heading="Output",
        help="Keep both streams, orders.bin and answers.bin.",
    )
    """Whether to write both streams to files, which `match` replays."""
    subscribers: int = setting(
        default=0,
        check=WholeNumber(0, MAX_SUBSCRIBERS),
        option="--subscribers",
        commands=RUN | ENGINE,
        heading="Engine",
        help="Number of subscribers, to each of which the engine publishes trades and quotes.",
    )
    depth: bool = setting(
        default=False,
        check=Switch(),
        option="--depth",
        commands=RUN | ENGINE,
        heading="Engine",
        help="Publish the ten best price levels of each side too.",
    )
    slow_subscriber: str | None = setting(
        default=None,
        check=OneOfWords(SLOW_SUBSCRIBER_RULES),
        option="--slow-subscriber",
        commands=RUN | ENGINE | SUBSCRIBER,
        heading="Engine",
        help="If a subscriber has no room: drop what comes, wait for it, or conflate: drop, then send it a snapshot.  "
        "[default: the transport's]",
    )
    """None without subscribers."""
    journal: str | None = setting(
        default=None,
        check=Text("a folder, or None"),
        option="--journal",
        commands=RUN | ENGINE,
        heading="Engine",
        help="Keep every order in DIR before it is answered.  [default: none; the run's own folder with --recover]",
        metavar="DIR",
    )
    """The folder for the engines' input journals.

    None for the run's own folder if the run recovers; otherwise None means that no journal is kept.
    """
    opening: str | None = setting(
        default=None,
        check=Text("a tape, or None"),
        option="--opening",
        commands=RUN | ENGINE,
        heading="Engine",
        help="Put the orders of this tape into the book before the first order of the run.",
        metavar="FILE",
    )
    """The tape whose orders the book has before the run; None for an empty book."""
    sync: str = setting(
        default="batch",
        check=OneOfWords(SYNCS),
        option="--sync",
        commands=RUN | ENGINE,
        heading="Engine",
        help="When the journal is synced to the disk: within 10 ms, before every answer, or when the system does.",
    )
    recover: bool = setting(
        default=False,
        check=Switch(),
        option="--recover",
        commands=RUN_AND_GATEWAY,
        heading="Engine",
        help="Start a killed component again, and go on: no order is lost, and none is answered twice.",
    )
    standby: bool = setting(
        default=False,
        check=Switch(),
        option="--standby",
        commands=RUN | ENGINE,
        heading="Engine",
        help="A second engine follows the first one's journal, and takes its place once the first is gone.",
    )
    """A run with standbys recovers."""
    secure: str | None = setting(
        default=None,
        check=Text("a folder of keys, or None"),
        option="--secure",
        commands=RUN | GATEWAY | ENGINE | REPORTER | SUBSCRIBER,
        heading="Transport",
        help="Encrypt with the keys in DIR, made by exchange keys, and admit only peers that have them: CURVE, TLS, "
        "amqps.  [default: none]",
        metavar="DIR",
    )
    insecure: bool = setting(
        default=False,
        check=Switch(),
        option="--insecure",
        commands=RUN | ENGINE | REPORTER,
        heading="Transport",
        help="Listen for other hosts although nothing is encrypted.",
    )
    capture: bool = setting(
        default=False,
        check=Switch(),
        option="--capture",
        commands=RUN,
        heading="Measuring",
        help="Check packet counters by tcpdump, which slows the run.",
    )
    """Whether to run tcpdump between gateway and engine, or at the broker. Latency figures then mean nothing."""

    def __post_init__(self) -> None:
        for name, declared in DECLARED.items():
            value = getattr(self, name)
            if value is None and declared.may_be_none:
                continue
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
        self._check_instruments()
        self._check_opening()
        self._check_market()
        self._check_cpus()
        self._check_market_data()

    def _check_numbers_of_components(self) -> None:
        if self.tape is not None and self.pairs > 1:
            raise BadSetting("pairs", self.pairs, "1, where a tape is replayed: its orders are one pair's")
        whole("reporters", self.reporters, 1, self.pairs)

    def _check_market(self) -> None:
        """BadSetting if several gateways or engines make a market, and another setting does not go together with it."""
        if self.gateways == 1 and self.quotes_to != "all":
            raise BadSetting("quotes_to", self.quotes_to, "all with --gateways 1")
        if self.gateways > 1:
            self._check_gateways()
        if self.engines > 1:
            self._check_engines()
        most_orders = self.gateways * HIGHEST_NUMBER
        if self.is_market and self.orders is not None and self.orders > most_orders:
            raise BadSetting("orders", self.orders, f"at most {most_orders} with {self.gateways} gateways")

    def _check_gateways(self) -> None:
        """BadSetting if another setting does not go together with several gateways."""
        _refuse_together(
            "gateways",
            self.gateways,
            "1",
            Obstacle("--pairs", self.pairs > 1, "each pair has one gateway"),
            Obstacle("--tape", self.tape is not None, "its orders are one gateway's"),
            Obstacle("--packing", self.packing > 1, "the answers to a pack go to several gateways"),
            Obstacle("--standby", self.standby, "a standby follows a journal, and a journal has one gateway's orders"),
            Obstacle("--recover", self.recover, "a session of several gateways cannot be resumed yet"),
            Obstacle("--journal", self.journal is not None, "a journal has one gateway's orders"),
            Obstacle("--work", self.work_s > 0, "an engine that serves several gateways cannot compute on orders yet"),
        )
        if self.orders is not None and self.orders < self.gateways:
            raise BadSetting("orders", self.orders, f"at least one for each gateway, {self.gateways}")
        if self.orders_per_s is not None and self.orders_per_s / self.gateways < MIN_RATE_PER_S:
            least_per_s = MIN_RATE_PER_S * self.gateways
            allowed = f"at least {least_per_s:g}, {MIN_RATE_PER_S} for each gateway"
            raise BadSetting("orders_per_s", self.orders_per_s, allowed)

    def _check_engines(self) -> None:
        """BadSetting if another setting does not go together with several engines."""
        if self.engines > self.instruments:
            raise BadSetting(
                "engines",
                self.engines,
                f"at most {self.instruments}, the number of --instruments: each engine serves some of them",
            )
        _refuse_together(
            "engines",
            self.engines,
            "1",
            Obstacle("--pairs", self.pairs > 1, "each pair has an engine of its own"),
            Obstacle("--tape", self.tape is not None, "a tape is replayed at one engine"),
            Obstacle("--packing", self.packing > 1, "the orders of a pack go to several engines"),
            Obstacle("--standby", self.standby, "a standby follows a journal, and a journal has one engine's orders"),
            Obstacle("--recover", self.recover, "a session at several engines cannot be resumed yet"),
            Obstacle("--journal", self.journal is not None, "a session at several engines cannot be resumed yet"),
            Obstacle("--work", self.work_s > 0, "an engine beside others cannot compute on orders yet"),
        )

    def _check_instruments(self) -> None:
        """BadSetting if there are several instruments, and another setting does not go together with that."""
        if self.instruments == 1:
            return
        _refuse_together(
            "instruments",
            self.instruments,
            "1",
            Obstacle("--pairs", self.pairs > 1, "each pair has one book"),
            Obstacle("--standby", self.standby, "a journal has the orders of one book"),
            Obstacle("--recover", self.recover, "a journal has the orders of one book"),
            Obstacle("--journal", self.journal is not None, "a journal has the orders of one book"),
        )
        check_instruments(self.instruments, self.max_price)

    def _check_opening(self) -> None:
        """BadSetting if the book has orders before the run, and another setting does not go together with that."""
        if self.opening is None:
            return
        _refuse_together(
            "opening",
            self.opening,
            "no file",
            Obstacle(
                "--gateways", self.gateways > 1, "an opening order belongs to no gateway that could get its trades"
            ),
            Obstacle("--engines", self.engines > 1, "each engine would have the opening orders of all instruments"),
            Obstacle("--standby", self.standby, "a journal begins with an empty book"),
            Obstacle("--recover", self.recover, "a journal begins with an empty book"),
            Obstacle("--journal", self.journal is not None, "a journal begins with an empty book"),
            Obstacle("--hosts", self.hosts is not None, "the tape is a file of this host"),
        )
        if self.orders is not None and self.orders >= LEAST_OPENING_ID:
            raise BadSetting("orders", self.orders, f"less than {LEAST_OPENING_ID}, the least id of opening orders")

    def _check_market_data(self) -> None:
        if not self.subscribers:
            return
        _refuse_together(
            "subscribers",
            self.subscribers,
            "0",
            Obstacle("--pairs", self.pairs > 1, "each pair is a market of its own; --gateways makes one market"),
            Obstacle("--recover", self.recover, "an engine that is started again cannot resume its market data"),
            Obstacle(
                "--journal", self.journal is not None, "an engine that is started again cannot resume its market data"
            ),
        )

    def _check_cpus(self) -> None:
        if not isinstance(self.cpus, Mapping):
            raise BadSetting("cpus", self.cpus, "a processor by role")
        instances_of_roles = {
            "gateway": max(self.pairs, self.gateways),
            "engine": max(self.pairs, self.engines),
            "reporter": self.reporters,
            "subscriber": self.subscribers,
        }
        names = {"broker"}
        for role, instances in instances_of_roles.items():
            for instance in range(1, instances + 1):
                names.add(named(role, instance))
        roles = [role for role in PLACED_ROLES if role in names]
        for name, cpu in self.cpus.items():
            one_of("cpus", name, names, f"one of {', '.join(roles)}, or one of several, as gateway.2")
            whole("cpus", cpu, 0, 4095)

    def _settle_workload(self) -> None:
        check_arrivals(self.arrivals, self.orders_per_s, self.tape)
        check_pace(self.pace)
        check_prices(self.prices)
        check_tape(self.tape, self.prices, self.price_model)
        if self.mix is not None:
            check_mix(self.mix)
        object.__setattr__(self, "prices", settled_prices(self.prices, self.price_model, self.max_price))
        object.__setattr__(self, "speed", settled_speed(self.speed, self.arrivals))

    def _settle_nagle(self) -> None:
        """Put the roles in the order of NAGLE_ROLES."""
        if not isinstance(self.nagle, tuple | list):
            raise BadSetting("nagle", self.nagle, f"roles of {', '.join(NAGLE_ROLES)}")
        for role in self.nagle:
            one_of("nagle", role, NAGLE_ROLES, f"{', '.join(ROLES)}, and broker where there is one")
        roles_in_order = tuple(role for role in NAGLE_ROLES if role in self.nagle)
        object.__setattr__(self, "nagle", roles_in_order)

    @property
    def is_market(self) -> bool:
        """Whether each gateway has a session at each engine; otherwise a gateway and an engine are a pair."""
        return self.gateways > 1 or self.engines > 1

    @property
    def has_cancels_or_replaces(self) -> bool:
        """Whether some messages are cancels or replaces: then the engine's book must find orders by id."""
        return self.mix is not None and OrderMix.parse(self.mix).has_cancels_or_replaces

    @property
    def journals(self) -> bool:
        """Whether the engines keep journals, so that sessions can be resumed."""
        return self.recover or self.journal is not None

    @property
    def work_ns(self) -> int:
        """How long the engine computes on each order."""
        return round(self.work_s * 1e9)

    @property
    def spin_ns(self) -> int:
        """How long a gateway spins before a due time."""
        return spin_us(self.pace) * 1_000

    @property
    def arriving(self) -> Arrivals:
        """`arrivals`, parsed."""
        return Arrivals.parse(self.arrivals)

    @property
    def scheduled_load(self) -> ScheduledLoad | None:
        """The load that the schedule offers to each pair, or to a market; None: orders go as fast as possible."""
        if self.orders_per_s is None:
            return None
        return ScheduledLoad.of(self.arriving, self.orders_per_s, self.orders, self.duration_s)

    @property
    def offered_orders_per_s(self) -> float | None:
        """Offered load of each pair over the whole run; None: as fast as it goes."""
        load = self.scheduled_load
        return None if load is None else load.mean_per_s

    @property
    def order_limit(self) -> int:
        """Orders after which the gateway stops, if the clock does not stop it before."""
        load = self.scheduled_load
        if load is not None:
            return load.orders
        return MAX_ORDERS if self.orders is None else self.orders

    @property
    def length_s(self) -> float | None:
        """The time that it takes to offer the orders; None if only the run shows this time."""
        load = self.scheduled_load
        return self.duration_s if load is None else load.length_s

    def as_dict(self) -> dict[str, Any]:
        """The `settings` of run.json."""
        return {**asdict(self), "prices": list(self.prices), "nagle": list(self.nagle)}


DECLARED = declared_settings(RunSettings)
"""The declarations of all settings, by field."""
