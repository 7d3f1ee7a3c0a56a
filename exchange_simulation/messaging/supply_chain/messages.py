"""The paper's tables 1, 2 and 3: seven interactions, nineteen messages, four groups.

MESSAGES has the messages in the order in which an interaction sends them. The paper gives only this order, and the
kinds of both ends. `after`, the message that this one answers, and `to`, its destination, are our choices.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

KILOBYTE = 1024
"""Our choice: the paper prints KBytes without saying how many bytes a KByte has."""
PROBABILITIES = (0.95, 0.04, 0.01)
"""Shares of an interaction's three sizes, in the order in which table 2 lists them."""
CASH_DESKS = 5
SALES_LINES = (2, 7, 13)
"""The three numbers of sales lines of a cash desk."""
SALES_LINE_KB = 0.3650
"""m2 of table 2: kB for each sales line of each cash desk."""


class AgentKind(Enum):
    """Kinds of locations; each value is the name for users."""

    SM = "supermarket"
    DC = "distribution centre"
    SP = "supplier"
    HQ = "headquarters"


class Group(Enum):
    """Message groups (table 3). P persistent, T transactional, D durable subscription; N means not.

    a  publish/subscribe   NP NT ND
    b  publish/subscribe   P  T  D
    c  point to point      NP NT
    d  point to point      P  T
    """

    A = "a"
    B = "b"
    C = "c"
    D = "d"

    @property
    def is_published(self) -> bool:
        """True for publish/subscribe: every subscriber of a topic gets a copy."""
        return self in {Group.A, Group.B}

    def with_assurance(self, is_assured: bool) -> Group:
        """The group of the same kind of destination whose messages are assured, or not."""
        if self.is_published:
            return Group.B if is_assured else Group.A
        return Group.D if is_assured else Group.C

    @property
    def is_assured(self) -> bool:
        """True for persistent, transactional messages."""
        return self in {Group.B, Group.D}


class To(Enum):
    """How a sender chooses the destination."""

    ITSELF = "a queue of the sender's own"
    ITS_DC = "the distribution centre that serves the supermarket"
    SENDER = "the location that sent the message to which this one answers"
    INITIATOR = "the location that began the interaction"
    HQ_IN_TURN = "the instances of the headquarters, one after the other"
    FAMILY = "the topic of a product family, one family after the other"
    EVERYBODY = "the topic that all supermarkets have subscribed to"


@dataclass(frozen=True)
class Message:
    """A row of table 1 with its row of table 2: a message has m1·x + b kB."""

    name: str
    interaction: int
    source: AgentKind
    target: AgentKind
    group: Group
    m1: float
    b: float
    to: To
    after: str = ""
    """The message that a location answers with this one; empty if this one begins the interaction."""
    sizes: tuple[float, float, float] | None = None
    """The three sizes in kB that a file gives in place of m1·x + b."""


@dataclass(frozen=True)
class Interaction:
    """An interaction of table 1; `x` has the three values of the sizing parameter."""

    number: int
    about: str
    initiator: AgentKind
    x: tuple[float, float, float]

    @property
    def messages(self) -> list[Message]:
        return [message for message in MESSAGES if message.interaction == self.number]


SM, DC, SP, HQ = AgentKind.SM, AgentKind.DC, AgentKind.SP, AgentKind.HQ
A, B, C, D = Group.A, Group.B, Group.C, Group.D

INTERACTIONS = {
    interaction.number: interaction
    for interaction in (
        Interaction(1, "orders of supermarkets", SM, (5, 100, 700)),
        Interaction(2, "purchases of centres", DC, (3, 35, 200)),
        Interaction(3, "price updates", HQ, (0, 0, 0)),
        Interaction(4, "inventory of supermarkets", SM, (10, 100, 500)),
        Interaction(5, "sales statistics", SM, SALES_LINES),
        Interaction(6, "new products", HQ, (100, 10, 1000)),
        Interaction(7, "credit card hot lists", HQ, (50, 500, 3000)),
    )
}

MESSAGES = (
    Message("order", 1, SM, DC, D, 0.0565, 1.4534, To.ITS_DC),
    Message("orderConf", 1, DC, SM, D, 0.0565, 1.7374, To.INITIATOR, after="order"),
    Message("shipDep", 1, DC, DC, D, 0.0787, 0.7222, To.ITSELF, after="order"),
    Message("statInfoOrderDC", 1, DC, HQ, C, 0.0153, 0.1463, To.HQ_IN_TURN, after="shipDep"),
    Message("shipInfo", 1, DC, SM, D, 0.0787, 0.8912, To.INITIATOR, after="shipDep"),
    Message("shipConf", 1, SM, DC, D, 0.0202, 0.7140, To.ITS_DC, after="shipInfo"),
    Message("callForOffers", 2, DC, SP, B, 0.1785, 0.8094, To.FAMILY),
    Message("offer", 2, SP, DC, D, 0.2489, 0.9414, To.SENDER, after="callForOffers"),
    Message("pOrder", 2, DC, SP, D, 0.2498, 1.1076, To.SENDER, after="offer"),
    Message("pOrderConf", 2, SP, DC, D, 0.2410, 1.3494, To.SENDER, after="pOrder"),
    Message("invoice", 2, SP, HQ, D, 0.1942, 1.1211, To.HQ_IN_TURN, after="pOrder"),
    Message("pShipInfo", 2, SP, DC, D, 0.0827, 0.7279, To.SENDER, after="pOrder"),
    Message("pShipConf", 2, DC, SP, D, 0.0827, 0.7612, To.SENDER, after="pShipInfo"),
    Message("statInfoShipDC", 2, DC, HQ, C, 0.0831, 0.7681, To.HQ_IN_TURN, after="pShipInfo"),
    Message("priceUpdate", 3, HQ, SM, B, 0, 0.2310, To.EVERYBODY),
    Message("inventoryInfo", 4, SM, SM, D, 0.0970, 0.5137, To.ITSELF),
    Message("statInfoSM", 5, SM, HQ, C, CASH_DESKS * SALES_LINE_KB, CASH_DESKS * 0.0139 + 0.9813, To.HQ_IN_TURN),
    Message("productAnnouncement", 6, HQ, SM, A, 0.0103, 0.1754, To.EVERYBODY),
    Message("creditCardHL", 7, HQ, SM, A, 0.0166, 0.1846, To.EVERYBODY),
)
"""In statInfoSM, x is the number of sales lines, with five cash desks: 5·(m1 + m2·x) + b."""


def sizes_kb(message: Message) -> tuple[float, float, float]:
    """The three sizes of table 4, or those of a file."""
    if message.sizes:
        return message.sizes
    small, medium, large = (message.m1 * x + message.b for x in INTERACTIONS[message.interaction].x)
    return small, medium, large


def mean_kb(message: Message) -> float:
    """The average size of table 4."""
    return sum(share * size for share, size in zip(PROBABILITIES, sizes_kb(message), strict=True))
