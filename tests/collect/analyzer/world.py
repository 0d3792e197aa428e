"""A small world for the analyzer's tests: campaigns, devices and batches made with the real cryptography."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np

from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.batch import Header
from dovetail.collect.clock import FrozenClock
from dovetail.collect.store.analyzer_store import open_analyzer_store
from dovetail.collect.store.interfaces import AnalyzerStore
from dovetail.core.entropy import simulation
from dovetail.randomize.sampling.open_reports import from_device
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.keys import RoleKeys
from dovetail_protocol.messages import inner_info, plain

OWNER, SHUFFLER, ANALYZER = (RoleKeys.generate(role) for role in ("owner", "shuffler", "analyzer"))
NOON = 1_900_000_000.0

TEMPLATE = """
schema_version = 1
id = "{id}"
version = {version}
question = "How do you come to work?"
[randomizer]
{randomizer}
[rounds]
schedule = "manual"
count = 1000
[batch]
minimum = {minimum}
small = "{small}"
[shuffle]
{shuffle}
[promise]
delta = {delta}
device_budget = {budget}
{promise}
{more}
[keys]
owner = "{owner}"
analyzer = "{analyzer}"
shuffler = "{shuffler}"
shuffler_signing = "{signing}"
"""

KRR = 'name = "krr"\nk = 4\nepsilon = 1.0\ncategories = ["bus", "bike", "car", "on foot"]'
LAPLACE = 'name = "laplace"\nlower = 0.0\nupper = 100.0\nepsilon = 2.0\ngrid = 1.0'


def campaign(
    randomizer: str = KRR,
    *,
    id: str = "commute",
    version: int = 1,
    minimum: int = 2,
    small: str = "wait",
    shuffle: str = "",
    promise: str = "",
    budget: float = 1000.0,
    delta: str = "1e-6",
    more: str = "",
    analyzer: RoleKeys = ANALYZER,
) -> Campaign:
    """A campaign as its owner signs it."""
    assert OWNER.signing and SHUFFLER.opening and SHUFFLER.signing and analyzer.opening
    body = TEMPLATE.format(
        id=id, version=version, randomizer=randomizer, minimum=minimum, small=small, shuffle=shuffle, promise=promise,
        budget=budget, delta=delta, more=more,
        owner=OWNER.signing.verifying_key(), analyzer=analyzer.opening.sealing_key(),
        shuffler=SHUFFLER.opening.sealing_key(), signing=SHUFFLER.signing.verifying_key(),
    )  # fmt: skip
    return Campaign.parse(sign(body.encode(), OWNER.signing))


def seal(
    campaign: Campaign, reports: Sequence[Any], *, round: int, groups: Sequence[str] | None = None
) -> list[bytes]:
    """Inner envelopes of reports, as devices make them."""
    info, kind = inner_info(campaign, round), campaign.mechanism
    named = groups or [None] * len(reports)
    plains = [plain(campaign, kind.encode(report), group) for report, group in zip(reports, named, strict=True)]
    return [campaign.analyzer.seal(each, info) for each in plains]


def reports_of(campaign: Campaign, values: Sequence[Any], name: str) -> list[Any]:
    """Reports that the analyst's randomizer makes, in the type that devices encode."""
    found = from_device(campaign.mechanism).randomize(
        values, simulation(int(sha256(name.encode()).hexdigest()[:8], 16))
    )
    if found.ndim == 1:
        return [int(report) for report in found]
    if found.dtype == np.uint8:
        return [report.tobytes() for report in found]
    return [tuple(int(part) for part in report) for report in found]


def batch(
    asked: Campaign, sealed: Sequence[bytes], *, rounds: Sequence[int] = (1,), id: str = "", **changes: Any
) -> bytes:
    """A batch as the shuffler sends it; `changes` are made to its header before it is signed."""
    assert SHUFFLER.signing
    body = b"".join(sealed)
    header = Header(
        asked.id, asked.digest.hex(), id or sha256(body).hexdigest()[:32], tuple(rounds), len(sealed),
        sha256(body).hexdigest(), {},
    )  # fmt: skip
    return replace(header, **changes).sign(SHUFFLER.signing) + body


def store() -> AnalyzerStore:
    """An empty store in memory."""
    return open_analyzer_store("sqlite://")


@dataclass
class World:
    """One analyzer with its campaigns; `run` sends a round of values through it."""

    campaigns: tuple[Campaign, ...]
    keys: tuple[RoleKeys, ...] = (ANALYZER,)
    clock: FrozenClock = field(default_factory=lambda: FrozenClock(NOON))

    def __post_init__(self) -> None:
        self.store = store()
        self.analyzer = Analyzer(AnalyzerCampaigns.of(self.campaigns, self.keys), store=self.store, clock=self.clock)

    @property
    def campaign(self) -> Campaign:
        return self.campaigns[0]

    def run(self, round: int, values: Sequence[Any], *, groups: Sequence[str] | None = None) -> list[Any]:
        """Count a round of these values; the reports that were sent."""
        reports = reports_of(self.campaign, values, f"{self.campaign.id} {round}")
        sealed = seal(self.campaign, reports, round=round, groups=groups)
        self.analyzer.receive(batch(self.campaign, sealed, rounds=(round,)))
        return reports

    @property
    def answers(self) -> Any:
        return self.analyzer.answers(self.campaign.id)


def token(secret: str) -> str:
    """What a token file holds of a token."""
    return sha256(secret.encode()).hexdigest()
