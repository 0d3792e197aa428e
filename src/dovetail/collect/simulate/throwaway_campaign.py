"""A campaign with throw-away keys for every role: what a simulation, a demo and a load test begin with."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import tomlkit

from dovetail.account.closed_form.user_dummies import user_dummies_for
from dovetail.collect.campaign.roster import Roster, RosterEntry
from dovetail.core.checks import whole
from dovetail.core.errors import ConfigError
from dovetail_protocol.campaign import Campaign, draft, sign
from dovetail_protocol.keys import RoleKeys
from dovetail_protocol.wire.sent_dummies import Unrandomized

START = datetime(2030, 1, 1, tzinfo=UTC)  # of the first round under a frozen clock
PERIOD = 3600.0  # seconds, of a simulated round

COMMUTE: dict[str, Any] = {
    "schema_version": 1,
    "id": "commute",
    "question": "How do you come to work?",
    "randomizer": {"name": "krr", "k": 4, "epsilon": 2.0, "categories": ["on foot", "bike", "bus or train", "car"]},
    "batch": {"minimum": 100},
    "promise": {"delta": 1e-6},
}
"""The campaign that is simulated where none is given, less its rounds and keys."""

APPLIANCE: dict[str, Any] = {
    "schema_version": 1,
    "id": "appliance",
    "question": "How many watts does the appliance draw?",
    "randomizer": {
        "name": "budget_laplace", "lower": 3.9, "upper": 178.3, "epsilon": 4.5, "beta": 0.5, "rho": 0.9, "grid": 0.2
    },
    "batch": {"minimum": 100},
    "promise": {"delta": 1e-6},
    "precision": {"beta": 0.5, "rho": 0.9},
}  # fmt: skip
"""The fleet of RASE's evaluation: Algorithm 3 with the paper's range, precision and budget."""


def among_people(*, people: int, rounds: int) -> dict[str, Any]:
    """The same question with answers as they are, among dummies of people: epsilon 1 a batch, 9 in 10 honest."""
    honest = people * 9 // 10
    batches_delta = COMMUTE["promise"]["delta"] / rounds
    sent = user_dummies_for(k=COMMUTE["randomizer"]["k"], epsilon=1.0, delta=batches_delta, honest=max(1, honest))
    asked = COMMUTE["randomizer"]
    return COMMUTE | {
        "randomizer": {"name": Unrandomized.name, "k": asked["k"], "categories": asked["categories"]},
        "batch": {"minimum": people},
        "promise": {**COMMUTE["promise"], "trust": "users", "assumed_honest": honest},
        "dummies": {"epsilon": 1.0, "delta": batches_delta, "rate": sent.rate},
    }


def among_classes(classes: Mapping[str, float]) -> dict[str, Any]:
    """The same question to people who choose among these epsilons."""
    return COMMUTE | {
        "randomizer": COMMUTE["randomizer"] | {"epsilon": max(classes.values(), default=0.0)},
        "classes": dict(classes),
    }


@dataclass(frozen=True)
class ThrowawayCampaign:
    """Keys of every role and the campaign that names them."""

    campaign: Campaign
    owner: RoleKeys
    shuffler: RoleKeys
    analyzer: RoleKeys
    devices: tuple[RoleKeys, ...] = field(repr=False)

    @classmethod
    def of(cls, document: Mapping[str, Any], devices: int) -> Self:
        """Fresh keys for a campaign file given without keys.

        Rounds, the device's budget and the uniform shuffle have defaults: ten rounds of an hour, paid in full.
        """
        whole("devices", devices, least=1)
        suite = document.get("keys", {}).get("suite", "x25519")
        owner = RoleKeys.generate("owner")
        shuffler, analyzer = (RoleKeys.generate(role, suite) for role in ("shuffler", "analyzer"))
        assert owner.signing and shuffler.opening and shuffler.signing and analyzer.opening
        keys = {
            "suite": suite,
            "owner": str(owner.signing.verifying_key()),
            "shuffler": str(shuffler.opening.sealing_key()),
            "shuffler_signing": str(shuffler.signing.verifying_key()),
            "analyzer": str(analyzer.opening.sealing_key()),
        }
        body = tomlkit.dumps(_complete(document) | {"keys": keys}).encode()
        campaign = Campaign.parse(sign(body, owner.signing))
        return cls(campaign, owner, shuffler, analyzer, tuple(RoleKeys.generate("device") for _ in range(devices)))

    def roster(self) -> Roster:
        """Every device in the slot of its number."""
        keys = [device.signing for device in self.devices]
        return Roster(RosterEntry(key.verifying_key(), slot) for slot, key in enumerate(keys) if key is not None)


def schedule(count: int, *, period: float = PERIOD, grace: float = 0.0, start: datetime = START) -> dict[str, Any]:
    """The table of so many rounds of `period` seconds."""
    times = {"start": start, "period_seconds": period, "count": count, "grace_seconds": grace}
    return {"schedule": "period", **times}


def _complete(document: Mapping[str, Any]) -> dict[str, Any]:
    rounds = document.get("rounds") or schedule(10)
    priced = document["dummies" if document["randomizer"]["name"] == Unrandomized.name else "randomizer"]
    budget = float(Fraction(repr(priced["epsilon"])) * rounds["count"])
    return {
        "shuffle": {"shuffler": "uniform"},
        **document,
        "rounds": rounds,
        "promise": {"device_budget": budget, **document.get("promise", {})},
    }


def simulated_document(path: Path, *, rounds: int) -> dict[str, Any]:
    """Somebody's campaign file for a simulation: its rules with other keys, over `rounds` rounds.

    A schedule by hand becomes one by the clock, because nobody is there to close rounds; endpoints and expiry go.
    """
    campaign = draft(_read(path))
    if campaign.order_private:
        raise ConfigError(
            f"{path}: simulate takes campaigns with a uniform shuffle; this one needs its public table."
        )
    found = tomllib.loads(campaign.signed.decode())
    kept = {key: value for key, value in found.items() if key not in ("expires", "endpoints", "keys")}
    rounds_table = schedule(rounds, period=campaign.schedule.period or PERIOD, grace=campaign.schedule.grace)
    return kept | {"rounds": rounds_table, "keys": {"suite": campaign.analyzer.suite}}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise ConfigError(f"{path}: no such campaign file.") from None
