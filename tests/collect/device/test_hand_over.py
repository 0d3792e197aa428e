"""A device and a campaign that changes hands: it follows the owner it was told of, and nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.collect.device.made import OWNER, SHUFFLER, Bench, campaign

from dovetail.collect.campaign.terms import require_same_terms
from dovetail.collect.files import ServerConfig, next_version
from dovetail_device.client import Device
from dovetail_device.entropy import system_entropy
from dovetail_device.sender import refusal_event
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.errors import ConfigError
from dovetail_protocol.keys import RoleKeys
from dovetail_protocol.succession import HandOver

NEXT, LAST = RoleKeys.generate("owner"), RoleKeys.generate("owner")
assert OWNER.signing and NEXT.signing and LAST.signing
OLD = campaign()


def handed(old: Campaign, old_keys: RoleKeys, new_keys: RoleKeys) -> Campaign:
    """The next version of a campaign, by its next owner."""
    assert old_keys.signing and new_keys.signing
    line = HandOver.make(old.id, old_keys.signing, new_keys.signing.verifying_key())
    return Campaign.parse(sign(next_version(old, {}, hand_over=line), new_keys.signing))


NEW = handed(OLD, OWNER, NEXT)


def test_a_device_follows_to_the_next_owner_when_the_shuffler_asks_for_the_new_version() -> None:
    made = Bench(OLD)
    made.transport.file = NEW.signed
    made.transport._answers = iter([refusal_event("campaign")])
    assert made.device.submit("red", 1).state == "accepted"
    assert made.device.campaign == NEW and len(made.transport.sent) == 2


def test_a_device_that_missed_an_owner_follows_through_both_hand_overs() -> None:
    made = Bench(OLD)
    made.transport.file = handed(NEW, NEXT, LAST).signed
    made.transport._answers = iter([refusal_event("campaign")])
    made.device.submit("red", 1)
    assert made.device.campaign.owner == LAST.signing.verifying_key()  # type: ignore[union-attr]


def test_after_a_hand_over_the_old_file_is_still_taken_and_the_new_version_followed(tmp_path: Path) -> None:
    """Whoever starts the device every hour names the file that it was installed with."""
    made = Bench(OLD, path=tmp_path / "outbox")
    made.restart(NEW)
    assert made.restart(OLD).campaign == NEW


def test_a_former_owner_has_no_more_say() -> None:
    made = Bench(OLD)
    made.restart(NEW)
    for late in (campaign(version=2), campaign(version=9), handed(OLD, OWNER, LAST)):
        with pytest.raises(ConfigError, match="pinned to its owner"):
            made.restart(late)
    made.transport.file = campaign(version=9).signed
    made.transport._answers = iter([refusal_event("campaign")])
    assert made.device.submit("red", 1).state == "waiting" and made.device.campaign == NEW


def test_a_device_that_is_told_to_follow_no_hand_over_stays_with_its_owner() -> None:
    made = Bench(OLD)
    stubborn = Device(
        OLD, made.keys, outbox=made.outbox, transport=made.transport, clock=made.clock, words=system_entropy(),
        hand_over=False,
    )  # fmt: skip
    made.transport.file = NEW.signed
    made.transport._answers = iter([refusal_event("campaign")])
    assert stubborn.submit("red", 1).state == "waiting" and stubborn.campaign == OLD
    with pytest.raises(ConfigError, match="told to follow no hand-over"):
        made.outbox.adopt(NEW, hand_over=False)
    assert made.outbox.adopt(OLD) == OLD
    assert made.outbox.adopt(NEW, owners=[NEW.owner], hand_over=False) == NEW, "whoever names an owner consents"


def test_a_hand_over_changes_no_terms_and_no_budget() -> None:
    made = Bench(OLD)
    made.device.submit("red", 1)
    made.restart(NEW)
    (ledger,) = made.outbox.ledgers()
    assert ledger.spent == 1.0 and made.device.submit("green", 1).drawn is False


def test_servers_take_both_versions_and_those_that_pinned_the_first_owner_too(tmp_path: Path) -> None:
    require_same_terms(OLD, NEW)
    stranger = campaign(version=2, owner=LAST)
    with pytest.raises(ConfigError, match="signed no hand-over"):
        require_same_terms(OLD, stranger)
    assert OWNER.signing and SHUFFLER.signing
    for name, each in (("old", OLD), ("new", NEW), ("stranger", stranger)):
        (tmp_path / f"{name}.toml").write_bytes(each.signed)

    def load(*names: str) -> list[int]:
        owner = str(OWNER.signing.verifying_key())  # type: ignore[union-attr]
        config = ServerConfig(
            schema_version=1,
            campaigns=[f"{name}.toml" for name in names],
            keys="k",
            listen="127.0.0.1:0",
            owner=owner,
        )
        return [found.version for found, _ in config.load_campaigns(tmp_path)]

    assert load("old", "new") == [1, 2]
    with pytest.raises(ConfigError, match="is not signed by"):
        load("old", "stranger")
